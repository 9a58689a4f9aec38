"""Runs and logs of other programs as they were found outside: links, changed configs, changed headers, step columns."""

import gzip
import json
import re

import pytest
from scipy.stats import ttest_rel

from analysis import report
from analysis.comparison import compare
from analysis.foreign import load_runs
from analysis.study import StudyError
from analysis.wording import notes
from tests.analysis.foreign_runs import table, touch, write, write_hydra

DENSE = "metrics.csv:loss"
ARMS = {"gpt": [0.50, 0.52, 0.49], "mamba": [0.45, 0.47, 0.43]}


def one_run(folder, overrides, value, config=None):
    """A run folder with one value of the loss at step 10."""
    return table(write_hydra(folder, overrides, config), [(10, value)], "loss").parent


def grid(root):
    """Two models on three seeds, in folders named after both."""
    for model, losses in ARMS.items():
        for seed, loss in enumerate(losses):
            one_run(root / f"{model}{seed}", [f"model={model}", f"seed={seed}"], loss)
    return root


def found(root, metrics=DENSE):
    """Values by label, in the order of the seeds; and the study."""
    study = load_runs(root, metrics)
    values = {}
    for run in study.loaded:
        values.setdefault(run.variant.label, []).append(run.outcome(metrics.partition(":")[2]).value)
    return values, study


GRID = {f"model={model}": losses for model, losses in ARMS.items()}


@pytest.mark.parametrize(
    "linked", [("gpt0",), ("gpt1", "mamba0", "mamba2"), tuple(f"{m}{s}" for m in ARMS for s in "012")]
)
def test_w6_run_folders_that_are_links_are_read_like_others(tmp_path, linked):
    root = grid(tmp_path / "study")
    for name in linked:
        (root / name).rename(tmp_path / f"scratch_{name}")
        (root / name).symlink_to(tmp_path / f"scratch_{name}")
    values, study = found(root)
    assert (values, study.remarks) == (GRID, ())


def test_w6_a_link_to_a_whole_sweep_and_a_study_that_is_a_link_are_followed(tmp_path):
    grid(tmp_path / "elsewhere" / "sweep")
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "sweep").symlink_to(tmp_path / "elsewhere" / "sweep")
    (tmp_path / "again").symlink_to(tmp_path / "study")
    assert found(tmp_path / "study")[0] == found(tmp_path / "again")[0] == GRID


def test_w6_cycles_links_to_parents_and_second_names_add_no_run_and_the_remarks_name_them(tmp_path):
    root = grid(tmp_path / "study")
    one_run(tmp_path / "another_study" / "0", ["model=gpt", "seed=9"], 9.0)
    (root / "best").symlink_to(root / "mamba2")
    (root / "a_second_name").symlink_to(root / "mamba2")
    (root / "self").symlink_to(root)
    (root / "up").symlink_to(tmp_path)
    (root / "top").symlink_to("/")
    (root / "loop").symlink_to("loop")
    (root / "gone").symlink_to(tmp_path / "nothing")
    values, study = found(root)
    assert values == GRID
    assert [run.place for run in study.loaded] == [f"{model}{seed}" for model in ARMS for seed in range(3)]
    assert study.remarks == (
        "2 links lead nowhere, left out: gone, loop",
        "2 links lead to a folder that holds this study, left out: top, up",
        "2 links lead to a run that is read under another name, left out: a_second_name, best",
    )


def test_w6_where_every_link_leads_nowhere_the_refusal_says_so(tmp_path, capsys):
    for seed in range(7):
        (tmp_path / f"run{seed}").symlink_to(tmp_path / "scratch" / str(seed))
    assert report.main([str(tmp_path), "--metrics", DENSE]) == 2
    told = capsys.readouterr().err
    assert "7 links lead nowhere, left out: run0, run1, run2, run3, run4 and 2 more" in told
    assert told.count("\n") == 1


def test_w6_logs_behind_a_link_inside_a_run_are_found(tmp_path):
    run = one_run(tmp_path / "study" / "0", ["seed=0"], 0.5)
    (run / "metrics.csv").rename(tmp_path / "metrics.csv")
    (tmp_path / "scratch" / "version_0").mkdir(parents=True)
    (tmp_path / "metrics.csv").rename(tmp_path / "scratch" / "version_0" / "metrics.csv")
    (run / "logs").symlink_to(tmp_path / "scratch")
    assert found(tmp_path / "study", "**/metrics.csv:loss")[0] == {"study": [0.5]}
    assert found(tmp_path / "study", "logs/**/metrics.csv:loss")[0] == {"study": [0.5]}


def two_sweeps(root, change, losses=((0.5, 0.51, 0.52), (0.7, 0.71, 0.72))):
    """The same command twice, `change(config, sweep, seed)` telling what was in the config on disk."""
    for sweep, values in enumerate(losses):
        for seed, loss in enumerate(values):
            config = {"lr": 0.1, "model": {"width": 8, "depth": 2}, "seed": seed}
            change(config, sweep, seed)
            one_run(root / f"sweep{sweep}" / str(seed), ["model=gpt", f"seed={seed}"], loss, config)
    return root


def test_w4_a_config_that_was_changed_on_disk_makes_another_variant_not_reruns(tmp_path):
    def change(config, sweep, _):
        config["model"]["width"] = (8, 16)[sweep]
        config["model"]["depth"] = (2, 4)[sweep]

    values, study = found(two_sweeps(tmp_path, change))
    assert values == {"depth=2": [0.5, 0.51, 0.52], "depth=4": [0.7, 0.71, 0.72]}
    assert (study.seeds, study.shared_seeds, study.replaced) == ((0, 1, 2), True, ())
    told = "runs that differ in model.depth, which is not overridden, are variants of their own"
    assert study.remarks == (f"{told}; with it change model.width",)


def test_w4_beside_an_override_too(tmp_path):
    for sweep, lr in enumerate((0.1, 0.01)):
        for model in ARMS:
            for seed in range(2):
                config = {"lr": lr, "model": {"name": model, "width": 8 if model == "gpt" else 4}, "seed": seed}
                run = tmp_path / f"{sweep}{model}{seed}"
                one_run(run, [f"model={model}", f"seed={seed}"], lr + seed, config)
    values, study = found(tmp_path)
    assert values == {
        "model=gpt, lr=0.1": [0.1, 1.1],
        "model=mamba, lr=0.1": [0.1, 1.1],
        "model=gpt, lr=0.01": [0.01, 1.01],
        "model=mamba, lr=0.01": [0.01, 1.01],
    }
    assert study.replaced == ()


def test_w4_a_key_that_came_or_went_makes_another_variant(tmp_path):
    def change(config, sweep, _):
        config.update({"ema": False} if sweep else {})

    values, study = found(two_sweeps(tmp_path, change))
    assert [variant.factors for variant in study.variants] == [{}, {"ema": False}]
    assert [len(losses) for losses in values.values()] == [3, 3]


VOLATILE = {
    "output_dir": lambda sweep, seed: f"outputs/{sweep}/{seed}",
    "run_id": lambda sweep, seed: 100 * sweep + seed,
    "timestamp": lambda sweep, seed: 1.7e9 + 100 * sweep + seed,
    "when": lambda sweep, seed: f"2026-01-0{sweep + 1}_10-00-0{seed}",
    "token": lambda sweep, seed: f"{sweep}{seed}fe41ab",
    "wandb": lambda sweep, seed: {"id": f"q{sweep}x{seed}", "name": f"brave-{sweep}-{seed}"},
    "hydra": lambda sweep, seed: {"job": {"num": seed}},
    "hostname": lambda sweep, seed: f"node{sweep}",
    "data_dir": lambda sweep, seed: f"/{('home', 'scratch')[sweep]}/wikitext",
    "data": lambda sweep, seed: {"seed": 100 + seed},
}


@pytest.mark.parametrize("key", [*VOLATILE, "all"])
def test_w4_reruns_are_known_although_what_names_a_run_differs_and_are_told_once(tmp_path, key):
    def change(config, sweep, seed):
        config.update({name: VOLATILE[name](sweep, seed) for name in (VOLATILE if key == "all" else [key])})

    for run in (root := two_sweeps(tmp_path, change)).glob("sweep1/*/metrics.csv"):
        touch(run, 60)
    values, study = found(root)
    assert values == {tmp_path.name: [0.7, 0.71, 0.72]}
    assert len(study.replaced) == 3
    assert sum("rerun" in line for line in notes(study)) == 3


def test_w4_many_reruns_are_one_line_with_their_number(tmp_path):
    for run in (root := two_sweeps(tmp_path, lambda *_: None, [[0.5] * 5, [0.5, 0.5, 0.5, 0.4, 0.3]])).glob(
        "sweep1/*/*"
    ):
        touch(run, 60)
    values, study = found(root)
    assert values == {tmp_path.name: [0.5, 0.5, 0.5, 0.4, 0.3]}
    told = (
        "replaced by reruns: 5 earlier results of 5 runs; the newest of each is used, and 2 of the earlier ones differ"
    )
    assert [line for line in notes(study) if "rerun" in line] == [f"{told} from it"]


def test_w4_a_folder_of_output_that_is_overridden_in_every_run_makes_no_variants(tmp_path):
    for model, losses in ARMS.items():
        for seed, loss in enumerate(losses):
            overrides = [f"model={model}", f"seed={seed}", f"output_dir=out/{model}_{seed}", f"run_name={model}-{seed}"]
            one_run(tmp_path / f"{model}{seed}", overrides, loss)
    values, study = found(tmp_path)
    assert values == GRID
    assert study.remarks == ("keys that differ in every run make no variants: output_dir, run_name",)


@pytest.mark.parametrize("key", ["output_dir=out/{1}{2}", "output_dir=out/{0}{1}{2}", "run_id={0}{1}{2}"])
def test_w4_a_whole_sweep_again_whose_folders_or_numbers_are_overridden_is_reruns(tmp_path, key):
    for sweep in range(2):
        for model, losses in ARMS.items():
            for seed, loss in enumerate(losses):
                run = tmp_path / f"{sweep}{model}{seed}"
                overrides = [f"model={model}", f"seed={seed}", key.format(sweep, model, seed)]
                touch(one_run(run, overrides, loss - 0.1 * sweep, {"seed": seed, "lr": 0.1}) / "metrics.csv", sweep)
    values, study = found(tmp_path)
    assert values == {label: [loss - 0.1 for loss in losses] for label, losses in GRID.items()}
    assert len(study.replaced) == 6


def test_w4_the_metrics_of_one_run_are_not_those_of_another(tmp_path):
    for seed in range(2):
        one_run(tmp_path / str(seed), [f"seed={seed}"], 0.5)
    (tmp_path / "1" / "metrics.csv").unlink()
    (tmp_path / "1" / "metrics.csv").symlink_to(tmp_path / "0" / "metrics.csv")
    with pytest.raises(StudyError, match=r"^0 and 1 have one and the same file of metrics, .*; give each its own"):
        load_runs(tmp_path, DENSE)


@pytest.mark.parametrize("name", ["exp_name={}", "exp_name={}_s{}", "output_dir=runs/{}/{}"])
def test_w4_a_name_that_is_all_that_tells_variants_apart_stays(tmp_path, name):
    for model, losses in ARMS.items():
        for seed, loss in enumerate(losses):
            one_run(tmp_path / f"{model}{seed}", [name.format(model, seed), f"seed={seed}"], loss)
    values, study = found(tmp_path)
    assert (sum(map(len, values.values())), study.replaced) == (6, ())
    assert len(values) == (2 if name == "exp_name={}" else 6)


def test_w4_data_sets_in_one_folder_are_variants(tmp_path):
    def change(config, sweep, _):
        config["data_dir"] = f"/data/{('wikitext', 'c4')[sweep]}"

    assert list(found(two_sweeps(tmp_path, change))[0]) == ["data_dir=wikitext", "data_dir=c4"]


def test_w4_configs_edited_before_each_of_three_runs_are_three_variants(tmp_path):
    for place, name in enumerate(("adam", "sgd", "lion")):
        one_run(tmp_path / str(place), ["seed=0"], 0.1 * place, {"optimizer": name, "seed": 0})
    assert list(found(tmp_path)[0]) == ["optimizer=adam", "optimizer=sgd", "optimizer=lion"]


def test_w4_a_variant_key_pools_no_runs_that_differ_in_more(tmp_path):
    for place, (lr, seed) in enumerate((lr, seed) for lr in (0.1, 0.01) for seed in range(3)):
        one_run(tmp_path / str(place), ["model=gpt", f"seed={seed}"], lr, {"lr": lr, "seed": seed})
    with pytest.raises(StudyError, match="--variant-key model: 0 and 3 have the same model and seed, but differ in lr"):
        load_runs(tmp_path, DENSE, variant_key="model")
    assert [len(losses) for losses in found(tmp_path)[0].values()] == [3, 3]
    for place in (3, 4, 5):
        (tmp_path / str(place)).rename(tmp_path / f".away{place}")
    one_run(tmp_path / "6", ["model=gpt", "seed=3"], 0.7, {"lr": 0.01, "seed": 3})
    study = load_runs(tmp_path, DENSE, variant_key="model")
    assert (len(study.loaded), study.remarks) == (4, ("runs with the same model differ in lr too",))


# W2: logs whose header changes on the way


def log(folder, text, name="metrics.csv", overrides=("seed=0",)):
    """A run folder with a file of metrics as it was found."""
    path = write_hydra(folder, overrides) / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def series(path, metric="val_loss"):
    """What is read of a run's log, step by step."""
    study = load_runs(path.parent.parent, f"{path.name}:{metric}")
    found = study.series(metric)[0][1]
    return dict(zip(found.step.tolist(), found.value.tolist(), strict=True))


HEADERS = {
    "more columns": ("step,val_loss\n1,.5\n2,.45\nstep,acc,val_loss\n3,.13,.44\n4,.14,.43\n", [0.5, 0.45, 0.44, 0.43]),
    "fewer columns": ("step,acc,val_loss\n1,.13,.5\n2,.14,.45\nstep,val_loss\n3,.44\n", [0.5, 0.45, 0.44]),
    "other order": ("step,val_loss,acc\n1,.5,.13\nval_loss,acc,step\n.45,.14,2\n", [0.5, 0.45]),
    "the same again": ("step,val_loss\n1,.5\nstep,val_loss\n2,.45\nstep,val_loss\n3,.44\n", [0.5, 0.45, 0.44]),
    "back to the first": ("step,val_loss\n1,.5\nstep,a,val_loss\n2,9,.45\nstep,val_loss\n3,.44\n", [0.5, 0.45, 0.44]),
    "the same after a cut line": ("step,val_loss\n1,.5\n2,.4step,val_loss\n2,.45\n", [0.5, 0.45]),
    "more after a cut line": ("step,val_loss\n1,.5\n2,0.4step,acc,val_loss\n2,.1,.45\n", [0.5, 0.45]),
    "fewer after a cut line": ("step,a,val_loss\n1,9,.5\n2,9,.4step,val_loss\n2,.45\n", [0.5, 0.45]),
    "after a line cut in the step": ("step,a,val_loss\n1,9,.5\n2step,a,val_loss\n2,9,.45\n", [0.5, 0.45]),
    "after a cut line of text": ("tag,step,val_loss\nx,1,.5\nytag,step,val_loss\ny,2,.45\n", [0.5, 0.45]),
    "the metric comes later": ("step,acc\n1,.13\nstep,acc,val_loss\n2,.14,.5\n3,.15,.45\n", {2: 0.5, 3: 0.45}),
    "the metric is gone": ("step,val_loss\n1,.5\n2,.45\nstep,acc\n3,.13\n", [0.5, 0.45]),
    "a column with no name": (",step,val_loss\n0,1,.5\n,step,acc,val_loss\n1,2,.13,.45\n", [0.5, 0.45]),
    "commas at the end": ("step,val_loss,\n1,.5,\nstep,acc,val_loss,\n2,.13,.45,\n", [0.5, 0.45]),
    "blanks and quotes": ('step, val_loss\n1, .5\n"step", "acc", "val_loss"\n2, .13, .45\n', [0.5, 0.45]),
    "text in the rows": ("split,step,val_loss\ntrain,1,.5\ntrain,foo\nval,bar,baz\nval,2,.45\n", [0.5, 0.45]),
    "text that is no header": ("val_loss,note\n.5,ok\n,note\n.45,ok\n", {0: 0.5, 2: 0.45}),
    "a quote that a crash left open": (
        'step,note,val_loss\n1,"ok",.5\n2,"cut of\n2,"ok",.45\n3,"ok",.44\n',
        [0.5, 0.45, 0.44],
    ),
    "a quote left open, none after": ('step,note,val_loss\n1,"ok",.5\n2,"cut of\n2,ok,.45\n', [0.5, 0.45]),
    "a cell of several lines": ('step,note,val_loss\n1,"a\nb",.5\n2,"c ""d"" \n\n",.45\n', [0.5, 0.45]),
    "other case": ("step,val_loss\n1,.5\nStep,Val_Loss,acc\n2,.45,.13\n", [0.5, 0.45]),
    "byte order marks": ("\ufeffstep,val_loss\n1,.5\n\ufeffstep,acc,val_loss\n2,.13,.45\n", [0.5, 0.45]),
    "comments": ("# run 7\n# step,val_loss\n1,.5\n# resumed, from 1\n2,.45\n", [0.5, 0.45]),
    "a header cut off": ("step,val_loss\n1,.5\nstep,ac\nstep,acc,val_loss\n2,.13,.45\n", [0.5, 0.45]),
    "blank lines": ("\nstep,val_loss\n1,.5\n\n\nstep,acc,val_loss\n\n2,.13,.45\n", [0.5, 0.45]),
    "carriage returns": ("step,val_loss\r\n1,.5\r\nstep,acc,val_loss\r\n2,.13,.45\r\n", [0.5, 0.45]),
    "semicolons": ("step;val_loss\n1;0,5\nstep;acc;val_loss\n2;0,13;0,45\n", [0.5, 0.45]),
}


@pytest.mark.parametrize("case", HEADERS)
def test_w2_each_row_is_read_by_the_header_in_force(tmp_path, case):
    text, values = HEADERS[case]
    expected = values if isinstance(values, dict) else dict(enumerate(values, 1))
    assert series(log(tmp_path / "0", text)) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("step,val_loss\n1,.5\n2,.13,.45\n", r"line 3: 3 cells, the header in force \(line 1\) 2 columns"),
        ("step,a\n1,2\nstep,val_loss\n1,.5\n2,.13,.45\n", r"line 5: 3 cells, the header in force \(line 3\) 2 columns"),
        ("step,val_loss\n1,.5\n2,0.3,0.4\n", "line 3: 3 cells"),
        ("step,val_loss,val_loss\n1,.5,.4\n", "line 1: the header has 'val_loss' twice; rename all but one"),
        ("step,val_loss\n1,.5\nstep,lr,val_loss,lr\n", "line 3: the header has 'lr' twice"),
        ("step,loss\n1,.5\n2,.4\niter,val_loss\n3,.45\n", "line 4: iter, val_loss: neither numbers nor a header"),
    ],
)
def test_w2_rows_that_fit_no_header_are_refused_with_their_line(tmp_path, capsys, text, told):
    log(tmp_path / "0", text)
    assert report.main([str(tmp_path), "--metrics", "metrics.csv:val_loss"]) == 2
    err = capsys.readouterr().err
    assert re.search(told, err)
    assert err.count("\n") == 1
    assert not (tmp_path / "report").exists()


def test_w2_a_gain_after_a_resume_with_more_columns_is_a_gain(tmp_path):
    """The instance: val_loss was read as acc under the old header, and a true gain reported as a loss with p = .008."""
    base, gains = [0.50, 0.52, 0.49, 0.51, 0.53], [0.05, 0.06, 0.055, 0.045, 0.05]
    for seed, (loss, gain) in enumerate(zip(base, gains, strict=True)):
        log(tmp_path / f"a{seed}", f"step,val_loss\n1,.9\n2,{loss}\n", overrides=["x=a", f"seed={seed}"])
        text = f"step,val_loss\n1,.9\nstep,acc,val_loss\n2,.{seed + 1}3,{loss - gain}\n"
        log(tmp_path / f"b{seed}", text, overrides=["x=b", f"seed={seed}"])
    ((_, against),) = compare(load_runs(tmp_path, "metrics.csv:val_loss"), "val_loss").others
    assert against.judgement.verdict == "better"
    assert against.difference.p == pytest.approx(
        ttest_rel([b - g for b, g in zip(base, gains, strict=True)], base).pvalue
    )


# W3: step columns


STEP_NAMES = [
    "Step",
    "STEP",
    "_step",
    "global_step",
    "trainer/global_step",
    "iteration",
    "Iter",
    "it",
    "epoch",
    "Epoch",
]
STEP_NAMES += ["round", "update", "num_timesteps", "time/total_timesteps", "training/step", "train-step", "Run - Step"]


@pytest.mark.parametrize("name", STEP_NAMES)
def test_w3_the_usual_step_columns_are_known_in_any_case(tmp_path, name):
    """Arms that log at other steps are compared at 100, which both have; by rows 50 was compared with 100."""
    for arm, steps in (("a", (50, 100)), ("b", (100, 200))):
        text = "".join(f"{step},{1 / step}\n" for step in steps)
        log(tmp_path / arm, f"{name},val_loss\n{text}", overrides=[f"x={arm}", "seed=0"])
    study = load_runs(tmp_path, "metrics.csv:val_loss")
    assert (study.at_step, [run.outcome("val_loss").value for run in study.loaded]) == (100, [0.01, 0.01])
    known = [] if name.lower() == "step" else [f"steps are the column {name} of metrics.csv"]
    assert [line for line in study.remarks if line.startswith("steps are")] == known


@pytest.mark.parametrize(
    ("text", "column", "steps"),
    [
        ("epoch,step,val_loss\n0,10,.5\n0,20,.4\n1,30,.3\n", "step", [10, 20, 30]),
        ("step,epoch,val_loss\n10,0,.5\n,1,.4\n30,2,.3\n", "epoch", [0, 1, 2]),
        ("_step,trainer/global_step,val_loss\n3,10,.5\n7,20,.4\n", "trainer/global_step", [10, 20]),
        ("epoch,step,val_loss\n0,1,.5\n0,2,.4\n1,1,.3\n1,2,.2\n", "epoch", [0, 1]),
        ("step,global_step,val_loss\n1,1,.5\n2,2,.4\n1,3,.3\n", "global_step", [1, 2, 3]),
        ("epoch,step,val_loss\n0,1,.5\n0,2,.4\n0,1,.3\n0,2,.2\n1,3,.1\n", "step", [1, 2, 3]),
        ("step,epoch,val_loss\n1.5,1,.5\n2.5,2,.4\n", "epoch", [1, 2]),
        ("step,epoch,val_loss\n1_000,1,.5\n2_000,2,.4\n", "epoch", [1, 2]),
        ("step,epoch,val_loss\n1e30,1,.5\n2e30,2,.4\n", "epoch", [1, 2]),
        ("step,val_loss\n1.0,.5\n2e0,.4\n", "step", [1, 2]),
        ("step,epoch,val_loss\n0,1,.5\n0,2,.4\n", "epoch", [1, 2]),
    ],
)
def test_w3_the_finest_column_that_counts_on_in_every_record_is_taken(tmp_path, text, column, steps):
    path = log(tmp_path / "0", text)
    assert list(series(path)) == steps
    known = () if column == "step" else (f"steps are the column {column} of metrics.csv",)
    assert load_runs(tmp_path, "metrics.csv:val_loss").remarks == known


def pair(root, first, second):
    """Two runs that differ in x."""
    log(root / "a", first, overrides=["x=a", "seed=0"])
    log(root / "b", second, overrides=["x=b", "seed=0"])


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("k,val_loss\n50,.5\n100,.4\n", "k,val_loss\n100,.4\n", "runs have 1 to 2 values, .* with --step-key COLUMN"),
        ("k,a,val_loss\n1,7,.5\n2,7,.4\n", "k,a,val_loss\n1,7,\n2,7,.5\n3,7,.4\n", "values in different rows.*: k$"),
        (
            "val_loss\n.5\n.4\n",
            "val_loss\n.5\n",
            "no other column rises in whole numbers, so --step-key can name none; log one",
        ),
        ("step,val_loss\n1,.5\n", "iteration,val_loss\n1,.5\n", r"of all runs \(step in a; iteration in b\); no other"),
        ("step,val_loss\n1,.5\n", "val_loss\n.5\n", r"in every record of all runs \(step in a; none in b\)"),
        (
            "step,val_loss\n" + "1,.5\n2,.4\n" * 2,
            "step,val_loss\n" + "1,.5\n2,.4\n" * 3,
            "step starts again 2 times in b",
        ),
    ],
)
def test_w3_runs_whose_steps_are_not_known_and_differ_are_refused(tmp_path, capsys, first, second, told):
    pair(tmp_path, first, second)
    assert report.main([str(tmp_path), "--metrics", "metrics.csv:val_loss"]) == 2
    err = capsys.readouterr().err
    assert re.search(told, err.strip())
    assert err.count("\n") == 1


def test_w3_the_option_that_the_refusal_names_tells_the_steps(tmp_path, capsys):
    pair(tmp_path, "seen,val_loss\n50,.5\n100,.4\n", "seen,val_loss\n100,.3\n200,.1\n300,.1\n")
    command = [str(tmp_path), "--metrics", "metrics.csv:val_loss"]
    assert report.main(command) == 2
    assert capsys.readouterr().err.strip().endswith("--step-key COLUMN; these rise in whole numbers: seen")
    assert report.main([*command, "--step-key", "Seen"]) == 0
    written = (tmp_path / "report" / "report.md").read_text()
    assert "all are compared at step 100" in written
    assert "--step-key Seen" in written
    assert report.main([*command, "--step-key", "sen"]) == 2
    assert "--step-key sen: no such column in a; there are: seen, val_loss" in capsys.readouterr().err


def test_w3_a_step_key_of_other_than_whole_numbers_is_refused(tmp_path):
    pair(tmp_path, "t,val_loss\n.5,.5\n1.0,.4\n", "t,val_loss\n.5,.5\n1.0,.4\n")
    with pytest.raises(StudyError, match="--step-key t: not a whole number in every record of a"):
        load_runs(tmp_path, "metrics.csv:val_loss", step_key="t")


def test_w3_rows_stand_in_where_all_runs_have_the_same_and_for_one_that_diverged(tmp_path):
    pair(tmp_path, "val_loss\n.5\n.4\n", "val_loss\n.6\n.3\n")
    log(tmp_path / "c", "val_loss\nnan\n", overrides=["x=b", "seed=1"])
    study = load_runs(tmp_path, "metrics.csv:val_loss")
    assert [run.outcome("val_loss").value for run in study.loaded] == [0.4, 0.3, None]
    assert study.remarks == ("metrics.csv has no known column of steps for val_loss: steps are row numbers",)


def test_w3_a_run_that_went_back_and_ended_before_is_named(tmp_path):
    log(tmp_path / "0", "step,val_loss\n10,.5\n20,.4\n30,.3\n10,.6\n20,.55\n")
    told = "1 of 1 runs went back and did not reach their highest step again, such as 0, at 20 after 30"
    assert load_runs(tmp_path, "metrics.csv:val_loss").remarks == (
        f"{told}; its value at 30 is from before it went back",
    )


# W25: formats of logs


CURVE = "step,val_loss\n1,.5\n2,.45\n"
RECORDS = [{"step": 1, "val_loss": 0.5}, {"step": 2, "train_loss": 0.3}, {"step": 2, "val_loss": 0.45}]
FORMATS = {
    "gzip": ("metrics.csv.gz", gzip.compress(CURVE.encode())),
    "gzip cut off": ("metrics.csv.gz", gzip.compress((CURVE + "x" * 999).encode(), 0)[:-600]),
    "tabs": ("metrics.tsv", CURVE.replace(",", "\t").encode()),
    "semicolons, decimal commas": ("metrics.csv", CURVE.replace(",", ";").replace(".", "0,").encode()),
    "UTF-16": ("metrics.csv", CURVE.encode("utf-16")),
    "JSON lines": ("log.jsonl", "\n".join(map(json.dumps, RECORDS)).encode()),
    "JSON lines, gzip": ("log.jsonl.gz", gzip.compress("\n".join(map(json.dumps, RECORDS)).encode())),
    "JSON lines, one cut off": (
        "log.jsonl",
        b'{"step": 1, "val_loss": 0.5}\n{"step": 2, "val_l{"step": 2, "val_loss": 0.45}\n{"step": 3, "val',
    ),
    "a list, cut off": ("log.json", json.dumps(RECORDS, indent=2).encode()[:-2]),
    "a list, indented": ("log.json", json.dumps(RECORDS, indent=2).encode()),
    "records, indented": ("log.json", "\n".join(json.dumps(record, indent=2) for record in RECORDS).encode()),
    "a list per column": ("log.json", json.dumps({"step": [1, 2], "val_loss": [0.5, 0.45]}).encode()),
    "trainer_state.json": (
        "trainer_state.json",
        json.dumps({"epoch": 2.0, "global_step": 2, "log_history": RECORDS, "max_steps": 2}, indent=2).encode(),
    ),
}


@pytest.mark.parametrize("case", FORMATS)
def test_w25_logs_are_read_in_the_formats_that_programs_write(tmp_path, case):
    name, data = FORMATS[case]
    assert series(log(tmp_path / "0", data, name)) == {1: 0.5, 2: 0.45}


def test_w25_the_last_trainer_state_of_several_checkpoints_is_read(tmp_path):
    run = write_hydra(tmp_path / "0", ["seed=0"])
    for step in (500, 1000):
        history = [{"epoch": at / 500, "eval_loss": 100 / at, "step": at} for at in range(500, step + 1, 500)]
        path = write(run / f"checkpoint-{step}" / "trainer_state.json", [json.dumps({"log_history": history})])
        touch(path, step)
    study = load_runs(tmp_path, "**/trainer_state.json:eval_loss")
    assert [run.outcome("eval_loss").value for run in study.loaded] == [0.1]
    assert study.series("eval_loss")[0][1].step.tolist() == [500, 1000]


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        (
            "events.out.tfevents.1.host.2.0",
            b'\x18\0\0\0\0\0\0\0\xa3\x7fK"\t\0\0\xc0-\x8e\x87\xdaA\x1a\rbrain.Event:2',
            "TensorBoard",
        ),
        ("metrics.xlsx", b"PK\x03\x04" + b"\0" * 50, "zip archive"),
        ("metrics.parquet", b"PAR1\x15\x04", "Parquet"),
        ("run-1.wandb", b":W&B\x9d\x01\0\0\0\0", "a log of Weights & Biases"),
        ("metrics.pt", b"\x80\x02}q\0X\x04\0\0\0lossq", "a Python pickle"),
        ("metrics.csv", b"step,val_loss\n", "no records that can be read in"),
        ("metrics.csv", b"", "no records that can be read in"),
        ("metrics.csv", b"\0\0\0\0", "no records that can be read in"),
        ("metrics.csv", b"step,val_loss\n1,1_000\n2,2_000\n", "'1_000' is no number"),
        ("metrics.csv", b"step,val_loss\n1,tensor(.5)\n", r"'tensor\(.5\)' is no number"),
        ("log.json", b'{"val_loss": "high"}', "'high' is no number"),
        ("log.json", b'{"val_loss": 1, "val_loss": 2}', "'val_loss' is in one object twice"),
        ("log.txt", b"step val_loss\n1 .5\n", "'step val_loss' is one column; separate columns by commas"),
        ("log.yaml", b"- step: 1\n  loss: 0.5\n", "'- step: 1' is one column"),
        ("log.txt", b"step=1 val_loss=.5\nstep=2 val_loss=.4\n", "is one column; separate columns by commas"),
        ("log.txt", b"{'step': 1, 'val_loss': 0.5}\n", "no records that can be read in"),
        ("metrics.csv", b"1,.5\n2,.4\n", "the first line, 1, .5, has numbers in place of the columns' names"),
        ("metrics.csv", b"step;val_loss\n1;0,5\n2;0.4\n", "0,5 and 0.4 have different decimal marks"),
    ],
)
def test_w25_what_is_not_read_is_named_in_one_line(tmp_path, capsys, name, data, told):
    path = log(tmp_path / "0", data, name)
    assert report.main([str(tmp_path), "--metrics", f"{path.name}:val_loss"]) == 2
    err = capsys.readouterr().err
    assert re.search(told, err)
    assert (err.count("\n"), "no columns" in err) == (1, False)


def test_w25_cells_that_are_no_numbers_are_counted_and_a_run_with_an_empty_file_failed(tmp_path):
    log(tmp_path / "0", "step,val_loss\n1,.5\n2,1_000\n3,.4\n")
    log(tmp_path / "1", "", overrides=["seed=1"])
    study = load_runs(tmp_path, "metrics.csv:val_loss")
    assert [(run.outcome("val_loss").kind, run.outcome("val_loss").value) for run in study.loaded] == [
        ("ok", 0.4),
        ("failed", None),
    ]
    assert (
        study.loaded[1].outcome("val_loss").reason == "no value: there are no records that can be read in metrics.csv"
    )
    assert study.remarks == ("left out: 1 cell of val_loss without a number, such as '1_000' in 0",)


def test_w25_the_metric_is_found_whatever_its_case(tmp_path):
    pair(tmp_path, "Step, Val_Loss\n1,.5\n", "step,val_loss,VAL_LOSS\n1,.4,9\n")
    study = load_runs(tmp_path, "metrics.csv:val_loss")
    assert [run.outcome("val_loss").value for run in study.loaded] == [0.5, 0.4]

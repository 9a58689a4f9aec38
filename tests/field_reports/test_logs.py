"""Runs and logs of other programs as they were found outside: links, changed configs, changed headers, step columns."""

import pytest

from analysis import report
from analysis.foreign import load_runs
from analysis.study import StudyError
from analysis.wording import notes
from tests.analysis.foreign_runs import table, touch, write_hydra

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
    assert study.remarks == (f"{told}; model.width changes with it",)


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

"""Runs of other programs become a study: layouts, variants, seeds, and every way in which a run can go wrong."""

import json
import math

import pytest
from foreign_runs import ARMS, LAYOUTS, lightning, run_folders, table, touch, write, write_grid, write_hydra

from analysis.captions import caption
from analysis.comparison import compare
from analysis.export import comparison_data, to_json
from analysis.foreign import load_runs
from analysis.foreign_logs import Wanted, read_metric
from analysis.study import StudyError

DENSE = "metrics.csv:val_loss"


def values(study, metric="val_loss"):
    found = {}
    for run in study.loaded:
        found.setdefault(run.variant.label, []).append(run.outcome(metric).value)
    return found


def kinds(study, metric="val_loss"):
    return [run.outcome(metric).kind for run in study.loaded]


def plain_runs(root, settings, curve=((10, 0.5),)):
    """One run folder per list of overrides, numbered, each with the same curve."""
    for place, overrides in enumerate(settings):
        table(write_hydra(root / str(place), overrides), curve)
    return root


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_paired_study(tmp_path, layout):
    write_grid(tmp_path / "multirun", layout)
    study = load_runs(tmp_path / "multirun", LAYOUTS[layout][1])
    assert values(study) == {"model=gpt": ARMS["gpt"], "model=mamba": ARMS["mamba"]}
    assert (study.seeds, study.shared_seeds, study.factor_names) == ((0, 1, 2, 3, 4), True, ["model"])
    assert (study.problems, study.replaced, study.remarks) == ((), (), ())
    comparison = compare(study, "val_loss")
    assert comparison.baseline.variant.label == "model=gpt"
    assert comparison.others[0][1].difference.paired


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_curves_come_from_the_same_file(tmp_path, layout):
    study = load_runs(write_grid(tmp_path / "m", layout), LAYOUTS[layout][1])
    first = study.series("val_loss")[0][1]
    assert first.step.tolist() == [10, 20, 30]
    assert first.value.tolist() == pytest.approx([0.9, 0.6, 0.5])
    assert study.curves.groupby("name").size().to_dict() == {"val_loss": 30}


def test_the_last_record_of_the_column_is_the_final_value_and_later_blanks_are_not(tmp_path):
    run = write_hydra(tmp_path / "0", ["seed=1"])
    write(run / "metrics.csv", ["step,val_loss", "1,0.9", "2,0.5", "3,", "4"])
    assert values(load_runs(tmp_path, DENSE)) == {tmp_path.name: [0.5]}


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf"])
def test_a_run_that_ends_in_what_is_not_finite_diverged(tmp_path, text):
    root = write_grid(tmp_path)
    bad = run_folders(root)[0] / "metrics.csv"
    bad.write_text(bad.read_text() + f"40,{text}\n")
    study = load_runs(root, DENSE)
    assert kinds(study) == ["diverged"] + ["ok"] * 9
    assert study.loaded[0].outcome("val_loss").reason == f"not finite: val_loss is {float(text)} at step 40"
    assert study.remarks == ()


@pytest.mark.parametrize("text", ["NaN", "Infinity", "null"])
def test_json_lines_may_hold_nan_tokens_and_null(tmp_path, text):
    root = write_grid(tmp_path, "JSON lines")
    bad = run_folders(root)[2] / "log.jsonl"
    bad.write_text(f'{bad.read_text()}{{"step": 40, "val_loss": {text}}}\n{{"step": 50, "val_lo')
    study = load_runs(root, "log.jsonl:val_loss")
    assert kinds(study).count("diverged") == 1
    series = next(one for run, one in study.series("val_loss") if run.outcome("val_loss").kind == "diverged")
    assert not math.isfinite(series.value[-1])


def test_a_run_without_the_file_or_the_column_failed_and_the_reason_says_which(tmp_path):
    root = write_grid(tmp_path)
    first, second, *_ = run_folders(root)
    (first / "metrics.csv").unlink()
    (second / "metrics.csv").write_text("step,train_loss\n10,0.3\n")
    outcomes = [run.outcome("val_loss") for run in load_runs(root, DENSE).loaded if run.seed == 0]
    assert [(one.kind, one.reason) for one in outcomes] == [
        ("failed", "no metrics: no file matches metrics.csv"),
        ("failed", "no value: no val_loss in metrics.csv; there are: step, train_loss"),
    ]


def test_runs_that_ended_at_different_steps_are_compared_at_the_largest_common_one(tmp_path):
    root = write_grid(tmp_path)
    short = run_folders(root)[3] / "metrics.csv"
    short.write_text("\n".join(short.read_text().splitlines()[:-1]) + "\n")
    study = load_runs(root, DENSE)
    assert values(study)["model=gpt"] == pytest.approx([value + 0.1 for value in ARMS["gpt"]])
    assert study.remarks == (
        "different step budgets: runs ended at steps 20 to 30; all are compared at step 20, the largest that all have; "
        "the first to end is 2026-01-01/10-00-00/8",
    )
    flags = [flag for result in compare(study, "val_loss").results for flag in result.flags]
    assert "different step budgets: 20 and 30 steps" in flags
    assert caption(compare(study, "val_loss")).startswith("val_loss at step 20, lower is better; ")
    assert len(study.series("val_loss")[0][1].step) == 3


def test_runs_without_a_common_step_cannot_be_compared(tmp_path):
    table(write_hydra(tmp_path / "0", ["lr=1", "seed=0"]), [(10, 0.5), (20, 0.4)])
    table(write_hydra(tmp_path / "1", ["lr=2", "seed=0"]), [(15, 0.5), (25, 0.4)])
    with pytest.raises(StudyError, match=r"ended at different steps \(20 to 25\) and have no step in common"):
        load_runs(tmp_path, DENSE)


def test_of_two_runs_of_one_variant_and_seed_the_one_written_last_stands(tmp_path):
    for name, value, at in (("a", 0.3, 60), ("b", 0.4, 0), ("c", 0.5, 30)):
        touch(table(write_hydra(tmp_path / name, ["lr=1", "seed=0"]), [(10, value)]), at)
    write_hydra(tmp_path / "d", ["lr=1", "seed=0"])  # crashed before it logged anything
    study = load_runs(tmp_path, DENSE)
    assert values(study) == {tmp_path.name: [0.3]}
    assert [(one.seed, one.status, one.ended, one.differs) for one in study.replaced] == [
        (0, "finished", "2026-01-01T12:00:00+00:00 in b", True),
        (0, "finished", "2026-01-01T12:00:30+00:00 in c", True),
    ]


def test_of_several_versions_of_a_lightning_log_the_one_written_last_is_read_and_the_report_says_so(tmp_path):
    run = write_hydra(tmp_path / "0", ["seed=0"])
    for version in (0, 1, 10):
        touch(lightning(run, [(10, 0.5 - version / 100)], version), version)
    study = load_runs(tmp_path, "**/metrics.csv:val_loss")
    assert values(study) == {tmp_path.name: [0.4]}
    assert study.remarks == ("several files match **/metrics.csv in 1 of 1 runs; the one written last was read",)


def test_files_written_at_the_same_time_go_by_their_numbers(tmp_path):
    for version in (2, 10):
        lightning(tmp_path, [(10, float(version))], version)
    assert Wanted.parse("**/metrics.csv:x").files(tmp_path)[-1].parent.name == "version_10"


def test_without_a_seed_runs_are_numbered_and_not_paired(tmp_path):
    plain_runs(tmp_path, [["lr=1"], ["lr=2"], ["lr=1"], ["lr=2"]])
    study = load_runs(tmp_path, DENSE)
    assert [(run.variant.label, run.seed) for run in study.loaded] == [
        ("lr=1", 0),
        ("lr=1", 1),
        ("lr=2", 0),
        ("lr=2", 1),
    ]
    assert not study.shared_seeds


@pytest.mark.parametrize("key", ["seed", "trainer.seed", "random_seed", "+trainer.rng.Seed"])
def test_the_seed_is_found_by_the_last_part_of_its_key(tmp_path, key):
    plain_runs(tmp_path, [[f"lr={lr}", f"{key}={seed}"] for lr in (1, 2) for seed in (3, 4)])
    study = load_runs(tmp_path, DENSE)
    assert (study.seeds, study.shared_seeds, study.factor_names) == ((3, 4), True, ["lr"])


def test_the_seed_that_differs_goes_before_one_that_does_not(tmp_path):
    plain_runs(tmp_path, [["data.seed=7", f"trainer.seed={seed}", f"lr={lr}"] for lr in (1, 2) for seed in (3, 4)])
    assert load_runs(tmp_path, DENSE).seeds == (3, 4)


def test_two_keys_that_may_be_the_seed_ask_for_the_option(tmp_path):
    plain_runs(tmp_path, [[f"a.seed={s}", f"b.seed={s % 2}", "lr=1"] for s in range(4)])
    with pytest.raises(StudyError, match=r"2 keys look like the seed: a.seed, b.seed; .*--seed-key"):
        load_runs(tmp_path, DENSE)
    study = load_runs(tmp_path, DENSE, "a.seed")
    assert (study.seeds, study.factor_names) == ((0, 1, 2, 3), ["b.seed"])


def test_a_seed_that_only_the_config_holds_is_taken_from_there(tmp_path):
    for place, seed in enumerate((11, 12)):
        table(write_hydra(tmp_path / str(place), [], {"seed": seed, "lr": 0.1}), [(10, 0.5)])
    study = load_runs(tmp_path, DENSE)
    assert (study.seeds, len(study.variants), study.shared_seeds) == ((11, 12), 1, True)


def test_a_seed_key_that_no_run_has_names_the_nearest(tmp_path):
    root = write_grid(tmp_path)
    with pytest.raises(StudyError, match=r"--seed-key 'trainer.sed' is a key of no run; did you mean trainer.seed"):
        load_runs(root, DENSE, "trainer.sed")
    with pytest.raises(StudyError, match=r"is a key of no run; overridden are: model, trainer.seed"):
        load_runs(root, DENSE, "zzz")


def test_seeds_beyond_the_whole_numbers_of_a_float_stay_apart(tmp_path):
    plain_runs(tmp_path, [[f"seed={2**53 + i}"] for i in range(3)] + [["seed=2.0"]])
    assert load_runs(tmp_path, DENSE).seeds == (2, 2**53, 2**53 + 1, 2**53 + 2)


@pytest.mark.parametrize("seed", ["one", "null", "1.5", "true"])
def test_a_seed_that_is_no_whole_number_is_named_with_its_run(tmp_path, seed):
    plain_runs(tmp_path, [["seed=1"], [f"seed={seed}"]])
    with pytest.raises(StudyError, match=r"seed key seed: .* in 1 is not a whole number"):
        load_runs(tmp_path, DENSE)


def test_an_override_that_one_run_lacks_is_filled_in_from_its_config(tmp_path):
    table(write_hydra(tmp_path / "0", ["seed=0"], {"lr": 0.1, "seed": 0}), [(10, 0.5)])
    table(write_hydra(tmp_path / "1", ["lr=1e-2", "seed=0"], {"lr": 0.01, "seed": 0}), [(10, 0.4)])
    table(write_hydra(tmp_path / "2", ["lr=0.1", "seed=1"], {"lr": 0.1, "seed": 1}), [(10, 0.4)])
    study = load_runs(tmp_path, DENSE)
    assert [variant.factors for variant in study.variants] == [{"lr": 0.1}, {"lr": 0.01}]
    assert [(run.variant.label, run.seed) for run in study.loaded] == [("lr=0.1", 0), ("lr=0.1", 1), ("lr=0.01", 0)]


def test_where_overrides_tell_nothing_apart_the_configs_do(tmp_path):
    for place, (width, seed) in enumerate((width, seed) for width in (8, 16) for seed in (0, 1)):
        run = write_hydra(
            tmp_path / str(place), [f"seed={seed}"], {"seed": seed, "model": {"width": width, "depth": 2}}
        )
        table(run, [(10, 0.5)])
    study = load_runs(tmp_path, DENSE)
    assert [variant.factors for variant in study.variants] == [{"model.width": 8}, {"model.width": 16}]


def test_lists_and_deleted_keys_are_factors_too(tmp_path):
    plain_runs(tmp_path, [["layers=[2,2]", "seed=0"], ["layers=[4,4]", "~callbacks", "seed=0"]])
    study = load_runs(tmp_path, DENSE)
    assert [variant.factors for variant in study.variants] == [
        {"layers": [2, 2]},
        {"layers": [4, 4], "callbacks": None},
    ]
    assert len(study.runs) == 2


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2024-01-01", "2024-01-01"),
        ("2024-13-45", "2024-13-45"),
        ("2001-12-14 21:59:43", "2001-12-14 21:59:43"),
        (".inf", "inf"),
        ("-.inf", "-inf"),
        (".nan", "nan"),
        ("!!binary aGk=", "hi"),
        ("!!set {b, a}", "{a, b}"),
        ("!!int x", "!!int x"),
        ("[1, .inf]", [1, "inf"]),
        ("{2024-01-01: 1, 2: .nan}", {"2024-01-01": 1, "2": "nan"}),
    ],
)
def test_a_value_that_json_lacks_is_a_factor_as_text(tmp_path, written, read):
    study = load_runs(plain_runs(tmp_path, [[f"x={written}", "seed=1"], ["x=1", "seed=1"]]), DENSE)
    assert [variant.factors["x"] for variant in study.variants] == [read, 1]
    assert json.loads(to_json(comparison_data(compare(study, "val_loss"))))["variants"][0]["factors"] == {"x": read}


def test_hidden_folders_and_what_lies_inside_a_run_are_no_runs(tmp_path):
    root = write_grid(tmp_path)
    table(write_hydra(root / ".trash" / "0", ["seed=0"]), [(1, 9.0)])
    table(write_hydra(run_folders(root)[0] / "inner", ["seed=0"]), [(1, 9.0)])
    assert len(load_runs(root, DENSE).loaded) == 10


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("metrics.csv", "is not FILE:COLUMN, such as metrics.csv:val_loss"),
        (":val_loss", "is not FILE:COLUMN"),
        ("/etc/metrics.csv:x", "FILE is a path inside each run folder"),
        ("../metrics.csv:x", "FILE is a path inside each run folder"),
        ("x**.csv:loss", r"in FILE \*\* is a whole folder name, such as \*\*/metrics.csv"),
        ("a/**b/c:loss", "is a whole folder name"),
        (".:loss", "FILE names no file"),
        ("./:loss", "FILE names no file"),
        ("metric.csv:val_loss", r"no file matches 'metric.csv' in any of 10 run folders.*did you mean metrics.csv\?"),
        ("*.txt:val_loss", "2026-01-01/10-00-00/5 holds: metrics.csv"),
        ("metrics.csv:val_los", r"no run has a value in column 'val_los' of metrics.csv; did you mean val_loss\?"),
        ("metrics.csv:zzz", "There are: step, val_loss"),
    ],
)
def test_what_does_not_fit_is_one_line_that_says_what_would(tmp_path, metrics, message):
    with pytest.raises(StudyError, match=message) as caught:
        load_runs(write_grid(tmp_path), metrics)
    assert "\n" not in str(caught.value)


def test_a_folder_without_runs_says_what_is_looked_for(tmp_path):
    with pytest.raises(StudyError, match=r"no run folders here; none below it holds .hydra/overrides.yaml"):
        load_runs(tmp_path, DENSE)


@pytest.mark.parametrize(
    ("lines", "remark", "steps"),
    [
        (["epoch,val_loss", "0,0.5", "2,0.4"], "steps are the column epoch of metrics.csv", [0, 2]),
        (["step,epoch,val_loss", ",0,0.5", ",1,0.4"], "steps are the column epoch of metrics.csv", [0, 1]),
        (
            ["val_loss", "0.5", "0.4"],
            "metrics.csv has no known column of steps for val_loss: steps are row numbers",
            [0, 1],
        ),
    ],
)
def test_without_steps_epochs_or_rows_stand_in_and_the_report_says_so(tmp_path, lines, remark, steps):
    write(write_hydra(tmp_path / "0", ["seed=0"]) / "metrics.csv", lines)
    study = load_runs(tmp_path, DENSE)
    assert study.series("val_loss")[0][1].step.tolist() == steps
    assert study.remarks == (remark,)


def test_of_a_step_logged_twice_the_later_record_stands(tmp_path):
    write(write_hydra(tmp_path / "0", ["seed=0"]) / "m.csv", ["step,loss", "10,0.9", "20,0.8", "10,0.7", "20,0.6"])
    study = load_runs(tmp_path, "m.csv:loss")
    series = study.series("loss")[0][1]
    assert (series.step.tolist(), series.value.tolist(), study.remarks) == ([10, 20], [0.7, 0.6], ())


def test_a_file_with_torn_lines_null_bytes_and_a_byte_order_mark_is_read_as_far_as_it_goes(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes(b"\xef\xbb\xbfstep,loss\n10,0.9\n\0\0\0\n20\n30,0.7\xff\n40,0.6\n50,0.")
    log = read_metric(path, "loss")
    assert (log.steps, list(log.values), log.columns) == ({"step": [10, 40, 50]}, [0.9, 0.6, 0.0], ["step", "loss"])
    assert log.wrong == ["0.7\ufffd"]


@pytest.mark.parametrize(
    ("name", "better"),
    [("val_acc", "higher"), ("test/f1", "higher"), ("vaccine_error", "lower"), ("val_loss", "lower")],
)
def test_the_usual_short_names_of_scores_say_that_higher_is_better(tmp_path, name, better):
    run = write_hydra(tmp_path / "0", ["seed=0"])
    write(run / "metrics.csv", [f"step,{name}", "1,0.5"])
    assert compare(load_runs(tmp_path, f"metrics.csv:{name}"), name).question.direction == better

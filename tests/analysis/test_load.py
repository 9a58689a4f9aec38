"""Reading a study: every planned run becomes one row, whatever became of it."""

import json
import math
from dataclasses import replace

import pytest
from fake_study import (
    CONFIG,
    FIRST_SWEEP,
    changed,
    curve,
    damage,
    ending,
    never_started,
    noise,
    planned,
    record,
    shift_source,
    write_run,
    write_study,
)

from ablate.records import RunFolder, Status, StudyFolder
from analysis import configs
from analysis.load import load_study, unique_labels
from analysis.study import StudyError


def statuses(study):
    return {(run.variant.label, run.seed): run.status for run in study.loaded}


def test_every_planned_run_is_one_row_with_its_factors_metrics_and_cost(tmp_path):
    write_study(tmp_path / "s", {"rope": [0.5, 0.4], "roper": [0.3, 0.2]})
    frame = load_study(tmp_path / "s").runs
    assert list(frame["label"]) == ["rope", "rope", "roper", "roper"]
    assert list(frame["attention"]) == ["rope", "rope", "roper", "roper"]
    assert list(frame["eval/loss"]) == [0.5, 0.4, 0.3, 0.2]
    assert list(frame["seconds"]) == [25.0] * 4


def test_what_did_not_finish_is_named_for_what_it_is(tmp_path):
    changes = {
        ("rope", 0): ending(Status.failed, "out of memory"),
        ("rope", 1): ending(Status.diverged),
        ("rope", 2): ending(Status.running),
        ("rope", 3): never_started,
        ("rope", 4): ending(Status.pruned),
    }
    folder = write_study(tmp_path / "s", {"rope": noise(0, 7)}, changes=changes)
    damage(folder, "rope", 5)
    study = load_study(tmp_path / "s")
    assert list(statuses(study).values()) == [
        "failed", "diverged", "running", "missing", "pruned", "damaged", "finished",
    ]  # fmt: skip
    assert study.loaded[0].outcome("eval/loss").reason == "RuntimeError: out of memory"


def test_a_damaged_record_is_a_warning_that_names_the_file(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": noise(0, 3)})
    damage(folder, "rope", 1)
    study = load_study(tmp_path / "s")
    assert len(study.problems) == 1
    assert study.problems[0].startswith(f"runs/{planned('rope').folder}/seed=1/run.json: not valid JSON")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "null", "{}", '{"status": "done"}', "\xff\xfe", '{"metrics": {"eval/loss": "low"}}', '{"seed": "0"}'],
)
def test_no_content_of_a_record_crashes_the_analysis(tmp_path, text):
    folder = write_study(tmp_path / "s", {"rope": noise(0, 3)})
    path = folder.run(planned("rope").folder, 1).record
    if text.startswith(('{"m', '{"seed')):
        path.write_text(json.dumps({**json.loads(path.read_text()), **json.loads(text)}))
    else:
        path.write_bytes(text.encode("latin-1"))
    study = load_study(tmp_path / "s")
    assert [run.status for run in study.loaded] == ["finished", "damaged", "finished"]
    assert "seed=1/run.json" in study.problems[0]


def test_a_bare_nan_in_a_record_is_a_divergence(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": [0.5, 0.123, 0.4]})
    path = folder.run(planned("rope").folder, 1).record
    path.write_text(path.read_text().replace("0.123", "NaN"))
    assert [run.outcome("eval/loss").kind for run in load_study(tmp_path / "s").loaded] == ["ok", "diverged", "ok"]


def test_a_finished_run_without_the_metric_failed_and_with_null_diverged(tmp_path):
    changes = {
        ("rope", 0): changed(metrics={"eval/accuracy": 1.0}),
        ("rope", 1): changed(metrics={"eval/loss": math.nan}),
    }
    write_study(tmp_path / "s", {"rope": noise(0, 3)}, changes=changes)
    kinds = [run.outcome("eval/loss").kind for run in load_study(tmp_path / "s").loaded]
    assert kinds == ["failed", "diverged", "ok"]


def test_a_run_shorter_than_planned_is_incomplete_and_gives_no_value(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 3)}, changes={("rope", 1): changed(steps_done=60)})
    outcome = load_study(tmp_path / "s").loaded[1].outcome("eval/loss")
    assert (outcome.kind, outcome.reason) == ("failed", "incomplete: 60 of 100 steps")


def test_the_latest_sweep_is_meant_unless_one_is_named(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 2), "roper": noise(1, 2)})
    write_study(tmp_path / "s", {"rope": noise(0, 3)}, sweep="20260201T000000-bbbb")
    assert len(load_study(tmp_path / "s").loaded) == 3
    assert len(load_study(tmp_path / "s", FIRST_SWEEP).loaded) == 4
    with pytest.raises(StudyError, match=f"no sweep 'nope' in s; there are: {FIRST_SWEEP}"):
        load_study(tmp_path / "s", "nope")


def test_all_sweeps_together_hold_each_run_once(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 6)})
    write_study(tmp_path / "s", {"rope": noise(0, 6)}, sweep="20260201T000000-bbbb")
    assert len(load_study(tmp_path / "s", "all").loaded) == 6


def test_with_all_the_factors_are_the_config_keys_that_differ(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 2), "roper": noise(1, 2)})
    single = planned("alone")
    run = StudyFolder(tmp_path / "s").run(single.folder, 7)
    write_run(run, record(single, 7, 0.4), config=CONFIG + "extra:\n  depth: 3\n")
    study = load_study(tmp_path / "s", "all")
    assert [variant.label for variant in study.variants] == ["rope", "roper", "alone"]
    assert study.factor_names == ["model.attention._target_", "extra.depth"]
    assert "extra.depth" not in study.variants[0].factors
    assert study.variants[2].factors["extra.depth"] == 3


def test_with_all_and_without_readable_configs_the_planned_factors_stand_in(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": noise(0, 2), "roper": noise(1, 2)})
    for run in folder.runs():
        run.config.unlink()
    study = load_study(tmp_path / "s", "all")
    assert [variant.factors for variant in study.variants] == [{"attention": "rope"}, {"attention": "roper"}]


def test_single_runs_without_a_sweep_make_a_study(tmp_path):
    cell = planned("rope")
    write_run(StudyFolder(tmp_path / "s").run(cell.folder, 0), record(cell, 0, 0.4))
    assert load_study(tmp_path / "s").sweep == "all"


def test_a_replaced_result_is_listed_and_flagged_when_it_differs(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": [0.5, 0.4, 0.3]})
    cell = planned("rope")
    for seed, old in ((0, 0.5), (1, 0.9)):
        earlier = RunFolder(folder.run(cell.folder, seed).previous / "20260101T000000")
        write_run(earlier, record(cell, seed, old))
    study = load_study(tmp_path / "s")
    assert [(one.seed, one.differs) for one in study.replaced] == [(0, False), (1, True)]
    assert list(study.runs["eval/loss"]) == [0.5, 0.4, 0.3]


def test_mixed_source_fingerprints_are_seen(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": noise(0, 3)})
    assert not load_study(tmp_path / "s").mixed_code
    shift_source(folder)
    assert load_study(tmp_path / "s").mixed_code


@pytest.mark.parametrize("seeds", [1, 3])
def test_list_and_dict_factors_group_and_keep_one_row_per_variant(tmp_path, seeds):
    factors = {"a": {"model.layers": [2, 2], "o": {"x": 1}}, "b": {"model.layers": [4, 4], "o": {"x": 2}}}
    write_study(tmp_path / "s", {"a": noise(0, seeds), "b": noise(1, seeds)}, factors=factors)
    grouped = load_study(tmp_path / "s").runs.groupby(["model.layers", "o"]).size()
    assert grouped.to_dict() == {("[2,2]", '{"x":1}'): seeds, ("[4,4]", '{"x":2}'): seeds}


def test_a_variant_that_lacks_a_factor_keeps_its_rows(tmp_path):
    factors = {"none": {"attention": "none"}, "rope": {"attention": "rope", "rope_percentage": 0.5}}
    write_study(tmp_path / "s", {"none": noise(0, 2), "rope": noise(1, 2)}, factors=factors)
    frame = load_study(tmp_path / "s").runs
    assert list(frame["rope_percentage"].isna()) == [True, True, False, False]


def test_a_factor_named_like_a_fixed_column_does_not_overwrite_it(tmp_path):
    write_study(tmp_path / "s", {"a": noise(0, 1)}, factors={"a": {"device": "tpu", "label": "x"}})
    frame = load_study(tmp_path / "s").runs
    assert list(frame["factor.device"]) == ["tpu"]
    assert list(frame["label"]) == ["a"]


def test_curves_are_long_and_the_later_record_of_a_step_wins(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": [0.4]}, curves=True)
    run = folder.run(planned("rope").folder, 0)
    run.append_metrics([{"step": 100, "tokens": 6400, "seconds": 30.0, "split": "eval", "loss": 9.0}])
    with run.metrics.open("a") as file:
        file.write('{"step": 120, "tok')
    frame = load_study(tmp_path / "s").curves
    assert list(frame["step"]) == [0, 20, 40, 60, 80, 100]
    assert frame["value"].iloc[-1] == 9.0


def test_curves_of_different_length_and_interval_are_all_kept(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": [0.4, 0.4, 0.4]})
    for seed, steps in enumerate((range(0, 101, 20), range(0, 61, 20), range(0, 101, 50))):
        folder.run(planned("rope").folder, seed).append_metrics(curve(0.4, steps))
    counts = load_study(tmp_path / "s").curves.groupby("step").size()
    assert counts.to_dict() == {0: 3, 20: 2, 40: 2, 50: 1, 60: 2, 80: 1, 100: 2}


def test_summaries_read_no_curves(tmp_path, monkeypatch):
    write_study(tmp_path / "s", {"rope": noise(0, 2)}, curves=True)
    monkeypatch.setattr(RunFolder, "read_metrics", lambda _: pytest.fail("a curve was read"))
    assert len(load_study(tmp_path / "s").runs) == 2


def test_a_study_without_curves_has_an_empty_frame(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 2)})
    assert load_study(tmp_path / "s").curves.empty


def test_a_missing_folder_names_the_nearest_study(tmp_path):
    (tmp_path / "copy_repeat").mkdir()
    with pytest.raises(StudyError, match="did you mean copy_repeat"):
        load_study(tmp_path / "copy_repaet")
    with pytest.raises(StudyError, match="holds no studies"):
        load_study(tmp_path / "nowhere" / "x")


def test_an_empty_folder_is_said_to_be_empty(tmp_path):
    with pytest.raises(StudyError, match="the study is empty"):
        load_study(tmp_path)


def test_a_study_of_which_nothing_can_be_read_says_so(tmp_path):
    run = tmp_path / "runs" / "x" / "y"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{")
    with pytest.raises(StudyError, match="no run of this study can be read"):
        load_study(tmp_path)


def test_a_damaged_plan_is_a_warning_and_the_others_stand(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": noise(0, 2)})
    folder.sweep_file("20260201T000000-bbbb").write_text("[")
    study = load_study(tmp_path / "s")
    assert study.sweep == FIRST_SWEEP
    assert "bbbb.json" in study.problems[0]


def test_labels_that_collide_are_told_apart():
    pairs = [("c1" * 8, "rope"), ("c2" * 8, "rope"), ("c3" * 8, "none")]
    assert unique_labels(pairs, {"c1" * 8: {"t.steps": 10}, "c2" * 8: {"t.steps": 20}}) == {
        "c1" * 8: "rope (steps=10)", "c2" * 8: "rope (steps=20)", "c3" * 8: "none",
    }  # fmt: skip
    assert list(unique_labels(pairs).values()) == ["rope [c1c1c1c1]", "rope [c2c2c2c2]", "none"]


def test_yaml_numbers_are_numbers_and_quoted_text_stays_text(tmp_path):
    (tmp_path / "config.yaml").write_text("lr: 1e-3\ntag: '1E23'\nb: {c: 5e-05, d: [1, 2]}\n")
    config = configs.read_config(RunFolder(tmp_path))
    assert config == {"lr": 0.001, "tag": "1E23", "b.c": 5e-5, "b.d": [1, 2]}


def test_one_and_one_point_zero_are_one_value_and_text_another():
    flat = {"x": {"a": 1, "b": 1}, "y": {"a": 1.0, "b": "1"}}
    assert configs.differing(flat) == {"x": {"b": 1}, "y": {"b": "1"}}


def test_two_studies_in_one_folder_are_refused_by_name_and_number(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": noise(0, 3)})
    run = folder.run(planned("rope").folder, 1)
    run.write(replace(run.read(), study="addition"))
    with pytest.raises(StudyError, match="mixes 2 studies: 2 runs of copy_repeat and 1 run of addition; move the runs"):
        load_study(tmp_path / "s")


def test_a_folder_of_studies_names_them(tmp_path):
    write_study(tmp_path / "multirun" / "a", {"rope": noise(0, 1)})
    write_study(tmp_path / "multirun" / "b", {"rope": noise(0, 1)})
    with pytest.raises(StudyError, match=r"multirun is no study but holds 2: a, b; name one, such as .*multirun/a"):
        load_study(tmp_path / "multirun")


def test_a_folder_of_other_runs_asks_where_their_metrics_are(tmp_path):
    (tmp_path / "2026-01-01" / "0" / ".hydra").mkdir(parents=True)
    with pytest.raises(StudyError, match=r"holds runs of another program: say where .* --metrics FILE:COLUMN"):
        load_study(tmp_path)

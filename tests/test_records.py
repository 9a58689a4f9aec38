"""Files of runs and sweeps: atomic, strict, readable by any language."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.jsonfiles import RecordError, canonical_json, write_json
from ablate.records import PlannedCell, RunFolder, RunRecord, Status, StudyFolder, SweepPlan

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def record(**changes) -> RunRecord:
    values = {"status": Status.finished, "study": "s", "cell": "c" * 64, "label": "rope", "factors": {}, "seed": 3}
    return RunRecord(**{**values, **changes})


def test_a_record_reads_back_equal(tmp_path):
    folder = RunFolder(tmp_path)
    written = record(metrics={"eval/loss": 0.5}, factors={"model.layers": [2, 2]}, error={"type": "E", "message": "m"})
    folder.write(written)
    assert folder.read() == written


def test_a_folder_without_a_record_reads_as_none(tmp_path):
    assert RunFolder(tmp_path).read() is None


def test_numbers_that_are_not_finite_are_written_as_null_so_strict_readers_can_read(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write(record(metrics={"eval/loss": math.nan, "eval/accuracy": math.inf}))
    text = folder.record.read_text()
    assert json.loads(text, parse_constant=pytest.fail)["metrics"] == {"eval/loss": None, "eval/accuracy": None}


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_a_record_cut_short_is_an_error_that_names_the_file(tmp_path, cut):
    folder = RunFolder(tmp_path)
    folder.write(record())
    folder.record.write_bytes(folder.record.read_bytes()[:cut])
    with pytest.raises(RecordError, match=r"run\.json"):
        folder.read()


def test_json_of_another_kind_is_an_error_that_names_the_file(tmp_path):
    folder = RunFolder(tmp_path)
    folder.record.write_text('{"status": "well"}')
    with pytest.raises(RecordError, match=r"run\.json: not a run record"):
        folder.read()


def test_a_record_of_a_later_version_with_more_keys_is_read(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write(record())
    data = json.loads(folder.record.read_text()) | {"new_key": 1}
    folder.record.write_text(json.dumps(data))
    assert folder.read() == record()


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_of_a_step_logged_twice_the_later_record_stands_and_torn_lines_are_left_out(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append_metrics([{"step": 1, "split": "train", "loss": 1.0}, {"step": 2, "split": "train", "loss": 2.0}])
    folder.append_metrics([{"step": 2, "split": "eval", "loss": 9.0}, {"step": 2, "split": "train", "loss": 3.0}])
    with folder.metrics.open("a") as file:
        file.write('{"step": 3, "spl')
    assert [(r["step"], r["split"], r["loss"]) for r in folder.read_metrics()] == [
        (1, "train", 1.0),
        (2, "eval", 9.0),
        (2, "train", 3.0),
    ]


def test_metrics_after_the_checkpoint_are_dropped_when_a_run_continues(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append_metrics([{"step": step, "split": "train", "loss": float(step)} for step in range(1, 6)])
    folder.keep_metrics_until(3)
    assert [r["step"] for r in folder.read_metrics()] == [1, 2, 3]


def test_archiving_moves_results_and_drops_checkpoints(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write(record())
    folder.checkpoint.write_bytes(b"x")
    folder.archive("2026-01-01")
    assert folder.read() is None
    assert not folder.checkpoint.exists()
    assert [old.read() for old in folder.superseded()] == [record()]


def test_a_plan_reads_back_equal_and_ids_come_oldest_first(tmp_path):
    study = StudyFolder(tmp_path)
    cell = PlannedCell(
        cell="c" * 64, label="rope", factors={"attention": "rope"}, folder="gpt-rope-c", overrides=["a=b"]
    )
    plans = [
        SweepPlan(id=f"2026010{day}T000000-aa", created="", command="", study="s", cells=[cell], seeds=[0, 1])
        for day in (2, 1)
    ]
    for plan in plans:
        study.write_sweep(plan)
    assert study.sweep_ids() == ["20260101T000000-aa", "20260102T000000-aa"]
    assert study.read_sweep(plans[0].id) == plans[0]


@given(JSON_VALUES)
def test_canonical_json_does_not_depend_on_key_order(value):
    reordered = json.loads(json.dumps(value), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert canonical_json(value) == canonical_json(reordered)


def test_canonical_json_takes_1_and_1_point_0_as_one_value_and_text_as_another():
    assert canonical_json({"a": 1}) == canonical_json({"a": 1.0})
    assert canonical_json({"a": 1}) != canonical_json({"a": "1"})
    assert canonical_json([2, 2]) == canonical_json((2, 2))
    assert canonical_json(True) != canonical_json(1)


def test_a_plan_is_written_while_another_sweep_renames_its_own(tmp_path):
    study = StudyFolder(tmp_path)
    plan = SweepPlan(id="20260101T000000-aa", created="", command="", study="s", cells=[], seeds=[0])
    study.write_sweep(plan)
    (study.sweeps_path / ".20260101T000000-bb.json.tmp").symlink_to("gone")  # listed, and gone when looked at
    study.write_sweep(plan)
    assert study.sweep_ids() == [plan.id]


def test_cells_that_a_search_adds_belong_to_its_plan_each_once(tmp_path):
    study = StudyFolder(tmp_path)
    search = {"storage": "s", "study_name": "n", "metric": "eval/loss", "pruner": None, "trials": {}}
    plan = SweepPlan(id="1", created="", command="", study="s", cells=[], seeds=[0], search=search)
    study.write_sweep(plan)
    cells = [PlannedCell(cell=name * 8, label=name, factors={}, folder=name, overrides=[]) for name in "ab"]
    for trial, cell in enumerate([*cells, cells[0]]):
        study.add_cell("1", cell, trial)
    found = study.read_sweep("1")
    assert found.cells == cells
    assert found.search is not None
    assert found.search["trials"] == {"a" * 8: 2, "b" * 8: 1}
    assert study.sweep_ids() == ["1"]

"""Series of logs, and what is kept of them: the same as the slow reading, whatever has become of the cache."""

import json
import os
import shutil
import sys

import numpy as np
import pytest
from fake_study import noise, planned, write_study
from hypothesis import given
from hypothesis import strategies as st

from ablate.records import RunFolder
from analysis import report
from analysis.cache import Cache
from analysis.curves import RunLog, parse_lines, read_all
from analysis.load import load_study
from analysis.progress import tracked
from analysis.series import Series, series_of

METRIC = "eval/loss"


@pytest.fixture
def study(tmp_path):
    return write_study(tmp_path / "s", {"rope": noise(0, 3), "roper": noise(1, 3)}, curves=True)


def series_by_hand(run: RunFolder, split: str, name: str):
    """Each line parsed, one after the other."""
    found = {}
    for line in run.metrics.read_text().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("split") == split and name in record:
            found[record["step"]] = record[name]
    return sorted(found.items())


def pairs(series: Series):
    return list(zip(series.step.tolist(), series.value.tolist(), strict=True))


def all_pairs(folder):
    return [pairs(one) for _, one in load_study(folder.path).series(METRIC)]


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from(["eval", "train"]), st.sampled_from([0.5, 1, -2e-9, 1e30])),
        max_size=30,
    ),
    st.booleans(),
)
def test_a_series_is_what_parsing_every_line_gives(tmp_path_factory, logged, torn):
    run = RunFolder(tmp_path_factory.mktemp("run"))
    run.append_metrics([{"step": step, "split": split, "loss": value} for step, split, value in logged])
    if torn:
        with run.metrics.open("a") as file:
            file.write('{"step": 3, "split": "eval", "lo')
    assert pairs(RunLog(run).series(METRIC)) == series_by_hand(run, "eval", "loss")


def test_values_that_were_not_finite_are_nan_and_other_entries_no_values(tmp_path):
    run = RunFolder(tmp_path)
    run.append_metrics([{"step": 1, "split": "eval", "loss": float("nan"), "ok": True, "note": "x"}])
    assert np.isnan(RunLog(run).series(METRIC).value).all()
    assert RunLog(run).series("eval/ok").step.size == RunLog(run).series("eval/note").step.size == 0
    assert RunLog(RunFolder(tmp_path / "nowhere")).series(METRIC).step.size == 0


def test_lines_with_nan_tokens_are_read_and_what_is_no_object_is_left_out():
    lines = [b'{"a": NaN}', b"[1]", b'{"a": 1', b"", b'{"a": 2}']
    assert [record["a"] for record in parse_lines(lines)][1:] == [2]
    assert np.isnan(parse_lines(lines)[0]["a"])


def test_unchanged_logs_are_not_opened_again(study, monkeypatch):
    first = all_pairs(study)
    monkeypatch.setattr(RunLog, "series", lambda *_: pytest.fail("a log was read again"))
    assert all_pairs(study) == first


def test_a_log_that_changed_is_read_again_and_only_that_one(study, monkeypatch):
    all_pairs(study)
    run = study.run(planned("rope").folder, 1)
    run.append_metrics([{"step": 120, "tokens": 1, "seconds": 1.0, "split": "eval", "loss": 9.0}])
    read, real = [], RunLog.series
    monkeypatch.setattr(RunLog, "series", lambda log, metric: read.append(log.folder.path) or real(log, metric))
    assert all_pairs(study)[1][-1] == (120, 9.0)
    assert read == [run.path]


def test_a_log_of_the_same_size_that_was_written_later_is_read_again(study):
    before = all_pairs(study)
    metrics = study.run(planned("rope").folder, 0).metrics
    metrics.write_bytes(metrics.read_bytes().replace(b'"step": 100', b'"step": 101'))
    os.utime(metrics, ns=(0, 0))
    assert all_pairs(study)[0][-1][0] == before[0][-1][0] + 1


def test_a_removed_log_is_gone_from_the_study_and_with_the_next_change_from_the_cache(study):
    all_pairs(study)
    run = study.run(planned("rope").folder, 0)
    run.metrics.unlink()
    assert all_pairs(study)[0] == []
    study.run(planned("rope").folder, 1).append_metrics([{"step": 120, "split": "eval", "loss": 9.0}])
    all_pairs(study)
    kept = {stamp.path for stamp in Cache(study.path).series(METRIC)}
    assert len(kept) == 5
    assert run.metrics.relative_to(study.path).as_posix() not in kept


DAMAGE = {
    "empty": lambda content: b"",
    "cut short": lambda content: content[: len(content) // 2],
    "one byte changed": lambda content: content[:200] + bytes([content[200] ^ 255]) + content[201:],
    "no zip at all": lambda content: b"hello",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_cache_is_read_over_and_made_anew(study, how):
    first = all_pairs(study)
    (file,) = study.analysis_cache.iterdir()
    whole = file.read_bytes()
    file.write_bytes(DAMAGE[how](whole))
    assert all_pairs(study) == first
    assert file.read_bytes() == whole


def test_an_index_that_points_outside_the_arrays_is_damage(tmp_path):
    cache = Cache(tmp_path)
    log = tmp_path / "log"
    log.write_text("x")
    stamp = cache.stamp(log)
    cache.keep_series(METRIC, {stamp: series_of([1], [2], [3])})
    assert pairs(cache.series(METRIC)[stamp]) == [(1, 3.0)]
    (file,) = (tmp_path / ".analysis_cache").iterdir()
    with np.load(file) as arrays:
        changed = {name: arrays[name][:0] if name == "step" else arrays[name] for name in arrays.files}
    with file.open("wb") as out:
        np.savez(out, **changed)
    assert cache.series(METRIC) == {}


def test_where_nothing_can_be_written_nothing_is_kept_and_the_result_is_the_same(study):
    (study.path / ".analysis_cache").write_text("a file in the way of the folder")
    first = all_pairs(study)
    assert all_pairs(study) == first
    assert all(len(one) == 6 for one in first)


def test_without_a_root_nothing_is_kept(study):
    logs = [RunLog(run) for run in study.runs()]
    assert [len(one.step) for one in read_all([*logs, None], METRIC, Cache())] == [6] * 6 + [0]
    assert not study.analysis_cache.exists()


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_report_has_the_same_bytes_with_and_without_the_cache_and_says_nothing_of_it(study):
    options = [str(study.path), "--threshold", "0.6"]
    assert report.main(options) == 0
    first = files(study.report)
    assert not any(".analysis_cache" in str(path) for path in first)
    report.main(options)
    assert files(study.report) == first
    shutil.rmtree(study.analysis_cache)
    report.main(options)
    assert files(study.report) == first


def test_figures_are_taken_from_the_report_before_unless_they_were_edited_or_would_differ(study, monkeypatch):
    from analysis.plots import base

    drawn, real = [], base.render
    monkeypatch.setattr(base, "render", lambda plot, numbers: drawn.append(plot.name) or real(plot, numbers))
    report.main([str(study.path)])
    whole = files(study.report)
    assert sorted(drawn) == ["learning_curves", "paired_difference"]
    drawn.clear()
    report.main([str(study.path)])
    assert drawn == []
    (study.report / "figures" / "paired_difference.svg").write_text("edited")
    report.main([str(study.path)])
    assert drawn == ["paired_difference"]
    assert files(study.report) == whole
    drawn.clear()
    report.main([str(study.path), "--margin", "0.01"])
    assert drawn == ["paired_difference"]
    monkeypatch.setattr(base, "_code", lambda: "other code")
    report.main([str(study.path), "--margin", "0.01"])
    assert sorted(drawn) == ["learning_curves", "paired_difference", "paired_difference"]


def test_a_damaged_list_of_figures_is_drawn_over(study):
    report.main([str(study.path)])
    whole = files(study.report)
    for text in ("[]", "{", ""):
        (study.analysis_cache / "figures.json").write_text(text)
        assert Cache(study.path).figures() == {}
    assert report.main([str(study.path)]) == 0
    assert files(study.report) == whole


def test_progress_is_silent_when_quick_and_a_line_when_not(capsys):
    assert list(tracked([1, 2, 3], "reading")) == [1, 2, 3]
    assert capsys.readouterr().err == ""
    assert list(tracked([1, 2, 3], "reading", quick=0.0)) == [1, 2, 3]
    assert capsys.readouterr().err == "reading: 0 of 3\n"
    assert list(tracked([], "reading", quick=0.0)) == []


def test_on_a_terminal_progress_is_a_bar_that_leaves_nothing_out(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert list(tracked(range(5), "reading", quick=0.0)) == [0, 1, 2, 3, 4]

"""Where the time of a sweep went, on records written by hand."""

import pytest

from ablate.records import PlannedCell, RunRecord, Status, StudyFolder, SweepPlan
from benchmarks import sweep_overhead
from benchmarks.sweep_overhead import costs, handovers, most_at_once


def plan(identity="20260101T000000-aaaa", seeds=(0, 1)):
    cell = PlannedCell(cell="c" * 64, label="rope", factors={}, folder="rope-cccccccc", overrides=[])
    return SweepPlan(
        id=identity,
        created="2026-01-01T00:00:00+00:00",
        command="",
        study="study",
        cells=[cell],
        seeds=list(seeds),
    )


def write_run(study, seed, started, ended, **changes):
    """A run from second `started` to `ended` of its minute: 6.5 s training (.5 s data), 1 s evaluation by default."""
    values = {"sweep": "20260101T000000-aaaa", "seconds": 7.5, "train_seconds": 6.5} | changes
    folder = study.run("rope-cccccccc", seed)
    record = RunRecord(
        status=Status.finished,
        study="study",
        cell="c" * 64,
        label="rope",
        factors={},
        seed=seed,
        started=f"2026-01-01T00:00:{started:02d}+00:00",
        ended=ended and f"2026-01-01T00:00:{ended:02d}+00:00",
        evaluation_seconds=1.0,
        data_seconds=0.5,
        **values,
    )
    folder.path.mkdir(parents=True)
    folder.write(record)


@pytest.fixture
def study(tmp_path):
    return StudyFolder(tmp_path / "study")


def test_two_runs_at_once_share_the_time_of_two_processes(study):
    study.write_sweep(plan())
    write_run(study, 0, 2, 10)
    write_run(study, 1, 3, 12)
    found = costs(study)
    assert (found.runs, found.left_out, found.processes) == (2, 0, 2)
    assert found.wall == pytest.approx(12)
    assert (found.training, found.evaluation, found.data) == (13.0, 2.0, 1.0)
    assert found.recording == pytest.approx(8 + 9 - 15)
    assert found.between == pytest.approx(24 - 17)
    assert found.overhead == pytest.approx(24 / 13)


def test_the_parts_add_up_to_what_the_processes_had(study):
    study.write_sweep(plan())
    write_run(study, 0, 2, 10)
    write_run(study, 1, 10, 20)
    found = costs(study)
    assert found.processes == 1
    parts = found.training + found.evaluation + found.recording + found.between
    assert parts == pytest.approx(found.available)


def test_runs_of_other_sweeps_continued_ones_and_ones_without_an_end_are_left_out(study):
    study.write_sweep(plan(seeds=range(5)))
    write_run(study, 0, 2, 10)
    write_run(study, 1, 2, 10, sweep="another")
    write_run(study, 2, 2, 10, resumed=1)
    write_run(study, 3, 2, None)
    found = costs(study)
    assert (found.runs, found.left_out) == (1, 4)
    assert found.training == 6.5


def test_the_latest_sweep_is_taken_unless_another_is_named(study):
    study.write_sweep(plan())
    study.write_sweep(plan("20260102T000000-bbbb"))
    write_run(study, 0, 2, 10)
    write_run(study, 1, 2, 20, sweep="20260102T000000-bbbb")
    assert costs(study).wall == pytest.approx(20)
    assert costs(study, "20260101T000000-aaaa").wall == pytest.approx(10)


def test_a_sweep_that_trained_nothing_is_refused(study):
    study.write_sweep(plan())
    with pytest.raises(ValueError, match="trained no run from start to end"):
        costs(study)


def test_a_folder_without_sweeps_is_refused(study):
    with pytest.raises(ValueError, match="no sweep in this study folder"):
        costs(study)


def test_an_unknown_sweep_is_refused_with_those_there_are(study, capsys):
    study.write_sweep(plan())
    with pytest.raises(SystemExit):
        sweep_overhead.main([str(study.path), "--sweep", "nope"])
    assert "--sweep nope: no such sweep" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spans", "expected"),
    [([], 0), ([(0, 1)], 1), ([(0, 1), (1, 2)], 1), ([(0, 2), (1, 3), (2, 4)], 2), ([(0, 9), (1, 2), (1, 3)], 3)],
)
def test_the_number_of_processes_is_the_most_runs_that_share_a_moment(spans, expected):
    assert most_at_once(spans) == expected


def test_the_command_shows_where_the_time_went(study, capsys):
    study.write_sweep(plan())
    write_run(study, 0, 2, 10)
    sweep_overhead.main([str(study.path)])
    out = capsys.readouterr().out
    assert "1 runs, 1 at once, 10.0 s: overhead 1.538" in out
    assert "1 planned runs left out" in out


def test_each_start_takes_the_place_that_was_free_longest():
    # The first run of each of two places takes none; then 0.5 after the end at 4, 1 after 5, 0.25 after 9.
    spans = [(0.0, 4.0), (1.0, 5.0), (4.5, 9.0), (6.0, 10.0), (9.25, 12.0)]
    assert handovers(spans, [0.0] * 5) == (0.5, 1.0, 0.25)
    assert handovers(spans, [9.0, 9.0, 2.0, 4.0, 8.0]) == (2.5, 5.0, 8.25)  # and on to the first step
    assert handovers([(0.0, 1.0)], [9.0]) == ()

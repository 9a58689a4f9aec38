"""What a sweep says: how long it may take, and what went wrong, in few lines however large it is."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from ablate.records import PlannedCell, RunFolder, RunRecord, Status, StudyFolder, SweepPlan
from ablate.sweep import told
from ablate.sweep.runs import PlannedRun, State

CELL = PlannedCell(cell="c" * 64, label="rope[x]", factors={}, folder="gpt-rope-cccccccc", overrides=[])


def state(status: str, number: int, error=None) -> tuple[PlannedRun, State]:
    folder = RunFolder(Path(f"multirun/s/runs/gpt-rope-cccccccc/seed={number}"))
    record = None
    if status not in ("waiting", "damaged"):
        record = RunRecord(status=Status(status), study="s", cell="c", label="l", factors={}, seed=number, error=error)
    return PlannedRun(CELL, number, folder), State(status, record)


def said(states, errors=None, *, stopped=False) -> list[str]:
    console = Console(file=io.StringIO(), width=200)
    told.failures(console, states, errors or {}, stopped=stopped)
    return console.file.getvalue().splitlines()


def test_the_plan_shows_labels_and_factors_in_brackets_as_they_are():
    odd = PlannedCell(cell="c" * 64, label="[/x]", factors={"optimizer.betas": "[0.9, 0.95]"}, folder="c", overrides=[])
    plan = SweepPlan(id="a", created="", command="", study="s", cells=[odd], seeds=[0], notes=["[/note]"])
    console = Console(file=io.StringIO(), width=200)
    study = StudyFolder(Path("multirun/s[/bold]"))
    told.announce(console, plan, told.headline(study, "1 cell", 1, 1, ""), [PlannedRun(odd, 0, study.run("c", 0))])
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    assert lines == [
        "multirun/s[/bold]: 1 cell; 0 done, 1 to train",
        "cell label factors done left",
        "cccccccc [/x] optimizer.betas=[0.9, 0.95] 0 1",
        "note: [/note]",
    ]


def test_a_failure_is_told_with_its_reason_and_its_folder():
    failed = state("failed", 3, {"type": "ValueError", "message": "no [good]"})
    assert said([state("finished", 0), failed]) == [
        "failed rope[x] seed=3  ValueError: no [good]",
        "  multirun/s/runs/gpt-rope-cccccccc/seed=3",
    ]


def test_a_run_without_a_record_is_told_by_what_its_job_raised():
    waiting = state("waiting", 1)
    assert said([waiting], {waiting[0].folder: "OSError: full"})[0] == "waiting rope[x] seed=1  OSError: full"


def test_hundreds_of_failures_take_few_lines_and_the_worst_come_first():
    states = [state("waiting", n) for n in range(300)] + [state("failed", n) for n in range(300, 310)]
    lines = said(states)
    assert len(lines) == 2 * told.MOST_LINES + 1
    assert [line.split()[0] for line in lines[0:20:2]] == ["failed"] * 10
    assert lines[-1] == "and 294 waiting more: python -m ablate.status multirun/s --json"


def test_a_sweep_that_was_stopped_does_not_list_what_has_not_begun():
    states = [state("interrupted", 0), *(state("waiting", n) for n in range(1, 300))]
    lines = said(states, stopped=True)
    assert lines == ["interrupted rope[x] seed=0  ", "  multirun/s/runs/gpt-rope-cccccccc/seed=0"]


@pytest.mark.parametrize(
    ("known", "left", "at_once", "expected"),
    [
        ([10.0, 20.0], 8, 2, ", about 1 min 00 s at 2 at a time"),
        ([10.0], 1, 4, ", about 10 s at 4 at a time"),
        ([], 8, 2, ""),
        ([10.0], 0, 2, ""),
        ([10.0], 8, None, ""),
    ],
)
def test_the_time_left_is_what_runs_took_over_those_at_once(known, left, at_once, expected):
    assert told.estimate(known, left, at_once) == expected

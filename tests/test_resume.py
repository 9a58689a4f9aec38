"""The rule of what to do with a run that has been here before, row by row of its table."""

import pytest

from ablate.config.schema import Rerun
from ablate.records import RunFolder, RunRecord, Status
from ablate.resume import Action, decide, read_or_none

NO, FAILED, STALE, ALL = Rerun.none, Rerun.failed, Rerun.stale, Rerun.finished


def record(status: Status, source: str = "new") -> RunRecord:
    return RunRecord(status=status, study="s", cell="c", label="l", factors={}, seed=0, source=source)


@pytest.mark.parametrize("rerun", list(Rerun))
def test_a_run_without_a_record_starts(rerun):
    assert decide(None, rerun, "new") is Action.start


@pytest.mark.parametrize("status", [Status.finished, Status.diverged, Status.pruned])
@pytest.mark.parametrize(
    ("rerun", "same", "other"),
    [
        (NO, Action.keep, Action.keep),
        (FAILED, Action.keep, Action.keep),
        (STALE, Action.keep, Action.restart),
        (ALL, Action.restart, Action.restart),
    ],
)
def test_a_result_is_kept_unless_asked_for_again(status, rerun, same, other):
    assert decide(record(status), rerun, "new") is same
    assert decide(record(status, "old"), rerun, "new") is other


@pytest.mark.parametrize("status", [Status.failed, Status.interrupted, Status.running])
@pytest.mark.parametrize(
    ("rerun", "action"), [(NO, Action.keep), (FAILED, Action.resume), (STALE, Action.resume), (ALL, Action.restart)]
)
def test_what_has_no_result_continues(status, rerun, action):
    assert decide(record(status), rerun, "new") is action


@pytest.mark.parametrize("rerun", list(Rerun))
def test_what_the_same_sweep_began_goes_on_whatever_is_to_be_made_again(rerun):
    """So a job that a cluster interrupts and queues anew neither stays half done nor starts from nothing each time."""
    begun = record(Status.interrupted)
    begun.sweep = "this"
    assert decide(begun, rerun, "new", "this") is Action.resume
    assert decide(begun, rerun, "new", "another") is decide(begun, rerun, "new")


@pytest.mark.parametrize("rerun", list(Rerun))
def test_what_the_same_sweep_made_is_kept_so_that_what_is_to_be_made_again_is_so_once(rerun):
    done = record(Status.finished)
    done.sweep = "this"
    assert decide(done, rerun, "new", "this") is Action.keep
    assert decide(done, rerun, "new", "another") is decide(done, rerun, "new")


def test_a_damaged_record_counts_as_none(tmp_path):
    folder = RunFolder(tmp_path)
    folder.record.write_text("{")
    assert read_or_none(folder) is None

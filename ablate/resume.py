"""What to do with a run that may have been here before: the one rule that the plan of a sweep and the run itself use.

    record                      none     failed (default)   stale                   finished
    (nothing yet)               start    start              start                   start
    finished/diverged/pruned    keep     keep               restart if other code   restart
    failed                      keep     resume             resume                  restart
    interrupted, or running     keep     resume             resume                  restart
    with a dead owner

The columns are for what others began: what the same sweep began is kept if it is a result, else resumed, such as a job
that a cluster interrupted and queued anew.
`resume` continues from the newest good checkpoint when it comes from the same source code, else it starts over in the
same folder. `restart` moves the old result to previous/ first. Imports the standard library only.
"""

from enum import StrEnum

from ablate.config.schema import Rerun
from ablate.jsonfiles import RecordError
from ablate.records import RunFolder, RunRecord


class Action(StrEnum):
    """What is to be done with a run."""

    keep = "keep"
    start = "start"
    resume = "resume"
    restart = "restart"


def decide(record: RunRecord | None, rerun: Rerun, source: str, sweep: str | None = None) -> Action:
    """Return the action for a run with this record under `sweep.rerun`, with the code's fingerprint `source`.

    `sweep` is the sweep that asks: what it began itself goes on, whatever `sweep.rerun` says of what others began.
    """
    if record is None:
        return Action.start
    if sweep is not None and record.sweep == sweep:
        return Action.keep if record.status.is_result else Action.resume
    if rerun is Rerun.none:
        return Action.keep
    if rerun is Rerun.finished:
        return Action.restart
    if not record.status.is_result:
        return Action.resume
    return Action.restart if rerun is Rerun.stale and record.source != source else Action.keep


def read_or_none(folder: RunFolder) -> RunRecord | None:
    """Return the run's record; a damaged one counts as none, since the run must then be made again."""
    try:
        return folder.read()
    except RecordError:
        return None

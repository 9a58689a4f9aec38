"""The runs of a plan and how they stand, read from their folders: the same for one process, a pool or a cluster.

Imports neither torch nor Hydra: `ablate.status` answers at once.
"""

from typing import NamedTuple

from ablate import locks
from ablate.records import PlannedCell, RunFolder, RunRecord, Status, StudyFolder, SweepPlan
from ablate.resume import read_or_none


class PlannedRun(NamedTuple):
    """One run of a plan."""

    cell: PlannedCell
    seed: int
    folder: RunFolder

    @property
    def name(self) -> str:
        """What people call it."""
        return f"{self.cell.label} seed={self.seed}"


def planned_runs(study: StudyFolder, plan: SweepPlan) -> list[PlannedRun]:
    """Return all runs, seed by seed, so that a sweep stopped early is balanced.

    Every other seed goes through the cells backwards: with as many processes as cells, each process else trains one
    variant only, and those with the quick one end up waiting for those with the slow one.
    """
    return [
        PlannedRun(cell, seed, study.run(cell.folder, seed))
        for turn, seed in enumerate(plan.seeds)
        for cell in plan.cells[:: 1 if turn % 2 == 0 else -1]
        if seed in plan.seeds_of(cell.cell)
    ]


class State(NamedTuple):
    """How one run stands: `waiting` (no record), a record's status, or `interrupted` when its process is gone."""

    status: str
    record: RunRecord | None


class Watcher:
    """Reads the state of runs; a record that has not changed is not read again."""

    def __init__(self) -> None:
        self._seen: dict[RunFolder, tuple[tuple[int, int], RunRecord | None]] = {}

    def state(self, folder: RunFolder) -> State:
        """Return how the run in `folder` stands now."""
        try:
            stat = folder.record.stat()
        except FileNotFoundError:
            return State("running" if locks.is_held(folder.lock) else "waiting", None)
        except OSError:
            return State("damaged", None)
        record = self._read(folder, (stat.st_mtime_ns, stat.st_size))
        if record is None:
            return State("damaged", None)
        if locks.is_held(folder.lock):
            return State("running", record)
        return State("interrupted" if record.status is Status.running else record.status.value, record)

    def _read(self, folder: RunFolder, stamp: tuple[int, int]) -> RunRecord | None:
        """Return the record, read anew if it changed; one that cannot be read now is looked at again the next time."""
        if folder not in self._seen or self._seen[folder][0] != stamp:
            try:
                self._seen[folder] = (stamp, read_or_none(folder))
            except OSError:
                return None
        return self._seen[folder][1]


def is_at_work(study: StudyFolder) -> bool:
    """Whether some process carries out a sweep, a search or a tuning of the study, on whatever machine."""
    return any(map(locks.is_held, study.work_locks()))


def last_step(folder: RunFolder) -> tuple[int, float | None]:
    """Return the last logged step and its loss; (0, None) before the first."""
    record = folder.last_metrics()
    return int(record.get("step", 0)), record.get("loss")


def duration(seconds: float) -> str:
    """Return seconds as people say them: 45 s, 3 min 20 s, 2 h 05 min."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"

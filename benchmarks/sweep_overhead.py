"""What a sweep costs beyond its training: `python -m benchmarks.sweep_overhead multirun/copy_repeat [--sweep ID]`.

Reads a finished sweep's records and measures nothing itself. With P processes, a sweep that took W seconds from its
plan to its last run's end had P·W seconds to spend; training had Σ train_seconds of them, and W / (Σ train_seconds / P)
is the overhead. P is the largest number of its runs that were under way at one moment.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from ablate.records import RunRecord, StudyFolder, SweepPlan


@dataclass(kw_only=True)
class Costs:
    """Where the time of a sweep went. Seconds; all but `wall` are summed over the processes.

    `data` is the part of training that drew batches. `recording` is a run's time outside training and evaluation:
    building, writing records. `between` is what no run accounts for: planning, starting processes, importing, waiting
    for work, and processes idle at the end. `handovers` are the times from the end of a run to the first step of the
    next in the process that became free, the drawing of evaluation sets left out: it is counted as training.
    """

    runs: int
    left_out: int
    processes: int
    wall: float
    training: float
    evaluation: float
    data: float
    recording: float
    handovers: tuple[float, ...] = ()

    @property
    def available(self) -> float:
        """What all processes had."""
        return self.processes * self.wall

    @property
    def between(self) -> float:
        """What no run accounts for."""
        return self.available - self.training - self.evaluation - self.recording

    @property
    def to_next_step(self) -> float:
        """The middle time from the end of one run to the first step of the next."""
        return median(self.handovers) if self.handovers else math.nan

    @property
    def overhead(self) -> float:
        """How many times as long the sweep took as its training, spread over the processes, would have."""
        return self.available / self.training


def costs(study: StudyFolder, sweep_id: str | None = None) -> Costs:
    """Account for a sweep, the latest when none is named; raises ValueError when it has nothing to account for.

    Runs that another sweep trained, that were continued, or that have not ended are left out and counted as such:
    their times do not belong to this sweep alone.
    """
    plan = study.read_sweep(_known(study, sweep_id))
    planned = [study.run(cell.folder, seed).read() for cell in plan.cells for seed in plan.seeds]
    own = [record for record in planned if record is not None and _is_own(record, plan)]
    training = sum(record.train_seconds for record in own)
    if training <= 0:
        raise ValueError(f"{study.path}: sweep {plan.id} trained no run from start to end; give --sweep another")
    spans = [_span(record) for record in own]
    seconds = sum(end - start for start, end in spans)
    return Costs(
        runs=len(own),
        left_out=len(planned) - len(own),
        processes=most_at_once(spans),
        wall=max(end for _, end in spans) - datetime.fromisoformat(plan.created).timestamp(),
        training=training,
        evaluation=sum(record.evaluation_seconds for record in own),
        data=sum(record.data_seconds for record in own),
        recording=seconds - sum(record.seconds for record in own),
        handovers=handovers(spans, [end - start - one.seconds for (start, end), one in zip(spans, own, strict=True)]),
    )


def _known(study: StudyFolder, sweep_id: str | None) -> str:
    ids = study.sweep_ids()
    if not ids:
        raise ValueError(f"{study.path}: no sweep in this study folder; give one such as multirun/copy_repeat")
    if sweep_id is not None and sweep_id not in ids:
        raise ValueError(f"--sweep {sweep_id}: no such sweep in {study.path}; there are {', '.join(ids)}")
    return sweep_id or ids[-1]


def _is_own(record: RunRecord, plan: SweepPlan) -> bool:
    return record.sweep == plan.id and record.resumed == 0 and record.ended is not None


def _span(record: RunRecord) -> tuple[float, float]:
    """Start and end in seconds of the epoch."""
    assert record.ended is not None, "runs without an end are left out"
    return datetime.fromisoformat(record.started).timestamp(), datetime.fromisoformat(record.ended).timestamp()


def most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    """The largest number of spans that share a moment; one that starts where another ends does not overlap it."""
    changes = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    most = running = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


def handovers(spans: Sequence[tuple[float, float]], building: Sequence[float]) -> tuple[float, ...]:
    """From each end to the start that follows it, and on to that run's first step.

    A start takes the longest free place, the first ones take none. `building` are each run's seconds before its first
    step; what it records after its last is in them too.
    """
    free: list[float] = []
    found = []
    ends = [(end, 0, 0.0) for _, end in spans]
    starts = [(start, 1, own) for (start, _), own in zip(spans, building, strict=True)]
    for moment, kind, own in sorted(ends + starts):
        if kind == 0:
            free.append(moment)
        elif free:
            found.append(moment - free.pop(0) + own)
    return tuple(found)


def table(found: Costs) -> Table:
    """Seconds of all processes together, and their share of what these had."""
    shown = Table("where", "seconds", "share", box=MARKDOWN)
    for name in ("training", "evaluation", "recording", "between"):
        seconds = getattr(found, name)
        shown.add_row(name, f"{seconds:.1f}", f"{seconds / found.available:.1%}")
    shown.add_row("(data, within training)", f"{found.data:.1f}", f"{found.data / found.available:.1%}")
    return shown


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep_overhead", description=__doc__)
    parser.add_argument("study", type=Path, help="a study's folder, such as multirun/copy_repeat")
    parser.add_argument("--sweep", default="latest", help="the id of a sweep, or latest")
    given = parser.parse_args(argv)
    try:
        found = costs(StudyFolder(given.study), None if given.sweep == "latest" else given.sweep)
    except ValueError as error:
        parser.error(str(error))
    console = Console(width=100)
    console.print(f"{found.runs} runs, {found.processes} at once, {found.wall:.1f} s: overhead {found.overhead:.3f}")
    console.print(table(found))
    if found.handovers:
        console.print(f"from a run's end to the first step of the next: {1000 * found.to_next_step:.0f} ms")
    if found.left_out:
        console.print(f"{found.left_out} planned runs left out: trained by another sweep, continued, or not ended")


if __name__ == "__main__":
    main()

"""How a study stands: `python -m ablate.status STUDY [--watch] [--json]`.

Reads the run folders, so it works while a sweep runs here, on another machine of the same folder, or after a crash.
Imports neither torch nor Hydra.
"""

import argparse
import functools
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ablate import stdio
from ablate.config.errors import nearest, refuse
from ablate.jsonfiles import RecordError
from ablate.numbers import score
from ablate.records import StudyFolder, SweepPlan
from ablate.screen import Column, ScreenTable, Wrapped
from ablate.sweep.runs import Watcher, duration, is_at_work, last_step, planned_runs

ORDER = ("finished", "running", "waiting", "interrupted", "diverged", "failed", "pruned", "damaged")
WATCH_EVERY = 1.0
INTERRUPTED = 130
"""Exit code after Ctrl-C, as of a shell's."""
MOST_LINES = 16
"""Runs that are told one by one below the counts."""


@dataclass(frozen=True, kw_only=True)
class RunState:
    """How one run stands, as `--json` prints it."""

    label: str
    seed: int
    status: str
    step: int
    steps_planned: int
    loss: float | None
    error: str | None
    folder: str
    seconds: float | None = None


def study_states(study: StudyFolder, watcher: Watcher) -> list[RunState]:
    """Return every run of every sweep's plan once, and recorded runs that no plan holds, in a fixed order."""
    found: dict[Path, RunState] = {}
    for plan in _plans(study):
        for run in planned_runs(study, plan):
            found.setdefault(run.folder.path, _state(watcher, run.cell.label, run.seed, run.folder))
    for folder in study.runs():
        if folder.path not in found and (record := watcher.state(folder).record) is not None:
            found[folder.path] = _state(watcher, record.label, record.seed, folder)
    return list(found.values())


def _plans(study: StudyFolder) -> list[SweepPlan]:
    plans = []
    for sweep in study.sweep_ids():
        try:
            plans.append(study.read_sweep(sweep))
        except RecordError as error:
            _say_once(f"ablate: {error}\n")
    return plans


@functools.cache
def _say_once(line: str) -> None:
    sys.stderr.write(line)


def _state(watcher: Watcher, label: str, seed: int, folder: Any) -> RunState:
    state = watcher.state(folder)
    step, loss = last_step(folder)
    record = state.record
    error = record.error if record else None
    return RunState(
        label=label,
        seed=seed,
        status=state.status,
        step=record.steps_done if record and record.steps_done else step,
        steps_planned=record.steps_planned if record else 0,
        loss=loss,
        error=f"{error['type']}: {error['message']}" if error else None,
        folder=str(folder.path),
        seconds=record.seconds if record and record.seconds else None,
    )


def render(study: StudyFolder, states: Sequence[RunState]) -> Group:
    """Return the picture for a terminal: counts by variant, then what runs and what failed."""
    shown = [status for status in ORDER if any(state.status == status for state in states)]
    rows = []
    for label in dict.fromkeys(state.label for state in states):
        counts = Counter(state.status for state in states if state.label == label)
        rows.append([label, *(str(counts[status] or "–") for status in shown)])
    table = ScreenTable([Column("variant"), *(Column(status, "right") for status in shown)], rows)
    told = [state for state in states if state.status in ("running", "interrupted", "diverged", "failed")]
    lines = [Wrapped(Text(_line(state)), hang=2) for state in told[:MOST_LINES]]
    lines += [Wrapped(Text(f"and {len(told) - MOST_LINES} more (--json has all)"))] if len(told) > MOST_LINES else []
    total = Counter(state.status for state in states)
    head = f"{study.path}: {len(states)} runs, " + ", ".join(f"{total[status]} {status}" for status in shown)
    return Group(Wrapped(Text(head + _time_left(states), style="bold")), table, *lines)


def _time_left(states: Sequence[RunState]) -> str:
    """What is left to do at the pace of the finished runs, while something runs."""
    running = [state for state in states if state.status == "running"]
    known = [state.seconds for state in states if state.status == "finished" and state.seconds]
    if not running or not known:
        return ""
    waiting = sum(state.status == "waiting" for state in states)
    parts = sum(1 - state.step / state.steps_planned if state.steps_planned else 1.0 for state in running)
    return f"; about {duration(sum(known) / len(known) * (waiting + parts) / len(running))} left"


def _line(state: RunState) -> str:
    loss = f"  loss {score(state.loss)}" if state.loss is not None else ""
    where = f"  step {state.step}/{state.steps_planned}" if state.steps_planned else ""
    return f"{state.status} {state.label} seed={state.seed}{where}{loss}" + (
        f"  {state.error}\n  {state.folder}" if state.error else ""
    )


def _as_json(study: StudyFolder, states: Sequence[RunState]) -> str:
    counts = Counter(state.status for state in states)
    return json.dumps(
        {"study": str(study.path), "counts": dict(sorted(counts.items())), "runs": [vars(state) for state in states]},
        indent=1,
    )


def watch(study: StudyFolder, console: Console) -> list[RunState]:
    """Show the study until nothing runs any more and no sweep is at work that would begin what waits."""
    watcher = Watcher()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            at_work = is_at_work(study)  # before the runs are looked at: a sweep that ends in between has done them
            states = study_states(study, watcher)
            live.update(render(study, states), refresh=True)
            if not at_work and not any(state.status == "running" for state in states):
                break
            if stdio.is_left():  # nobody reads on, as after | head -1
                return states
            time.sleep(WATCH_EVERY)
    left = [state for state in states if state.status in ("waiting", "interrupted")]
    if left:
        told = f"no sweep is at work, and {len(left)} of {len(states)} runs are left; its command again continues"
        console.print(Wrapped(Text(told, style="yellow")))
    return states


def main(argv: Sequence[str] | None = None) -> None:
    """Print how the study stands; exit code 1 when some failed or diverged, 2 for bad input, 130 for Ctrl-C."""
    stdio.make_safe()
    parser = argparse.ArgumentParser(prog="python -m ablate.status", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("study", type=Path, help="a study's folder, such as multirun/copy_repeat")
    parser.add_argument(
        "--watch", action="store_true", help="stay and refresh until nothing runs and no sweep is at work"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")
    arguments = parser.parse_args(argv)
    study, console = StudyFolder(arguments.study), Console(highlight=False)
    check_study(study)
    try:
        states = watch(study, console) if arguments.watch and not arguments.json else study_states(study, Watcher())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:
        refuse(f"{error.filename or study.path}: cannot be read ({error.strerror})")
    if arguments.json:
        sys.stdout.write(_as_json(study, states) + "\n")
        stdio.end_if_lost()
    elif not arguments.watch:
        console.print(render(study, states))
    sys.exit(1 if any(state.status in ("failed", "diverged", "damaged") for state in states) else 0)


def check_study(study: StudyFolder) -> None:
    """Refuse a path that is no study, exit code 2."""
    if not study.path.is_dir():
        beside = study.path.absolute().parent
        names = [path.name for path in beside.iterdir() if path.is_dir()] if beside.is_dir() else []
        refuse(f"{study.path}: no such study; in {study.path.parent}: {nearest(study.path.name, names)}")
    if not study.runs_path.is_dir() and not study.sweeps_path.is_dir():
        refuse(f"{study.path}: not a study, it has neither runs/ nor sweeps/")


if __name__ == "__main__":
    main()

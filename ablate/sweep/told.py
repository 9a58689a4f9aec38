"""What a sweep says of its plan before it begins, and of runs that have no result when it is over."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from ablate.config.schema import Rerun
from ablate.records import RunFolder, StudyFolder, SweepPlan
from ablate.screen import Column, ScreenTable, Wrapped, say
from ablate.sweep.runs import PlannedRun, State, duration

MOST_LINES = 16
"""Runs that are told one by one; `ablate.status` has them all."""

AMISS = ("failed", "diverged", "damaged", "interrupted", "waiting")
"""How a run stands that was to be trained and was not; the more telling first."""


def announce(console: Console, plan: SweepPlan, headline: str, todo: Sequence[PlannedRun]) -> None:
    """Print the plan: the headline, each cell with its seeds done and left, the notes."""
    names = [Column("cell"), Column("label"), Column("factors", wraps=True)]
    rows = []
    left = Counter(run.cell.cell for run in todo)
    for cell in plan.cells:
        factors = ", ".join(f"{key}={'–' if value is None else value}" for key, value in cell.factors.items())
        here = left[cell.cell]
        done = str(len(plan.seeds) - here)
        rows.append([cell.cell[:8], cell.label, factors or "–", done, str(here)])
    say(console, Text.from_markup(headline))
    console.print(ScreenTable([*names, Column("done", "right"), Column("left", "right")], rows))
    for note in plan.notes:
        console.print(Wrapped(Text(f"note: {note}")))


def headline(study: StudyFolder, grid: str, runs: int, left: int, estimate: str) -> str:
    """Return the first line: the study, its grid in words, and what is done and left."""
    return f"[bold]{escape(str(study.path))}[/bold]: {grid}; {runs - left} done, {left} to train{estimate}"


def grid_in_words(plan: SweepPlan, runs: int) -> str:
    """Return 2 cells x 10 seeds = 20 runs."""
    return f"{many(len(plan.cells), 'cell')} x {many(len(plan.seeds), 'seed')} = {many(runs, 'run')}"


def estimate(known: Sequence[float], left: int, at_once: int | None) -> str:
    """Return how long what is left may take, by the seconds of runs that are done; empty where it cannot be known."""
    if not left or not known or at_once is None:
        return ""
    seconds = sum(known) / len(known) * left / min(at_once, left)
    return f", about {duration(seconds)} at {at_once} at a time"


def failures(
    console: Console, states: Sequence[tuple[PlannedRun, State]], errors: Mapping[RunFolder, str], *, stopped: bool
) -> None:
    """Print what went wrong, run by run with its folder; of a sweep that was stopped not what simply has not begun."""
    told = [status for status in AMISS if not (stopped and status == "waiting")]
    amiss = sorted((one for one in states if one[1].status in told), key=lambda one: told.index(one[1].status))
    for run, state in amiss[:MOST_LINES]:
        error = (state.record.error if state.record else None) or {}
        why = ": ".join(part for part in (error.get("type"), error.get("message")) if part)
        why = why or errors.get(run.folder, "")
        line = f"[red]{state.status}[/red] {escape(run.name)}  {escape(why)}\n  {escape(str(run.folder.path))}"
        say(console, Text.from_markup(line))
    if len(amiss) > MOST_LINES:
        rest = in_words(Counter(state.status for _, state in amiss[MOST_LINES:]))
        study = amiss[0][0].folder.path.parents[2]
        console.print(f"and {rest} more: python -m ablate.status {study} --json", highlight=False, markup=False)


def continues(rerun: Rerun) -> str:
    """Return what to give to go on with a sweep that was stopped: some rules of `sweep.rerun` would not go on."""
    if rerun in (Rerun.none, Rerun.finished):
        return f"the same command without sweep.rerun={rerun} continues"
    return "the same command continues"


def in_words(counts: Mapping[str, int]) -> str:
    """Return 2 failed, 3 finished."""
    return ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))


def many(number: int, noun: str) -> str:
    """Return 1 run, 2 runs."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def escape(text: str) -> str:
    """Return text in which rich sees no markup."""
    return text.replace("[", r"\[")

"""Which column tells the steps of another program's records, the same one for all runs.

It is the first known one (KNOWN, in any case, with or without a section such as trainer/) that is a whole number in
every record of the metric, in every run; not one that starts again, or never moves, while an epoch or a global step
goes on, for it counts within that. Where no run has one, row numbers stand in, if all runs have the metric in the same
rows.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from analysis.reading import same_name
from analysis.study import StudyError

COARSE = ("round", "rounds", "episode", "episodes", "epoch", "epochs")
TOTALS = ("global_step", "global_steps", "total_steps", "total_timesteps", "timesteps_total", "num_timesteps")
KNOWN = (
    *("step", "steps", *TOTALS, "train_step", "training_step", "train_steps", "optimizer_step"),
    *(
        "timestep",
        "timesteps",
        "env_step",
        "env_steps",
        "num_env_steps",
        "n_env_steps",
        "frame",
        "frames",
        "num_frames",
    ),
    *("update", "updates", "num_updates", "n_updates", "iteration", "iterations", "training_iteration"),
    *("iter", "iters", "it", "itr", "n_iter", "_step", *COARSE),
)
"""Names of columns that count steps, by the last part of the name, those to be preferred first."""

ROWS = "row number"


def canonical(name: str) -> str:
    """The name in KNOWN that a column has by its last part, else nothing; `_step` of W&B keeps its underscore."""
    last = re.split(r"[/.]| - ", name.strip())[-1].strip().casefold().replace("-", "_").replace(" ", "_")
    return next((form for form in (last, last.strip("_")) if form in KNOWN), "")


class Stepped(Protocol):
    """One metric in one file, as far as steps are concerned."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of all columns, as written."""

    @property
    def rows(self) -> Sequence[int]:
        """The rows that hold a value."""

    @property
    def values(self) -> Sequence[float]:
        """The values."""

    @property
    def steps(self) -> Mapping[str, Sequence[int] | None]:
        """Columns that may tell the step: a whole number for each value; None where one lacks it."""

    def rising(self) -> list[str]:
        """All columns of whole numbers that rise from value to value."""


@dataclass(frozen=True)
class Steps:
    """The column of the steps: its name without case, and as written; ROWS where row numbers stand in."""

    key: str
    shown: str

    def of(self, log: Stepped) -> Sequence[int]:
        """The step of each value of a run."""
        return log.rows if self.key == ROWS else log.steps[self.key] or ()


def choose_steps(logs: Mapping[str, Stepped], what: str, step_key: str | None = None) -> Steps:
    """The column for these runs, by their place; `what` names the metric and file in messages.

    Raises StudyError, one line, where runs cannot be compared by steps, naming the option that tells the column.
    """
    logs = {place: log for place, log in logs.items() if log.rows}
    if step_key is not None:
        return _given(logs, step_key)
    valid = {place: _valid(log) for place, log in logs.items()}
    shared = [key for key in next(iter(valid.values()), ()) if all(key in keys for keys in valid.values())]
    if shared:
        best = min(shared, key=lambda key: (KNOWN.index(canonical(key)), key))
        _refuse_restarts(logs, best, what)
        return Steps(best, _as_written(logs, best))
    if any(valid.values()):
        kinds = {", ".join(keys) or "none": place for place, keys in reversed(valid.items())}
        named = "; ".join(f"{keys} in {place}" for keys, place in list(reversed(kinds.items()))[:3])
        told = f"no known column has whole numbers in every record of all runs ({named})"
        raise StudyError(f"{what}: {told}; {_advice(logs)}")
    _check_rows(logs, what)
    return Steps(ROWS, ROWS)


def _given(logs: Mapping[str, Stepped], step_key: str) -> Steps:
    key = same_name(step_key)
    for place, log in logs.items():
        if key not in log.steps:
            raise StudyError(f"--step-key {step_key}: no such column in {place}; there are: {', '.join(log.columns)}")
        if log.steps[key] is None:
            raise StudyError(f"--step-key {step_key}: not a whole number in every record of {place}")
    return Steps(key, _as_written(logs, key))


def _as_written(logs: Mapping[str, Stepped], key: str) -> str:
    names = (name for log in logs.values() for name in log.columns if same_name(name) == key)
    return next(names, key)


def _valid(log: Stepped) -> list[str]:
    """The columns that may tell the steps of one run."""
    whole = {key: steps for key, steps in log.steps.items() if steps is not None}
    return [key for key in whole if not any(_counts_within(key, other, whole) for other in whole)]


def _counts_within(key: str, other: str, columns: Mapping[str, Sequence[int]]) -> bool:
    """Whether a column goes back, or never moves, while another, of epochs or all steps, goes on.

    After a resume both go back.
    """
    if canonical(other) not in (*COARSE, *TOTALS):
        return False
    if len(set(columns[key])) == 1:
        return len(set(columns[other])) > 1
    both = zip(pairwise(columns[key]), pairwise(columns[other]), strict=True)
    return any(after < before and later > sooner for (before, after), (sooner, later) in both)


def _refuse_restarts(logs: Mapping[str, Stepped], key: str, what: str) -> None:
    """Raise StudyError where a column makes three passes or more, all the same, and not as many in all runs."""
    passes = {place: _passes(log.steps[key] or ()) for place, log in _finite(logs).items()}
    again = max(passes, key=lambda place: len(passes[place]), default=None)
    counts = {len(found) for found in passes.values()}
    if again is None or len(counts) < 2 or len(passes[again]) < 3 or len(set(passes[again])) > 1:
        return
    told = f"{key} starts again {len(passes[again]) - 1} times in {again}, and not as often in other runs"
    raise StudyError(f"{what}: {told}, so it does not tell their steps; {_advice(logs)}")


def _passes(steps: Sequence[int]) -> list[tuple[int, ...]]:
    """Steps in the order of the file, cut where they go back."""
    starts = [0, *(place for place in range(1, len(steps)) if steps[place] < steps[place - 1]), len(steps)]
    return [tuple(steps[start:stop]) for start, stop in pairwise(starts)]


def _check_rows(logs: Mapping[str, Stepped], what: str) -> None:
    """Raise StudyError unless the metric is in the same rows in all runs that end with a number."""
    finite = _finite(logs)
    if len({tuple(log.rows) for log in finite.values()}) < 2:
        return
    counts = sorted({len(log.rows) for log in finite.values()})
    told = f"{counts[0]} to {counts[-1]} values" if len(counts) > 1 else "values in different rows"
    raise StudyError(f"{what}: runs have {told}, and no known column tells their steps; {_advice(logs)}")


def _finite(logs: Mapping[str, Stepped]) -> dict[str, Stepped]:
    return {place: log for place, log in logs.items() if log.rows and math.isfinite(log.values[-1])}


def _advice(logs: Mapping[str, Stepped]) -> str:
    """What to do when the column is not known: the option, and the columns that could be named."""
    first, *others = (log.rising() for log in logs.values())
    could = [name for name in first if all(name in names for names in others)]
    if not could:
        return "no other column rises in whole numbers, so --step-key can name none; log one named step in all runs"
    return f"name the column of the steps with --step-key COLUMN; these rise in whole numbers: {', '.join(could)}"

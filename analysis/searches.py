"""The searches and tunings of a study, as `ablate` left them in plain files: trials, importances, what was chosen.

A file that cannot be read is told among the problems and is otherwise as if it were not there.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablate.jsonfiles import RecordError, read_json
from ablate.records import StudyFolder


@dataclass(frozen=True)
class Trial:
    """One trial: `values` has one number per metric when it finished, else is empty; `curve` is (step, value)."""

    number: int
    state: str
    values: tuple[float, ...]
    params: Mapping[str, Any]
    curve: tuple[tuple[int, float], ...]
    feasible: bool
    reason: str
    steps: int
    seconds: float


@dataclass(frozen=True)
class Search:
    """One search. `space` is written as on the command line, `log` are its keys on a logarithmic scale."""

    name: str
    metrics: tuple[str, ...]
    directions: tuple[str, ...]
    sampler: str
    pruner: str
    space: Mapping[str, str]
    log: frozenset[str]
    seeds: tuple[int, ...]
    n_trials: int
    trials: tuple[Trial, ...]
    importances: Mapping[str, Mapping[str, float]]

    @property
    def counted(self) -> list[Trial]:
        """The trials that count: those not lost with their process."""
        return [one for one in self.trials if one.state != "lost"]

    @property
    def finished(self) -> list[Trial]:
        """The trials with values."""
        return [one for one in self.trials if one.values]

    @property
    def sign(self) -> float:
        """1 where low is better in the first metric, -1 where high is."""
        return 1.0 if self.directions[0] == "minimize" else -1.0

    @property
    def best(self) -> Trial | None:
        """The best feasible trial by the first metric, None when none finished."""
        found = [one for one in self.finished if one.feasible]
        return min(found, key=lambda one: (self.sign * one.values[0], one.number), default=None)

    @property
    def numeric(self) -> list[str]:
        """The parameters whose every value is a number, in the order given."""
        return [key for key in self.space if all(number_of(one.params.get(key)) is not None for one in self.counted)]


@dataclass(frozen=True)
class Tuned:
    """One variant of a tuning: what it chose, the score that chose it, and its search (None when not begun)."""

    label: str
    chosen: Mapping[str, Any] | None
    score: float | None
    search: Search | None


@dataclass(frozen=True)
class Tuning:
    """One tuning: the same budget for every variant, seeds that choose and seeds that are reported."""

    name: str
    metric: str
    direction: str
    budget: int
    space: Mapping[str, str]
    tuning_seeds: tuple[int, ...]
    report_seeds: tuple[int, ...]
    report_sweep: str | None
    variants: tuple[Tuned, ...]


@dataclass(frozen=True)
class Searches:
    """All of a study: searches that belong to no tuning, the tunings, and what could not be read."""

    searches: tuple[Search, ...] = ()
    tunings: tuple[Tuning, ...] = ()
    problems: tuple[str, ...] = ()


def load_searches(path: Path | str) -> Searches:
    """Read a study's searches and tunings; empty where it has none."""
    folder, problems = StudyFolder(Path(path)), list[str]()
    known = {one.name: one for file in folder.searches() if (one := _read(_search, file, problems)) is not None}
    tunings = [one for file in folder.tunings() if (one := _read(_tuning(known), file, problems)) is not None]
    part = {tuned.search.name for tuning in tunings for tuned in tuning.variants if tuned.search}
    alone = tuple(one for name, one in known.items() if name not in part)
    return Searches(alone, tuple(tunings), tuple(problems))


def _read(make: Any, file: Path, problems: list[str]) -> Any:
    try:
        return make(read_json(file))
    except (RecordError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        problems.append(f"{file.parent.name}/{file.name}: cannot be read ({type(error).__name__})")
        return None


def _search(data: Mapping[str, Any]) -> Search:
    return Search(
        name=str(data["study_name"]),
        metrics=tuple(map(str, data["metrics"])),
        directions=tuple(map(str, data["directions"])),
        sampler=str(data["sampler"]),
        pruner=str(data["pruner"]),
        space={str(key): str(text) for key, text in data["space"].items()},
        log=frozenset(map(str, data.get("log", ()))),
        seeds=tuple(map(int, data["seeds"])),
        n_trials=int(data.get("n_trials", len(data["trials"]))),
        trials=tuple(map(_trial, data["trials"])),
        importances=data["importances"] or {},
    )


def _trial(data: Mapping[str, Any]) -> Trial:
    values = data["values"] or ()
    finite = all(isinstance(value, int | float) and math.isfinite(value) for value in values)
    return Trial(
        number=int(data["number"]),
        state=str(data["state"]),
        values=tuple(map(float, values)) if finite else (),
        params=dict(data["params"]),
        curve=tuple((int(step), float(value)) for step, value in data.get("curve", ()) if value is not None),
        feasible=bool(data.get("feasible", True)),
        reason=str(data.get("reason") or ""),
        steps=int(data.get("steps") or 0),
        seconds=float(data.get("seconds") or 0.0),
    )


def _tuning(known: Mapping[str, Search]) -> Any:
    def read(data: Mapping[str, Any]) -> Tuning:
        return Tuning(
            name=str(data["name"]),
            metric=str(data["metric"]),
            direction=str(data["direction"]),
            budget=int(data["budget"]),
            space={str(key): str(text) for key, text in data["space"].items()},
            tuning_seeds=tuple(map(int, data["tuning_seeds"])),
            report_seeds=tuple(map(int, data["report_seeds"])),
            report_sweep=data["report_sweep"],
            variants=tuple(
                Tuned(str(one["label"]), one["chosen"], one.get("score"), known.get(one["search"]))
                for one in data["variants"]
            ),
        )

    return read


def number_of(value: Any) -> float | None:
    """Return a parameter's value as a number; choices are kept as text (`"32"`); None for what is none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def expected_best(values: Sequence[float | None], sign: float) -> list[float]:
    """Return the expected best of k trials for k = 1 to n, were k of these n drawn without replacement.

    `sign` 1 says that low is better, -1 that high is. A trial without a value (None: pruned, failed) counts as the
    worst that finished. With the values sorted from the best, v_1 ... v_n, the best of a random subset of k is v_i with
    probability C(n - i, k - 1) / C(n, k). The curve is that of Dodge, Gururangan, Card, Schwartz, Smith (2019, Show
    Your Work: Improved Reporting of Experimental Results), without replacement, which Tang et al. (2020, Showing Your
    Work Doesn't Always Work) show to be unbiased.
    """
    finite = [value for value in values if value is not None]
    if not finite:
        return []
    worst = max(sign * value for value in finite)
    ordered = sorted(worst if value is None else sign * value for value in values)
    n = len(ordered)
    return [sign * _mean_of_best(ordered, k, math.comb(n, k)) for k in range(1, n + 1)]


def _mean_of_best(ordered: Sequence[float], k: int, subsets: int) -> float:
    n = len(ordered)
    return math.fsum(value * (math.comb(n - 1 - place, k - 1) / subsets) for place, value in enumerate(ordered))


def best_so_far(values: Sequence[float | None], sign: float) -> list[float | None]:
    """Return the best value after each trial, None before the first that has one."""
    found: list[float | None] = []
    for value in values:
        last = found[-1] if found else None
        known = [one for one in (last, value) if one is not None]
        found.append(sign * min(sign * one for one in known) if known else None)
    return found

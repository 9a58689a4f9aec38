"""What is compared with what: the arms of each variant, pairing by seed, looks at results. No statistics here."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from analysis.question import Question
from analysis.scale import PLAIN, Scale
from analysis.statistics.intervals import Array, Interval, wilson
from analysis.study import Outcome, Study, Variant

FAILURES = ("failed", "diverged")
"""Outcomes that count against a variant."""


PENDING = ("missing", "running", "interrupted", "damaged")
"""What is no outcome yet: such a seed may still be trained."""


@dataclass(frozen=True)
class Arm:
    """One variant's outcomes of the metric by seed, in the order of the plan, and the seeds that succeeded.

    Outcomes hold the metric as recorded; `values` and `sample` are on the scale on which it is compared.
    """

    variant: Variant
    outcomes: Mapping[int, Outcome]
    scale: Scale = PLAIN
    solved: tuple[int, ...] = ()

    def on_seeds_of(self, other: "Arm") -> "Arm":
        """This arm on the seeds that were planned for both: one that was decided early has fewer."""
        outcomes = {seed: outcome for seed, outcome in self.outcomes.items() if seed in other.outcomes}
        return replace(self, outcomes=outcomes, solved=tuple(seed for seed in self.solved if seed in outcomes))

    @property
    def values(self) -> dict[int, float]:
        """The values of the runs that finished with one, on the scale of the comparison."""
        return {seed: self.scale.forward(value) for seed, value in finished(self.outcomes).items()}

    @property
    def sample(self) -> Array:
        """The same as an array, in the order of the plan."""
        return np.array(list(self.values.values()), dtype=float)

    @property
    def counts(self) -> Counter[str]:
        """How many runs there are of each kind of outcome."""
        return Counter(outcome.kind for outcome in self.outcomes.values())

    @property
    def failed(self) -> list[int]:
        """The seeds that crashed or diverged."""
        return [seed for seed, outcome in self.outcomes.items() if outcome.kind in FAILURES]

    @property
    def ended(self) -> list[int]:
        """The seeds with an outcome, good or bad."""
        return [seed for seed, outcome in self.outcomes.items() if outcome.kind == "ok" or outcome.kind in FAILURES]

    @property
    def success_rate(self) -> float | None:
        """Share of the runs that ended that succeeded; None when none has ended."""
        return len(self.solved) / len(self.ended) if self.ended else None

    @property
    def success_interval(self) -> Interval | None:
        """Wilson's interval of that share."""
        return wilson(len(self.solved), len(self.ended))


def finished(outcomes: Mapping[int, Outcome]) -> dict[int, float]:
    """The recorded values of the runs that finished with one, by seed."""
    return {seed: o.value for seed, o in outcomes.items() if o.kind == "ok" and o.value is not None}


@dataclass(frozen=True)
class Pairs:
    """The values of two arms on the seeds that finished in both, and the seeds that ended in one of them only."""

    seeds: tuple[int, ...]
    variant: Array
    baseline: Array
    dropped: tuple[int, ...]


def arm_of(study: Study, variant: Variant, question: Question) -> Arm:
    """The outcomes of one variant."""
    outcomes = {run.seed: run.outcome(question.metric) for run in study.of(variant)}
    solved = tuple(seed for seed, value in finished(outcomes).items() if question.solved(value))
    return Arm(variant, outcomes, question.scale, solved)


def pair(variant: Arm, baseline: Arm) -> Pairs:
    """Pair two arms by seed, in the order of the variant's seeds."""
    left, right = variant.values, baseline.values
    seeds = tuple(seed for seed in left if seed in right)
    dropped = tuple(sorted(set(variant.ended + baseline.ended) - set(seeds)))
    return Pairs(seeds, np.array([left[s] for s in seeds]), np.array([right[s] for s in seeds]), dropped)


def as_compared(study: Study, arm: Arm, base: Arm) -> tuple[Arm, Arm]:
    """Both arms on the seeds planned for both, where one of them was stopped early."""
    if {arm.variant.cell, base.variant.cell} & study.stopped.keys():
        return arm.on_seeds_of(base), base.on_seeds_of(arm)
    return arm, base


def looks_at(study: Study, cells: frozenset[str]) -> list[int]:
    """The distinct numbers of seeds at which these cells were looked at, as the sweeps recorded them."""
    return sorted({_size(look.seeds, cells) for look in study.looks if cells <= look.seeds.keys()} - {0})


def seeds_now(study: Study, cells: frozenset[str]) -> int:
    """The number of seeds that a look at the present results sees, counted as `Look` counts them."""
    return _size(study.ended, cells)


def _size(seeds: Mapping[str, frozenset[int]], cells: frozenset[str]) -> int:
    return min(len(seeds.get(cell, frozenset())) for cell in cells)


class Seen(NamedTuple):
    """Pairs in the order in which looks came to see them, and how many each look saw."""

    order: list[int]
    sizes: list[int]


def pairs_seen(study: Study, pairs: Pairs, cells: frozenset[str]) -> Seen:
    """What the looks saw of these pairs, from the smallest on.

    A look that did not see all that a smaller one saw, because it was at other seeds, is left out: the running maximum
    of an e-value holds along one growing sample.
    """
    looks = [look.seeds for look in study.looks if cells <= look.seeds.keys()]
    sights = {frozenset.intersection(*(seeds[cell] for cell in cells)) & frozenset(pairs.seeds) for seeds in looks}
    known: frozenset[int] = frozenset()
    order: list[int] = []
    sizes: list[int] = []
    for one in sorted(sights, key=lambda sight: (len(sight), sorted(sight))):
        if known <= one:
            order += [place for place, seed in enumerate(pairs.seeds) if seed in one - known]
            known, sizes = one, [*sizes, len(one)]
    return Seen([*order, *(place for place, seed in enumerate(pairs.seeds) if seed not in known)], sizes)

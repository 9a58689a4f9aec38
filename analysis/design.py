"""What is compared with what: the arms of each variant, and pairing by seed. No statistics here."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from analysis.question import Question
from analysis.scale import PLAIN, Scale
from analysis.statistics.intervals import MINIMUM, Array, Interval, wilson
from analysis.study import Outcome, Study, Variant

FAILURES = ("failed", "diverged")
"""Outcomes that count against a variant."""


PENDING = ("missing", "running", "interrupted", "damaged")
"""What is no outcome yet: such a seed may still be trained."""


@dataclass(frozen=True)
class Arm:
    """One variant's outcomes of the metric by seed, in the order of the plan, and the seeds that succeeded.

    Outcomes hold the metric as recorded; `values` and `sample` are on the scale on which it is compared, and so is
    `error`, the mean standard error of the evaluations (metric `<name>_se`), 0 when none was recorded.
    """

    variant: Variant
    outcomes: Mapping[int, Outcome]
    scale: Scale = PLAIN
    solved: tuple[int, ...] = ()
    error: float = 0.0

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
    def is_pending(self) -> bool:
        """Whether a planned run has no outcome yet."""
        return any(outcome.kind in PENDING for outcome in self.outcomes.values())

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
    runs = study.of(variant)
    outcomes = {run.seed: run.outcome(question.metric) for run in runs}
    values = finished(outcomes)
    solved = tuple(seed for seed, value in values.items() if question.solved(value))
    records = [run.record for run in runs if run.record is not None and run.seed in values]
    found = [(values[record.seed], record.metrics.get(f"{question.metric}_se")) for record in records]
    # The standard error of log y is, to first order, that of y divided by y.
    errors = [error / value if question.scale.is_log else error for value, error in found if error is not None]
    return Arm(variant, outcomes, question.scale, solved, float(np.mean(errors)) if errors else 0.0)


def pair(variant: Arm, baseline: Arm) -> Pairs:
    """Pair two arms by seed, in the order of the variant's seeds."""
    left, right = variant.values, baseline.values
    seeds = tuple(seed for seed in left if seed in right)
    dropped = tuple(sorted(set(variant.ended + baseline.ended) - set(seeds)))
    return Pairs(seeds, np.array([left[s] for s in seeds]), np.array([right[s] for s in seeds]), dropped)


def why_unpaired(study: Study, arm: Arm, base: Arm, pairs: Pairs) -> str:
    """Why the runs of two arms are compared as they are and not seed by seed; empty when they are paired.

    A choice by counts, never by which interval is narrower: with fewer than 3 pairs, or pairs of less than half of
    either arm's runs once all have ended, most of what was measured would be left out.
    """
    if not study.shared_seeds:
        return "equal run numbers have nothing in common"
    if not set(arm.ended) & set(base.ended):
        return "no common seeds"
    sizes, n = (len(arm.values), len(base.values)), len(pairs.seeds)
    if min(sizes) < MINIMUM:
        return ""
    if n < MINIMUM:
        return f"{n} of {max(sizes)} runs have a partner of the same seed"
    few = 2 * n < max(sizes) and not (arm.is_pending or base.is_pending)
    return f"{n} of {max(sizes)} runs have a partner of the same seed" if few else ""


def as_compared(study: Study, arm: Arm, base: Arm) -> tuple[Arm, Arm]:
    """Both arms on the seeds planned for both, where one of them was stopped early."""
    if {arm.variant.cell, base.variant.cell} & study.stopped.keys():
        return arm.on_seeds_of(base), base.on_seeds_of(arm)
    return arm, base

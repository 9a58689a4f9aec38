"""Comparisons of several tasks put together: the score of every run, and per variant what its scores amount to.

Only tasks count on which every variant has a run that ended, and some run finished. The statistics are in
`analysis.statistics.aggregate`, tables of them in `analysis.overall_tables`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from analysis.results import Comparison
from analysis.statistics.aggregate import FEWEST_TASKS, Estimate, iqm, jackknife, normalise, share_above
from analysis.statistics.intervals import Array, Interval

Scores = Mapping[str, Mapping[int, float]]
"""The score of a variant's runs by task and seed."""

LIMITS = Interval(0.0, 1.0)
"""The values that a score can take, and a share of runs."""


@dataclass(frozen=True)
class VariantScores:
    """One variant over all tasks. `place` is its place in the study; `n_failed` counts runs that score 0 as failures.

    On the runs (task and seed) that ended in both, `difference` is IQM minus the baseline's, and `wins` the share of
    those that score higher than the baseline's, ties counted half: None for the baseline and without shared seeds.
    """

    label: str
    place: int
    scores: Scores
    n_failed: int
    iqm: Estimate
    difference: Estimate | None
    wins: Estimate | None

    @property
    def units(self) -> list[Array]:
        """The scores seed by seed."""
        return _units(self.scores)

    @property
    def n_runs(self) -> int:
        """The number of runs with a score."""
        return sum(map(len, self.scores.values()))


@dataclass(frozen=True)
class Aggregate:
    """All variants over the tasks that they have in common, in the order of the plan."""

    tasks: tuple[str, ...]
    baseline: str
    variants: tuple[VariantScores, ...]


def aggregate(comparisons: Mapping[str, Comparison]) -> Aggregate | None:
    """Put comparisons together by task; None unless there are at least three common tasks."""
    places = labels_of(comparisons)
    common = {task: one for task, one in comparisons.items() if not obstacle(one, places)}
    if len(common) < FEWEST_TASKS:
        return None
    baseline = next(iter(common.values())).question.baseline.label
    scores = {label: {task: _scores(one, label) for task, one in common.items()} for label in places}
    paired = baseline if all(one.study.shared_seeds for one in common.values()) else None
    variants = (_variant_scores(label, place, scores, common, paired) for label, place in places.items())
    return Aggregate(tuple(common), baseline, tuple(variants))


def labels_of(comparisons: Mapping[str, Comparison]) -> dict[str, int]:
    """The variants of all tasks in the order of the plan, each with its place in the study."""
    places = {label: place for one in comparisons.values() for label, place in one.study.places.items()}
    compared = {result.variant.label for one in comparisons.values() for result in one.results}
    return {label: places[label] for label in sorted(compared, key=places.__getitem__)}


def obstacle(comparison: Comparison, labels: Iterable[str]) -> str:
    """Why a task says nothing of all these variants together; empty when it does."""
    there = {result.variant.label for result in comparison.results if result.arm.ended}
    missing = [label for label in labels if label not in there]
    if missing:
        return f"no run of {', '.join(missing)} has ended"
    return "" if _finished(comparison).size else "no run has finished"


def _finished(comparison: Comparison) -> Array:
    """The values of all finished runs of a task."""
    return np.concatenate([result.arm.sample for result in comparison.results])


def _scores(comparison: Comparison, label: str) -> dict[int, float]:
    """The scores of one variant's runs that ended; 0 for one that failed or diverged."""
    arm, lower = comparison.result(label).arm, comparison.question.lower_is_better
    found = normalise(arm.sample, _finished(comparison), lower_is_better=lower)
    return dict.fromkeys(arm.ended, 0.0) | dict(zip(arm.values, map(float, found), strict=True))


def _variant_scores(
    label: str,
    place: int,
    scores: Mapping[str, Scores],
    comparisons: Mapping[str, Comparison],
    baseline: str | None,
) -> VariantScores:
    """One variant; `baseline` is None when seeds are not shared."""
    failed = sum(len(one.result(label).arm.failed) for one in comparisons.values())
    pairs = [] if baseline in (None, label) else _pairs(scores[label], scores[baseline])
    return VariantScores(
        label,
        place,
        scores[label],
        failed,
        clipped(jackknife(_units(scores[label]), lambda units: iqm(np.concatenate(units)))),
        jackknife(pairs, _iqm_difference) if pairs else None,
        clipped(jackknife(pairs, _share_won)) if pairs else None,
    )


def _units(scores: Scores) -> list[Array]:
    seeds = dict.fromkeys(seed for own in scores.values() for seed in own)
    return [np.array([own[seed] for own in scores.values() if seed in own]) for seed in seeds]


def _pairs(variant: Scores, baseline: Scores) -> list[Array]:
    """Seed by seed the scores of both on the tasks on which the seed ended in both, a row per task."""
    common = {task: [seed for seed in own if seed in baseline[task]] for task, own in variant.items()}
    seeds = dict.fromkeys(seed for own in common.values() for seed in own)
    return [
        np.array([[variant[task][seed], baseline[task][seed]] for task, own in common.items() if seed in own])
        for seed in seeds
    ]


def _iqm_difference(units: Sequence[Array]) -> float:
    both = np.concatenate(units)
    return iqm(both[:, 0]) - iqm(both[:, 1])


def _share_won(units: Sequence[Array]) -> float:
    variant, baseline = np.concatenate(units).T
    return float(np.mean(variant > baseline) + 0.5 * np.mean(variant == baseline))


def clipped(estimate: Estimate) -> Estimate:
    """The estimate of a share or score, its interval within 0 and 1."""
    bounds = estimate.interval
    return estimate if bounds is None else Estimate(estimate.value, bounds.clipped(LIMITS), estimate.n)


def profile(variant: VariantScores, taus: Iterable[float]) -> list[Estimate]:
    """The share of the variant's runs that score above each tau, with its pointwise interval over seeds."""
    return [clipped(jackknife(variant.units, partial(_share_above, tau))) for tau in taus]


def _share_above(tau: float, units: Sequence[Array]) -> float:
    return share_above(np.concatenate(units), tau)

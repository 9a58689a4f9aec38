"""Comparisons of several tasks put together: the score of every run, and per variant what its scores amount to.

What the scores 0 and 1 mean is in `analysis.references`; no other variant has a say in it. Only tasks count on which
every variant has a run that ended, some run finished, and there is a scale. The statistics are in
`analysis.statistics.aggregate`, tables of them in `analysis.overall_tables`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from analysis.references import Anchors, Reference, anchors_of
from analysis.results import Comparison
from analysis.statistics.aggregate import FEWEST_TASKS, Estimate, iqm, jackknife, share_above
from analysis.statistics.intervals import Array, Interval

Scores = Mapping[str, Mapping[int, float]]
"""The score of a variant's runs by task and seed; minus infinity for one that failed or diverged."""

SHARES = Interval(0.0, 1.0)
"""The values that a share of runs can take."""


@dataclass(frozen=True)
class VariantScores:
    """One variant over all tasks. `place` is its place in the study.

    A run that failed or diverged is above no threshold and loses against every run that finished. In a mean it counts
    as `floor`: the score of the worst finished run of the variant and the baseline on any task, at most 0.

    On the runs (task and seed) that ended in both, `difference` is IQM minus the baseline's, and `wins` the share of
    those that score higher than the baseline's, ties counted half: None for the baseline and without shared seeds.
    """

    label: str
    place: int
    scores: Scores
    floor: float
    iqm: Estimate
    difference: Estimate | None
    wins: Estimate | None

    @property
    def units(self) -> list[Array]:
        """The scores seed by seed."""
        return _units(self.scores)

    @property
    def finite(self) -> Array:
        """The scores of the runs that finished."""
        every = np.concatenate(self.units)
        return every[np.isfinite(every)]

    @property
    def n_runs(self) -> int:
        """The number of runs that ended."""
        return sum(map(len, self.scores.values()))

    @property
    def n_failed(self) -> int:
        """The number of runs that failed or diverged."""
        return sum(math.isinf(score) for own in self.scores.values() for score in own.values())


@dataclass(frozen=True)
class Aggregate:
    """All variants over the tasks that they have in common, in the order of the plan.

    `reference` is what was declared of the scale; without, scores are relative to the baseline.
    """

    tasks: tuple[str, ...]
    baseline: str
    variants: tuple[VariantScores, ...]
    reference: Reference | None = None

    @property
    def unit(self) -> str:
        """What the scores are, in a few words."""
        if self.reference is None:
            return f"SD of {self.baseline}'s runs, 0: their mean on the task"
        if self.reference.variants is not None:
            return f"0: mean of {self.reference.variants[0]}, 1: of {self.reference.variants[1]} on the task"
        return "0: the worse, 1: the better reference of the task"


HEAVY = 20
"""How many times the usual score a task's scores are when a note says that it outweighs the others."""


def heavy_tasks(found: Aggregate) -> list[str]:
    """The tasks whose scores, relative to the baseline, dwarf those of the others: its runs hardly differ there."""
    if found.reference is not None:
        return []
    heavy = set()
    for one in found.variants:
        finite = {task: [s for s in own.values() if math.isfinite(s)] for task, own in one.scores.items()}
        sizes = {task: abs(float(np.median(own))) for task, own in finite.items() if own}
        heavy |= {task for task, size in sizes.items() if size > HEAVY * max(1.0, float(np.median([*sizes.values()])))}
    return [task for task in found.tasks if task in heavy]


def aggregate(comparisons: Mapping[str, Comparison], reference: Reference | None = None) -> Aggregate | None:
    """Put comparisons together by task; None unless there are at least three common tasks with a scale."""
    scales, _ = scales_of(comparisons, reference)
    if len(scales) < FEWEST_TASKS:
        return None
    common = {task: comparisons[task] for task in scales}
    places = labels_of(comparisons)
    baseline = next(iter(common.values())).question.baseline.label
    scores = {label: {task: _scores(common[task], label, scales[task]) for task in scales} for label in places}
    shared = all(one.study.shared_seeds for one in common.values())
    base = scores[baseline]
    variants = (
        _variant_scores(label, place, scores[label], base, paired=shared and label != baseline)
        for label, place in places.items()
    )
    return Aggregate(tuple(common), baseline, tuple(variants), reference)


def scales_of(
    comparisons: Mapping[str, Comparison], reference: Reference | None
) -> tuple[dict[str, Anchors], dict[str, str]]:
    """The scale of every task that can be put together with others, and why the other tasks cannot."""
    scales, reasons = {}, {}
    labels = list(labels_of(comparisons))
    for task, one in comparisons.items():
        found = obstacle(one, labels) or anchors_of(one, task, reference)
        if isinstance(found, str):
            reasons[task] = found
        else:
            scales[task] = found
    return scales, reasons


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


def _scores(comparison: Comparison, label: str, scale: Anchors) -> dict[int, float]:
    """The scores of one variant's runs that ended."""
    arm = comparison.result(label).arm
    found = map(float, scale.scores(arm.sample))
    return dict.fromkeys(arm.ended, -math.inf) | dict(zip(arm.values, found, strict=True))


def _variant_scores(label: str, place: int, scores: Scores, base: Scores, *, paired: bool) -> VariantScores:
    """One variant; `paired` says that it is compared with the scores of the baseline, `base`, seed by seed."""
    floor = _floor(scores, base)
    filled = _filled(scores, floor)
    pairs = _pairs(filled, _filled(base, _floor(base, base))) if paired else []
    return VariantScores(
        label,
        place,
        scores,
        floor,
        jackknife(_units(filled), lambda units: iqm(np.concatenate(units))),
        jackknife(pairs, _iqm_difference) if pairs else None,
        clipped(jackknife(_pairs(scores, base), _share_won)) if pairs else None,
    )


def _floor(scores: Scores, base: Scores) -> float:
    """What a failed run counts in a mean."""
    every = (score for both in (scores, base) for own in both.values() for score in own.values())
    return min([0.0, *filter(math.isfinite, every)])


def _filled(scores: Scores, floor: float) -> Scores:
    """The scores with failed runs at the floor, which no finished run is below."""
    return {task: {seed: max(score, floor) for seed, score in own.items()} for task, own in scores.items()}


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
    """The estimate of a share, its interval within 0 and 1."""
    bounds = estimate.interval
    return estimate if bounds is None else Estimate(estimate.value, bounds.clipped(SHARES), estimate.n)


def profile(variant: VariantScores, taus: Iterable[float]) -> list[Estimate]:
    """The share of the variant's runs that score above each tau, with its pointwise interval over seeds."""
    return [clipped(jackknife(variant.units, partial(_share_above, tau))) for tau in taus]


def _share_above(tau: float, units: Sequence[Array]) -> float:
    return share_above(np.concatenate(units), tau)

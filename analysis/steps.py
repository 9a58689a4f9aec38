"""How many steps the runs of each variant needed to reach the declared threshold, from their evaluation curves.

A run reaches it at the first evaluation at or beyond the threshold; one that never does is censored at its last
evaluation. Where evaluations are missing from a damaged log, that the other runs of its variant have, it may have
reached the threshold unseen: it is censored at the last evaluation before. Runs that have not ended count in neither
way. The estimates are in `analysis.statistics.survival`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis import formatting as fmt
from analysis.captions import marked
from analysis.curves import RunLog
from analysis.design import Arm
from analysis.question import Question
from analysis.results import Comparison
from analysis.series import EMPTY, Series
from analysis.statistics.multiple import holm
from analysis.statistics.survival import Times, kaplan_meier, logrank_p, median_steps
from analysis.study import Variant
from analysis.tables import Cell, Column, Table

COLUMNS = (
    Column("variant"),
    Column("n", "right"),
    Column("reached", "right"),
    Column("median steps [95 % CI]", "right"),
    Column("p (log-rank, Holm)", "right"),
)


@dataclass(frozen=True)
class ArmTimes:
    """One variant with its steps to the threshold; `order` is its place in the study's plan."""

    variant: Variant
    order: int
    times: Times


def times_to_threshold(comparison: Comparison) -> list[ArmTimes]:
    """The steps of every variant that has a run that ended; empty without a threshold or without curves."""
    question, study = comparison.question, comparison.study
    if question.threshold is None:
        return []
    logged = [(run, one) for run, one in study.series(question.metric) if one.step.size]
    if not logged:
        return []
    series = {(run.variant.label, run.seed): one for run, one in logged}
    # Other programs' logs may have steps of their own in every run.
    mend = _without_gaps if all(isinstance(run.log, RunLog) for run, _ in logged) else list
    return [
        ArmTimes(one.variant, study.places[one.variant.label], _times(one.arm, series, question, mend))
        for one in comparison.results
        if one.arm.ended
    ]


def _times(
    arm: Arm,
    series: Mapping[tuple[str, int], Series],
    question: Question,
    mend: Callable[[Sequence[Series]], list[Series]],
) -> Times:
    """A run without any evaluation says nothing about any step: it is censored at 0."""
    reached, censored = [], []
    for one in mend([series.get((arm.variant.label, seed), EMPTY) for seed in arm.ended]):
        first = _first_solved(one, question)
        if first is not None:
            reached.append(first)
        else:
            censored.append(float(one.step[-1]) if one.step.size else 0.0)
    return Times(np.array(reached), np.array(censored))


def _without_gaps(found: Sequence[Series]) -> list[Series]:
    """Series up to the first step that they lack and that half or more of those that got so far have."""
    steps, have = np.unique(np.concatenate([one.step for one in found] or [EMPTY.step]), return_counts=True)
    lasts = np.array([one.step[-1] for one in found if one.step.size])
    usual = steps[2 * have >= (lasts[:, None] >= steps).sum(axis=0)]
    ends = [next(iter(np.setdiff1d(usual, one.step)), np.inf) for one in found]
    return [one.at(one.step < end) for one, end in zip(found, ends, strict=True)]


def _first_solved(series: Series, question: Question) -> float | None:
    """The first step with a value at or beyond the threshold."""
    solved = series.step[question.solves(series.value)]
    return float(solved[0]) if solved.size else None


def steps_table(comparison: Comparison) -> Table:
    """Median steps to the threshold by variant; without rows when there is no threshold or no curve."""
    arms = times_to_threshold(comparison)
    base = next((arm.times for arm in arms if arm.variant is comparison.question.baseline), None)
    others = [arm for arm in arms if arm.variant is not comparison.question.baseline]
    p_values = holm([logrank_p(arm.times, base) if base is not None else None for arm in others])
    p_of = {arm.order: p for arm, p in zip(others, p_values, strict=True)}
    rows = [_row(arm, p_of.get(arm.order), comparison.question.alpha, is_baseline=arm.times is base) for arm in arms]
    return Table("steps_to_threshold", COLUMNS, rows, marked(comparison.study, _caption(comparison)))


def _row(arm: ArmTimes, p: float | None, alpha: float, *, is_baseline: bool) -> tuple[Cell, ...]:
    median, interval = median_steps(kaplan_meier(arm.times))
    shown = f"{fmt.number(median, 0)} {fmt.interval(interval, 0)}" if math.isfinite(median) else "not reached"
    ends = [end if math.isfinite(end) else None for end in interval]
    values = {"median_steps": median if math.isfinite(median) else None, "median_steps_ci": ends}
    return (
        Cell(arm.variant.label, {"label": arm.variant.label}),
        Cell(str(arm.times.n), {"n": arm.times.n}),
        Cell(str(arm.times.reached.size), {"reached": int(arm.times.reached.size)}),
        Cell(shown, values),
        Cell(fmt.DASH if is_baseline else fmt.p_value(p, alpha), {"p_holm": p}),
    )


def _caption(comparison: Comparison) -> str:
    question = comparison.question
    return (
        f"Steps until an evaluation along the way has {question.metric} {question.threshold_text}: Kaplan-Meier, runs "
        "that never had censored at their last evaluation (those that diverged or crashed too; a damaged log ends "
        "at its first gap); not paired by seed."
    )

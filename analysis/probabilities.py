"""Probabilities beside a verdict: that a run of the variant is better, and where the posterior of the mean lies.

No verdict rests on them. Formulas and sources: `analysis.statistics.superiority` and `.posterior`.
"""

import math
from typing import Any, NamedTuple

from analysis import design
from analysis import formatting as fmt
from analysis.results import Against, Comparison, VariantResult
from analysis.statistics.intervals import MINIMUM, Interval
from analysis.statistics.posterior import Shares, shares, welch_error
from analysis.statistics.superiority import exact, newcombe


class Improvement(NamedTuple):
    """P(a run of the variant is better than one of the baseline), with its 95 % interval."""

    value: float
    interval: Interval


def improvement(against: Against) -> Improvement | None:
    """By pairs where seeds are shared, else by all pairs of runs; None without a finished run in both arms."""
    d = against.difference
    if d.paired:
        return Improvement(d.wins / d.n, exact(d.wins, d.n)) if d.wins is not None and d.n else None
    n, m = against.outcomes.variant_ok, against.outcomes.baseline_ok
    return Improvement(d.superiority, newcombe(d.superiority, n, m)) if d.superiority is not None else None


def improvement_text(against: Against) -> str:
    """P(better) 0.80 [0.28, 0.99]; empty where there is none."""
    found = improvement(against)
    return f"P(better) {' '.join(fmt.estimate(found.value, found.interval, 2, apart=(0.5, 1.0)))}" if found else ""


def posterior(comparison: Comparison, result: VariantResult, against: Against) -> Shares | None:
    """The shares of the posterior of the mean difference; None below 3 pairs (or runs per arm) and without spread."""
    d, question = against.difference, comparison.question
    if d.mean is None or d.n < MINIMUM or d.constant or not d.sd:
        return None
    error, freedom = d.sd / math.sqrt(d.n), d.n - 1.0
    if not d.paired:
        arm, base = design.as_compared(comparison.study, result.arm, comparison.baseline.arm)
        error, freedom = welch_error(arm.sample, base.sample)
    return shares(d.mean, error, freedom, margin=question.margin, lower_is_better=question.lower_is_better)


def posterior_sentence(comparison: Comparison, result: VariantResult, against: Against) -> str:
    """How much of the posterior is worse, within the margin, better; empty where there is none."""
    found, question = posterior(comparison, result, against), comparison.question
    if found is None:
        return ""
    within = ""
    if found.within is not None and question.margin is not None:
        sign = "" if question.scale.is_log else "±"
        within = f"{_per_cent(found.within)} within {sign}{question.scale.size(question.margin, 3)}, "
    name = "ratio" if question.scale.is_log else "difference"
    return (
        f"Posterior of the mean {name} (flat prior): {_per_cent(found.worse)} worse, {within}"
        f"{_per_cent(found.better)} better."
    )


def _per_cent(share: float) -> str:
    """A share in words that never call a possible thing certain: 12 %, under 1 %, over 99 %."""
    if share < 0.01:
        return "under 1 %"
    return "over 99 %" if share > 0.99 else f"{100 * share:.0f} %"


def probability_data(comparison: Comparison, result: VariantResult, against: Against) -> dict[str, Any]:
    """Both for scripts, unrounded."""
    better, found = improvement(against), posterior(comparison, result, against)
    return {
        "superiority": better.value if better else None,
        "superiority_ci": list(better.interval) if better else None,
        "posterior": found._asdict() if found else None,
    }

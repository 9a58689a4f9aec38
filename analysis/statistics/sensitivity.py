"""Would another test, or one seed less, say otherwise? Five answers beside the one that decides.

All are of the same pairs: the paired t, the exact sign-flip permutation test, Wilcoxon's signed ranks (differences of
zero split between the signs), Welch's t, which cannot use the pairing, and the difference of the interquartile means.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from analysis.formatting import p_phrase
from analysis.statistics.intervals import MINIMUM, Array

EXACT_LIMIT = 20
"""Largest n for which all 2^n sign flips are enumerated (8 MB); beyond, the t-test needs no such check."""

FEWEST_SIGNS = 6
"""Below this many pairs a test of signs or ranks cannot reach p < .05 (2 / 2^5 = .0625)."""


FEWEST_TO_BE_FRAGILE = 8
"""Pairs from which on a result is called fragile."""


@dataclass(frozen=True)
class Sensitivity:
    """p values, not corrected, and the difference of the interquartile means (variant minus baseline, 4 pairs or more).

    `sign_flip` is None below 6 pairs and beyond 20, `wilcoxon` below 6; `t` is None for arms that are not paired.
    """

    t: float | None = None
    sign_flip: float | None = None
    wilcoxon: float | None = None
    welch: float | None = None
    iqm_difference: float | None = None


def sensitivity(variant: Array, baseline: Array, t_p: float) -> Sensitivity:
    """The five checks of paired arms of at least 3 pairs whose difference is not constant; `t_p` is that of the t."""
    differences = variant - baseline
    return Sensitivity(
        t_p,
        sign_flip_p(differences),
        wilcoxon_p(differences),
        welch_p(variant, baseline),
        iqm_difference(variant, baseline),
    )


def sign_flip_p(differences: Array) -> float | None:
    """Exact two-sided p of mean D over all 2^n sign flips; None below 6 pairs (p could not reach .05) and beyond 20."""
    n = differences.size
    if not FEWEST_SIGNS <= n <= EXACT_LIMIT:
        return None
    sums = np.zeros(1)
    for value in differences:
        sums = np.concatenate([sums + value, sums - value])
    observed = abs(float(differences.sum()))
    return float(np.mean(np.abs(sums) >= observed * (1 - 1e-12)))


def wilcoxon_p(differences: Array) -> float | None:
    """Two-sided p of Wilcoxon's signed ranks, zeros split; None below 6 pairs. D is rounded so that ties are ties."""
    if differences.size < FEWEST_SIGNS:
        return None
    rounded = np.round(differences / np.abs(differences).max(), 10)
    if differences.size > EXACT_LIMIT:
        return float(stats.wilcoxon(rounded, zero_method="zsplit").pvalue)
    # All sign flips of the signed ranks are the exact test, ties or not; scipy takes far longer over ties.
    return sign_flip_p(np.sign(rounded) * stats.rankdata(np.abs(rounded)))


def welch_p(variant: Array, baseline: Array) -> float | None:
    """Two-sided p of Welch's t, as if the seeds were not shared; None when both arms are constant."""
    if np.ptp(variant) == 0 and np.ptp(baseline) == 0:
        return None
    with warnings.catch_warnings():
        # One constant arm is fine for Welch, but scipy warns of its zero variance.
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(stats.ttest_ind(variant, baseline, equal_var=False).pvalue)


def iqm_difference(variant: Array, baseline: Array) -> float | None:
    """The interquartile mean of one arm less that of the other; None below 4 runs in either."""
    if min(variant.size, baseline.size) <= MINIMUM:
        return None
    return float(stats.trim_mean(variant, 0.25) - stats.trim_mean(baseline, 0.25))


def _as_it_is(p: float) -> float:
    return p


def why_fragile(
    differences: Array,
    checks: Sensitivity,
    corrected: Callable[[float], float] = _as_it_is,
    alpha: float = 0.05,
) -> str | None:
    """Say why significance at alpha is fragile: another test disagrees, or one seed decides. None when it is not.

    `corrected` turns a p of this comparison into the one that decides (Holm's). The tests are compared uncorrected.
    With few pairs nearly every result hangs on one of them (44 % of significant ones of 5), so that saying it of fewer
    than 8 would say nothing.
    """
    assert checks.t is not None
    if differences.size < FEWEST_TO_BE_FRAGILE:
        return None
    against = list(_disagreeing(differences, checks, checks.t, alpha))
    if against:
        return f"the t-test ({p_phrase(checks.t)}) and {' and '.join(against)} disagree"
    return _one_seed_decides(differences, checks.t, corrected, alpha)


def _disagreeing(differences: Array, checks: Sensitivity, t: float, alpha: float) -> Iterable[str]:
    """The checks that say otherwise at alpha.

    Welch is expected to find less than the paired t when pairing gains something, so it counts only when it finds more;
    the interquartile means count when they point the other way than a significant mean.
    """
    found = t < alpha
    for name, p in (("the sign-flip test", checks.sign_flip), ("the Wilcoxon test", checks.wilcoxon)):
        if p is not None and (p < alpha) != found:
            yield f"{name} ({p_phrase(p)})"
    if checks.welch is not None and checks.welch < alpha and not found:
        yield f"the Welch test ({p_phrase(checks.welch)})"
    if found and checks.iqm_difference is not None and checks.iqm_difference * differences.mean() < 0:
        yield f"the difference of interquartile means ({checks.iqm_difference:+.2g})".replace("-", "−")


def _one_seed_decides(differences: Array, p: float, corrected: Callable[[float], float], alpha: float) -> str | None:
    if differences.size <= MINIMUM:
        return None
    kept = [np.delete(differences, index) for index in range(differences.size)]
    significant = corrected(p) < alpha
    flips = sum((corrected(_paired_t_p(rest)) < alpha) != significant for rest in kept if np.ptp(rest) > 0)
    return f"leaving out one seed changes significance ({flips} of {differences.size} seeds)" if flips else None


def _paired_t_p(differences: Array) -> float:
    t = differences.mean() / (differences.std(ddof=1) / np.sqrt(differences.size))
    return float(2 * special.stdtr(differences.size - 1, -abs(t)))

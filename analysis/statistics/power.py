"""What a design can detect, and how many seeds a stated effect needs.

Power of the two-sided t-test with effect δ and deviation σ: t² is noncentral F(1, nu), when paired with nu = n - 1 and
noncentrality n (δ/σ)², when unpaired with n runs per arm with nu = 2n - 2 and n/2 (δ/σ)². The seeds needed are for the
margin the user declared, never for the effect that was observed, with σ at its 80 % upper bound.
"""

import functools

import numpy as np
from scipy import optimize, stats

from analysis.statistics.intervals import MINIMUM

MOST_SEEDS = 200
"""Beyond this the answer is "more than 200": another design is wanted, not more seeds."""

CERTAIN = 1e4
"""A noncentrality at which the power is 1; scipy gives NaN for much larger ones."""


def power(effect: float, sd: float, n: int, *, paired: bool = True, alpha: float = 0.05) -> float:
    """Probability that the t-test with n pairs (or n runs per arm) rejects at alpha."""
    nu = n - 1 if paired else 2 * n - 2
    shift = min(abs(effect) / sd * np.sqrt(n if paired else n / 2), CERTAIN)
    return float(stats.ncf.sf(stats.f.ppf(1 - alpha, 1, nu), 1, nu, shift**2))


def minimum_detectable_effect(
    sd: float, n: int, *, paired: bool = True, target: float = 0.8, alpha: float = 0.05
) -> float | None:
    """The effect, in the unit of sd, found with the target power; None below 3 pairs or without spread."""
    return sd * _detectable(n, paired, target, alpha) if n >= MINIMUM and sd > 0 else None


@functools.lru_cache(maxsize=1024)
def _detectable(n: int, paired: bool, target: float, alpha: float) -> float:
    """The same in deviations; every comparison of a study asks for it."""

    def shortfall(standardised: float) -> float:
        return power(standardised, 1.0, n, paired=paired, alpha=alpha) - target

    return float(optimize.brentq(shortfall, 1e-3, 300.0))


def upper_sd(sd: float, n: int, level: float = 0.8) -> float:
    """The one-sided upper confidence bound of a standard deviation: sd · sqrt((n - 1) / chi2_{1 - level, n - 1})."""
    return sd * float(np.sqrt((n - 1) / stats.chi2.ppf(1 - level, n - 1)))


def seeds_needed(
    sd: float, effect: float, *, paired: bool = True, target: float = 0.8, alpha: float = 0.05
) -> int | None:
    """The smallest number of seeds (per arm) with the target power for the effect; None when more than 200."""
    if sd <= 0:
        return MINIMUM
    for n in range(MINIMUM, MOST_SEEDS + 1):
        if power(effect, sd, n, paired=paired, alpha=alpha) >= target:
            return n
    return None

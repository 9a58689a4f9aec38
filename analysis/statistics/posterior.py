"""How the posterior of a mean difference is shared out between worse, within the margin of interest, and better.

    mean D | data  ~  mean + standard error · t(nu)

The posterior of the Bayesian t-test of Benavoli, Corani, Demšar & Zaffalon (2017), "Time for a Change", under the prior
1/sigma on independent differences: for n pairs the standard error is s_D / sqrt(n) and nu = n - 1 (their correlated
form is for folds that share data; seeds share none). Unpaired: Welch's standard error and degrees of freedom, which
approximate the Behrens-Fisher posterior. The region within the margin is their region of practical equivalence (ROPE).
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.statistics.intervals import Array


class Shares(NamedTuple):
    """Probabilities that sum to 1; `within` is None without a margin."""

    worse: float
    within: float | None
    better: float


def shares(
    mean: float, error: float, freedom: float, *, margin: float | None = None, lower_is_better: bool = True
) -> Shares:
    """The shares for a mean difference, variant minus baseline, with its standard error, which is positive."""
    posterior = stats.t(freedom, loc=mean, scale=error)
    edge = margin or 0.0
    below, above = float(posterior.cdf(-edge)), float(posterior.sf(edge))
    better, worse = (below, above) if lower_is_better else (above, below)
    return Shares(worse, None if margin is None else max(0.0, 1 - below - above), better)


def welch_error(variant: Array, baseline: Array) -> tuple[float, float]:
    """Welch's standard error of the difference of two means, not both constant, and its degrees of freedom."""
    parts = np.array([arm.var(ddof=1) / arm.size for arm in (variant, baseline)])
    freedom = parts.sum() ** 2 / (parts**2 / [variant.size - 1, baseline.size - 1]).sum()
    return float(np.sqrt(parts.sum())), float(freedom)

"""Steps until a threshold is reached, with runs that never reached it censored: Kaplan-Meier and the log-rank test.

    S(t) = product over event steps t_i <= t of (1 - d_i / r_i)     d_i runs reach it at t_i, r_i are still on the way

The median is the first step with S <= 1/2, its interval the steps at which the limits of S (log-log, 95 %) cross 1/2
(Brookmeyer and Crowley 1982). Both are infinite when the curve stays above.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.intervals import Array, Interval


@dataclass(frozen=True)
class Times:
    """One arm: the steps at which runs reached the threshold, and the last steps of those that did not."""

    reached: Array
    censored: Array

    @property
    def n(self) -> int:
        """All runs."""
        return int(self.reached.size + self.censored.size)

    @property
    def data(self) -> stats.CensoredData:
        """The same as scipy wants it."""
        return stats.CensoredData(uncensored=self.reached, right=self.censored)


@dataclass(frozen=True)
class Curve:
    """The share of runs that are still on the way after each step; limits are NaN where the share is 0 or 1."""

    steps: Array
    share: Array
    low: Array
    high: Array


def kaplan_meier(times: Times) -> Curve:
    """The survival curve at every step at which a run reached the threshold or was censored. Needs one run or more."""
    left = stats.ecdf(times.data).sf
    with warnings.catch_warnings():
        # scipy warns where the limits are undefined, which NaN says already.
        warnings.simplefilter("ignore", RuntimeWarning)
        limits = left.confidence_interval(0.95, method="log-log")
    return Curve(left.quantiles, left.probabilities, limits.low.probabilities, limits.high.probabilities)


def median_steps(curve: Curve) -> tuple[float, Interval]:
    """The median steps to the threshold and its 95 % interval; infinite where the curve does not come down to it."""
    low = np.where(np.isnan(curve.low), curve.share, curve.low)
    high = np.where(np.isnan(curve.high), 1.0, curve.high)
    return _first_half(curve.steps, curve.share), Interval(
        _first_half(curve.steps, low), _first_half(curve.steps, high)
    )


def _first_half(steps: Array, share: Array) -> float:
    """The first step at which at most half are on the way."""
    down = np.flatnonzero(share <= 0.5)
    return float(steps[down[0]]) if down.size else float("inf")


def logrank_p(first: Times, second: Times) -> float | None:
    """Two-sided p of the log-rank test; None when an arm has no run or no run of either reached the threshold."""
    if not first.n or not second.n or not first.reached.size + second.reached.size:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        p = float(stats.logrank(first.data, second.data).pvalue)
    return p if np.isfinite(p) else None

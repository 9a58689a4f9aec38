"""Intervals and summaries of one arm: Student t for a mean, Wilson for a proportion, robust location.

    t:       mean ± t_{1 - alpha/2, n - 1} · s / sqrt(n)
    Wilson:  the proportions p with |k/n - p| <= z sqrt(p (1 - p) / n)

Comparisons of two arms are in `paired`. The bootstrap is left out on purpose: at n = 5 a nominal 95 % percentile or BCa
interval covers .83, the t-interval .95.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

Array = npt.NDArray[np.float64]

MINIMUM = 3
"""The smallest number of runs (or pairs) that gets an interval: a spread of two values says next to nothing."""


class Interval(NamedTuple):
    """A two-sided interval in the unit of what it estimates; infinite ends are allowed."""

    low: float
    high: float

    def inside(self, bound: float) -> bool:
        """Whether the whole interval lies strictly within ± bound."""
        return -bound < self.low and self.high < bound

    def clipped(self, limits: "Interval") -> "Interval":
        """The part within the limits of a bounded metric."""
        return Interval(max(self.low, limits.low), min(self.high, limits.high))


@dataclass(frozen=True)
class Summary:
    """One arm. What n does not support is None: spread from 2 runs on, interval from 3, interquartile mean from 4."""

    n: int
    mean: float | None
    sd: float | None
    interval: Interval | None
    median: float | None
    iqm: float | None
    low: float | None
    high: float | None


def t_interval(values: Sequence[float] | Array, level: float = 0.95) -> Interval | None:
    """Student t interval for the mean; None for fewer than 3 values. Sample deviation (n - 1)."""
    sample = np.asarray(values, dtype=float)
    if sample.size < MINIMUM:
        return None
    half = stats.t.ppf((1 + level) / 2, sample.size - 1) * stats.sem(sample)
    return Interval(float(sample.mean() - half), float(sample.mean() + half))


def t_bands(mean: Array, sd: Array, n: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Student t intervals for many means at once, lower and upper ends; NaN where n is under 3."""
    n = np.where(n < MINIMUM, np.nan, n)
    half = stats.t.ppf((1 + level) / 2, n - 1) * sd / np.sqrt(n)
    return mean - half, mean + half


def wilson(successes: float, n: int, level: float = 0.95) -> Interval | None:
    """Wilson interval for a proportion; `successes` may hold halves (ties). None when n is 0."""
    if n == 0:
        return None
    low, high = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    return Interval(float(low) if successes else 0.0, float(high) if successes < n else 1.0)  # exact, not rounded


def summarise(values: Sequence[float] | Array) -> Summary:
    """Describe one arm's finished runs, the order of the values being of no account."""
    sample = np.sort(np.asarray(values, dtype=float))
    n = sample.size
    if n == 0:
        return Summary(0, None, None, None, None, None, None, None)
    return Summary(
        n=n,
        mean=float(sample.mean()),
        sd=float(sample.std(ddof=1)) if n > 1 else None,
        interval=t_interval(sample),
        median=float(np.median(sample)),
        iqm=float(stats.trim_mean(sample, 0.25)) if n > 3 else None,
        low=float(sample[0]),
        high=float(sample[-1]),
    )


def is_constant(values: Array, scale: float) -> bool:
    """Whether the values are equal but for rounding at the given scale (and not so small that squares vanish)."""
    return values.size > 1 and float(np.ptp(values)) <= 1e-12 * max(scale, 1e-100)

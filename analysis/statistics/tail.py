"""A slow tail: some runs of one arm end far worse than the other arm's runs do, while its typical run does not.

A mean hides it and its test rarely finds it, for the tail widens the interval that it must leave. The rule, for two
arms of at least `FEWEST` runs, written for lower is better:

    runs of the arm lie beyond Tukey's fence of the other, Q3 + 1.5 IQR (Tukey 1977), its median does not,
    and the spreads differ: Brown and Forsythe's test (1974), Levene's on absolute deviations from the median, p < alpha
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from analysis.statistics.intervals import Array

FEWEST = 5


class Tail(NamedTuple):
    """How many runs lie beyond the fence, of how many; the fence; and the p of equal spreads."""

    runs: int
    n: int
    fence: float
    p: float


def slow_tail(arm: Array, other: Array, *, lower_is_better: bool = True, alpha: float = 0.05) -> Tail | None:
    """The slow tail of `arm` seen from `other`; None when there is none, or too few runs to say."""
    if min(arm.size, other.size) < FEWEST:
        return None
    sign = 1.0 if lower_is_better else -1.0
    first, third = np.quantile(sign * other, (0.25, 0.75))
    fence = third + 1.5 * (third - first)
    beyond = int(np.sum(sign * arm > fence))
    if first == third or not beyond or np.median(sign * arm) > fence:
        return None
    p = float(stats.levene(arm, other, center="median").pvalue)
    return Tail(beyond, arm.size, float(sign * fence), p) if p < alpha else None

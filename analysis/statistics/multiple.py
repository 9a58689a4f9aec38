"""Many comparisons at once: Holm's correction, and Benjamini and Hochberg's for exploration.

Holm is written out, because statsmodels collects garbage at each call (20 ms) and fragility asks once per seed.
"""

from collections.abc import Sequence

import numpy as np
from scipy import stats


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p values in the given order.

    A comparison without a p (too few pairs) stays None but still counts in the family as p = 1, so that losing runs of
    one variant never makes another one's result look stronger.
    """
    if len(p_values) < 2:
        return list(p_values)
    known = np.array([1.0 if p is None else p for p in p_values])
    order = np.argsort(known)
    steps = np.minimum(1.0, known[order] * np.arange(known.size, 0, -1))
    adjusted = np.empty_like(known)
    adjusted[order] = np.maximum.accumulate(steps)
    return [None if p is None else float(q) for p, q in zip(p_values, adjusted, strict=True)]


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's (1995) q values in the given order, by scipy.

    Of the comparisons with q <= 5 %, an expected 5 % at most are false. One without a p stays None and counts in the
    family as p = 1, as in `holm`.
    """
    if not p_values:
        return []
    adjusted = stats.false_discovery_control([1.0 if p is None else p for p in p_values], method="bh")
    return [None if p is None else float(q) for p, q in zip(p_values, adjusted, strict=True)]

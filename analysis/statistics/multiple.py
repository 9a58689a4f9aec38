"""Holm's correction over the comparisons with the baseline.

Written out, because statsmodels collects garbage at each call (20 ms) and fragility asks once per seed.
"""

from collections.abc import Sequence

import numpy as np


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

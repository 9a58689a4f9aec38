"""Holm's correction over the comparisons with the baseline."""

from collections.abc import Sequence

from statsmodels.stats.multitest import multipletests


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p values in the given order.

    A comparison without a p (too few pairs) stays None but still counts in the family as p = 1, so that losing runs of
    one variant never makes another one's result look stronger.
    """
    if len(p_values) < 2:
        return list(p_values)
    adjusted = multipletests([1.0 if p is None else p for p in p_values], method="holm")[1]
    return [None if p is None else float(q) for p, q in zip(p_values, adjusted, strict=True)]

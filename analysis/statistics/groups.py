"""Whether the runs of one arm fall into two groups, or one run lies apart from the others.

The largest gap between sorted values splits them. It is one between groups when either holds:

    it is over 5 median gaps and over 3 median absolute deviations (unscaled): a few runs far off
    it is over c(n) standard deviations within the two parts: an even split, where the deviation is as wide as the gap

c(n) is the .5 % point for normal values (`LEVELS`, 400,000 samples of each size: `python -m benchmarks.verdict_rates
--levels`). Fewer than 5 values are never called so: one of 4 may just lie apart. Groups have at least two runs.

Values can be coarse, and a gap no wider than their resolution is none: two steps of a count (an accuracy over 500
problems moves in steps of .002), or the standard error of the evaluation. Within a step values spread evenly, with
deviation step/sqrt(12), which is the least deviation within the parts; the least median gap is the resolution.
"""

from collections.abc import Sequence

import numpy as np

from analysis.statistics.intervals import Array, is_constant

FEWEST = 5

LEVELS = {
    5: 13.35, 6: 9.31, 7: 7.23, 8: 5.97, 9: 5.06, 10: 4.46, 12: 3.65, 15: 2.92, 20: 2.30, 30: 1.78, 50: 1.44,
    100: 1.20, 200: 1.06,
}  # fmt: skip
"""The largest gap over the deviation within the parts of n normal values: exceeded, with two or more in each part, by
.5 %."""


def two_groups(values: Sequence[float] | Array, error: float = 0.0) -> bool:
    """Whether the values fall into two groups; `error` is the standard error of each, 0 when it is not known."""
    return smaller_part(values, error) > 1


def one_apart(values: Sequence[float] | Array, error: float = 0.0) -> bool:
    """Whether one value lies apart from all others: an outlier, to be noted and never dropped."""
    return smaller_part(values, error) == 1


def split_value(values: Sequence[float] | Array) -> float:
    """The middle of the largest gap between the sorted values."""
    sample = np.sort(np.asarray(values, dtype=float))
    place = int(np.diff(sample).argmax())
    return float(sample[place] + sample[place + 1]) / 2


def smaller_part(values: Sequence[float] | Array, error: float = 0.0) -> int:
    """The size of the smaller part when the largest gap is one between groups by the rule of this module, else 0.

    Measured on 20,000 samples of 10: two groups of at least two are seen in 3 % of normal and of Student t(4) samples,
    and in 60 % of samples of which a fifth lies 15 SD off. Were one value a group too, it would be 12 % of normal and
    27 % of t(4) samples.
    """
    sample = np.sort(np.asarray(values, dtype=float))
    n = sample.size
    if n < FEWEST or is_constant(sample, float(np.abs(sample).max())):
        return 0
    gaps = np.diff(sample)
    largest, below = float(gaps.max()), int(gaps.argmax()) + 1
    smaller = min(below, n - below)
    parts = np.concatenate([sample[:below] - sample[:below].mean(), sample[below:] - sample[below:].mean()])
    within, usual = float(np.sqrt(np.sum(parts**2) / (n - 2))), float(np.median(gaps))

    deviation = float(np.median(np.abs(sample - np.median(sample))))

    def splits(least_deviation: float, least_gap: float) -> bool:
        even = smaller > 1 and largest > level(n) * max(within, least_deviation)
        far_off = largest > 5 * max(usual, least_gap) and largest > 3 * deviation
        return largest > least_gap * (1 + 1e-9) and (even or far_off)

    if not splits(0.0, 0.0):  # most samples; the step takes longer to find
        return 0
    step = count_step(sample)
    return smaller if splits(max(step / np.sqrt(12), error), max(2 * step, error)) else 0


def level(n: int) -> float:
    """c(n), between the sizes of `LEVELS` by the logarithm of n, beyond the last as there."""
    return float(np.interp(np.log(n), np.log(list(LEVELS)), list(LEVELS.values())))


def count_step(values: Sequence[float] | Array) -> float:
    """The step of values that are counts divided by one number, 0 for values that look continuous.

    With three distinct values or more it is their least difference, if all others are multiples of it. What is written
    with at most four decimals moves by the last of them at least, which is all that two distinct values tell.
    """
    distinct = np.unique(np.asarray(values, dtype=float))
    gaps = np.diff(distinct)
    ratios = gaps / gaps.min() if gaps.size > 1 else np.array([])
    if ratios.size and bool(np.all(np.abs(ratios - np.round(ratios)) < 1e-6 * ratios)):
        return float(gaps.min())
    written = (d for d in range(5) if np.allclose(distinct, np.round(distinct, d), rtol=1e-12, atol=0))
    decimals = next(written, None)
    return 0.0 if decimals is None or not gaps.size else float(10.0**-decimals)

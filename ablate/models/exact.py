"""Exact arithmetic for numbers of the config: 0.29 of 100 is 29, though the float 0.29 lies a little below 29/100."""

import math
from fractions import Fraction


def fraction_of(value: float) -> Fraction:
    """What a float stands for: the fraction with a denominator up to a million that rounds to it, else its decimals.

    0.29 is 29/100, and 0.3333333333333333, which no decimals can write, 1/3. `value` is finite.
    """
    simple = Fraction(value).limit_denominator(10**6)
    return simple if float(simple) == value else Fraction(str(value))


def floor_share(share: float, whole: int) -> int:
    """⌊share · whole⌋, of the fraction that `share` stands for."""
    return math.floor(fraction_of(share) * whole)

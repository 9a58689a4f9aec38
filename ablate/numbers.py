"""How numbers are rounded for people: never to a value that means something else."""

import math
from collections.abc import Iterable


def rounded(value: float, places: int, *, sign: bool = False, apart: Iterable[float] = ()) -> str:
    """A number with fixed decimals, very large and small ones as 4.50e-10.

    Rounding never takes it to 0 or to a value of `apart` (a null value, a margin, a limit), nor past it: where it
    would, more digits are shown. Numbers in order stay in order, as long as they have `places` and `apart` in common.
    """
    if not math.isfinite(value):
        return f"{value:g}"
    marks = (0.0, *apart)
    texts = (_fixed(value, more, sign=sign) for more in range(places, max(places, 0) + 11))
    exact = f"{value:{'+' if sign else ''}}"
    return next((one for one in texts if all(_side(float(one), mark) == _side(value, mark) for mark in marks)), exact)


def score(value: float) -> str:
    """A loss or an accuracy as 0.3412; 0.0000 and 1.0000 only where it is."""
    return rounded(value, 4, apart=(1.0,))


def _fixed(value: float, places: int, *, sign: bool) -> str:
    power = math.floor(math.log10(abs(value))) if value else 0
    scientific = value and (power >= 9 or places > 9)
    form = f".{min(max(power + places, 0), 9)}e" if scientific else f".{min(max(places, 0), 9)}f"
    return f"{value or 0.0:{'+' if sign else ''}{form}}"  # 0.0 has no minus


def _side(value: float, mark: float) -> int:
    """-1 below the mark, 1 above it, 0 at it."""
    return (value > mark) - (value < mark)

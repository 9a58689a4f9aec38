"""How numbers and config values are written for people: digits, signs, p values, factor values.

Digits: two significant digits of the deviation or half-width decide the decimals of everything beside it. Unrounded
numbers are in the JSON and CSV outputs.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from ablate.jsonfiles import canonical_json

DASH = "–"
"""A factor that a variant does not have."""

NOT_AVAILABLE = "n/a"
"""A number that the data do not support."""


def decimals(scale: float | None, value: float | None = None) -> int:
    """Decimals that show two significant digits of `scale`, fewer than 0 when it is over 100.

    4 when there is no scale to go by, or it is but rounding of the `value` that it belongs to.
    """
    if scale is None or not math.isfinite(scale) or scale <= 1e-12 * abs(value or 0.0):
        return 4
    return 1 - math.floor(math.log10(float(f"{scale:.1e}")))


def number(value: float | None, places: int, *, sign: bool = False) -> str:
    """One number with fixed decimals and a true minus sign, very large and small ones as 4.50e-10; n/a for None."""
    if value is None:
        return NOT_AVAILABLE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    power = math.floor(math.log10(abs(value))) if value else 0
    scientific = value and (power >= 9 or places > 9)
    form = f".{min(max(power + places, 0), 9)}e" if scientific else f".{min(max(places, 0), 9)}f"
    text = f"{value:{'+' if sign else ''}{form}}"
    return text.replace("-", "−")


def interval(bounds: tuple[float, float] | None, places: int, *, sign: bool = False) -> str:
    """An interval in brackets; n/a for None."""
    if bounds is None:
        return NOT_AVAILABLE
    return f"[{number(bounds[0], places, sign=sign)}, {number(bounds[1], places, sign=sign)}]"


def p_value(p: float | None) -> str:
    """A p value as .012, or <.001; n/a for None."""
    if p is None:
        return NOT_AVAILABLE
    if p < 0.001:
        return "<.001"
    return "1" if p > 0.9995 else f"{p:.3f}".removeprefix("0")


def p_phrase(p: float) -> str:
    """A p value in a sentence: p = .012, or p < .001."""
    text = p_value(p)
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


def duration(seconds: float) -> str:
    """Seconds below six minutes, else hours: 28.4 s, 0.13 h, 1,250 h."""
    if seconds < 360:
        return f"{seconds:.3g} s"
    hours = seconds / 3600
    return f"{hours:.2g} h" if hours < 10 else f"{hours:,.0f} h"


def scientific(value: float) -> str:
    """A large number by its size: 1.58e11."""
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{digits}e{int(power)}" if value else "0"


def count(value: float) -> str:
    """A count that may hold halves: 7, 7.5."""
    return f"{value:g}"


def factor_value(value: Any) -> str:
    """A config value as people write it.

    Values are compared by canonical JSON, so 1 and 1.0 are one value and the text "1" is another; a text that reads as
    a number, a bool or null therefore keeps its quotes. Lists and dicts are shown as JSON.
    """
    if value is None:
        return "null"
    if not isinstance(value, str):
        return canonical_json(value)
    ambiguous = re.fullmatch(r"[-+.\d][\d.eE+-]*|true|false|null|", value)
    return json.dumps(value) if ambiguous else value


def seed_list(seeds: Iterable[int]) -> str:
    """Seeds in short: 0–4, 7, 9."""
    spans: list[list[int]] = []
    for seed in sorted(seeds):
        if spans and seed == spans[-1][1] + 1:
            spans[-1][1] = seed
        else:
            spans.append([seed, seed])
    return ", ".join(_span(low, high) for low, high in spans)


def _span(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low}–{high}" if high > low + 1 else f"{low}, {high}"

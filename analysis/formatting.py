"""How numbers and config values are written for people: digits, signs, p values, factor values.

Digits: two significant digits of the deviation or half-width decide the decimals of everything beside it. Rounding
never takes a number to a value that means something else (0, the null value of a ratio, alpha, a margin, a limit).
Unrounded numbers are in the JSON and CSV outputs.
"""

import json
import math
import re
from collections.abc import Collection, Iterable
from typing import Any

from ablate.jsonfiles import canonical_json
from ablate.numbers import rounded

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


def number(value: float | None, places: int, *, sign: bool = False, apart: Iterable[float] = ()) -> str:
    """One number as `rounded`, with a true minus sign; n/a for None."""
    if value is None:
        return NOT_AVAILABLE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return rounded(value, places, sign=sign, apart=apart).replace("-", "−")


def interval(
    bounds: tuple[float, float] | None, places: int, *, sign: bool = False, apart: Collection[float] = ()
) -> str:
    """An interval in brackets, each end on its side of 0 and of the values of `apart`; n/a for None."""
    if bounds is None:
        return NOT_AVAILABLE
    return f"[{', '.join(number(end, places, sign=sign, apart=apart) for end in bounds)}]"


def estimate(
    value: float, bounds: tuple[float, float] | None, places: int, *, sign: bool = False, apart: Collection[float] = ()
) -> tuple[str, str]:
    """A number and its interval ("" for None); what is but rounding of an interval around 0 is 0."""
    if bounds is None:
        return number(value, places, sign=sign, apart=apart), ""
    low, high = bounds
    if low < 0 < high and abs(value) <= 1e-12 * (high - low):
        value = 0.0
    return number(value, places, sign=sign, apart=apart), interval(bounds, places, sign=sign, apart=apart)


def deviation(sd: float, mean: float | None, places: int | None = None) -> str:
    """A spread around a mean; one that is but rounding of the mean is 0."""
    shown = 0.0 if sd <= 1e-12 * abs(mean or 0.0) else sd
    return number(shown, decimals(sd, mean) if places is None else places)


def percent(share: float, places: int = 0) -> str:
    """A share of 1 in per cent, without the sign: 0 and 100 only for exactly none and all."""
    return number(100 * share if abs(share - 1) > 1e-12 else 100.0, places, apart=(100.0,))


def p_value(p: float | None, alpha: float = 0.05) -> str:
    """A p value as .012, <.001 or >.999; n/a for None. Below alpha only where it is: .04996, .0504, <.05."""
    if p is None:
        return NOT_AVAILABLE
    least = min(0.001, alpha)
    if p < least:
        return f"<{_bare(f'{least:g}')}"
    if 0.9995 < p < 1:
        return ">.999"
    text = number(p, 3, apart=(alpha, 1.0))
    if len(text) > len("0.123456"):
        text = f"{'<' if p < alpha else '>'}{alpha:g}"
    return "1" if p == 1 else _bare(text)


def p_phrase(p: float, alpha: float = 0.05) -> str:
    """A p value in a sentence: p = .012, or p < .001."""
    text = p_value(p, alpha)
    return f"p {text[0]} {text[1:]}" if text[0] in "<>" else f"p = {text}"


def _bare(text: str) -> str:
    """A number below 1 without the 0 before its point."""
    return re.sub(r"(?<!\d)0(?=\.)", "", text)


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

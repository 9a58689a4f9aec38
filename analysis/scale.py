"""The scale on which a metric is compared: as it is, or its logarithm; how to get there and back, and its words.

On the log scale a mean is a geometric mean, a difference is a ratio once it is taken back, and a margin of 2 % is the
difference log 1.02. Statistics are computed on the scale; people are shown what `back` gives.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from analysis import formatting as fmt
from analysis.statistics.intervals import Interval


def _same(value: float) -> float:
    return value


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf  # e^710 overflows


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


@dataclass(frozen=True)
class Scale:
    """One scale. `prefix` goes before the metric's name; the others are words for people.

    `signed` says that a difference taken back is shown with its sign (a ratio has none).
    """

    name: str
    forward: Callable[[float], float]
    back: Callable[[float], float]
    prefix: str
    mean_title: str
    difference_title: str
    difference_words: str
    signed: bool

    @property
    def is_log(self) -> bool:
        """Whether differences are ratios."""
        return not self.signed

    def back_interval(self, bounds: Interval | None) -> Interval | None:
        """An interval in the unit of the metric (or of ratios)."""
        return None if bounds is None else Interval(self.back(bounds.low), self.back(bounds.high))

    def size(self, value: float, digits: int) -> str:
        """A margin or a detectable effect in words: 0.01, or on the log scale a factor of 1.02.

        A factor has as many significant digits of what it is above 1, so that it is 1 for 0 only.
        """
        if not self.is_log:
            return f"{value:.{digits}g}"
        beyond = math.expm1(min(value, 700.0))
        if 0 < abs(beyond) < 1e-9:
            return f"a factor of 1 + {beyond:.{digits}g}"
        more = -math.floor(math.log10(abs(beyond))) if 0 < abs(beyond) < 1 else 1
        return f"a factor of {self.back(value):.{digits + max(more, 1)}g}"

    def contrast(
        self, mean: float, bounds: Interval | None, spread: float | None, margin: float | None = None
    ) -> tuple[str, str]:
        """A difference and its interval ("" without one) as text; digits by the half-width, or by the spread.

        Both are shown on their side of no difference and of the margin.
        """
        middle, shown = self.back(mean), self.back_interval(bounds)
        scale = (shown.high - shown.low) / 2 if shown else spread
        ends = (margin, -margin) if margin is not None else ()
        numbers = (mean, *(bounds or ()))
        apart = [self.back(end) for end in ends if not any(math.isclose(end, one, rel_tol=1e-9) for one in numbers)]
        places = fmt.decimals(scale, middle)
        return fmt.estimate(middle, shown, places, sign=self.signed, apart=(self.back(0.0), *apart))


PLAIN = Scale("none", _same, _same, "", "mean ± SD", "Δ vs baseline [95 % CI]", "mean difference", signed=True)
LOG = Scale(
    "log",
    _log,
    _exp,
    "log ",
    "geom. mean (log SD)",
    "ratio to baseline [95 % CI]",
    "ratio of geometric means",
    signed=False,
)

SCALES = {scale.name: scale for scale in (PLAIN, LOG)}
"""The scales by the name of their transform."""

"""Three tests of a mean by its t statistic: one look, planned looks, any looks. The same questions put to each.

    p(t)              two-sided p of a t statistic
    critical(alpha)   the t at which p is alpha: the half-width of the interval at 1 - alpha, in standard errors

What follows for a mean m with standard error e is the same for all: interval m ± critical(alpha) e, and the p of
equivalence within ± margin (two one-sided tests, Schuirmann 1987), p((margin - |m|) / e) / 2 for |m| < margin.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from analysis.statistics.intervals import Interval
from analysis.statistics.sequential import log_e_value, multiplier, nominal_level, overall_p


class TTest(Protocol):
    """A test of a mean by its t statistic; `words` name it in a caption."""

    @property
    def words(self) -> str:
        """How captions name the test."""
        ...

    def p(self, t: float) -> float:
        """Two-sided p of t."""
        ...

    def critical(self, alpha: float) -> float:
        """The t beyond which the two-sided p is below alpha; infinite when nothing could be."""
        ...


@dataclass(frozen=True)
class OneLook:
    """Student's t, at the number of runs that was planned. Welch's has a fraction of degrees of freedom."""

    freedom: float
    words = "Student t"

    def p(self, t: float) -> float:
        """Two-sided p of t."""
        return float(2 * special.stdtr(self.freedom, -abs(t)))

    def critical(self, alpha: float) -> float:
        """The quantile of Student's t."""
        return float(-special.stdtrit(self.freedom, alpha / 2))


@dataclass(frozen=True)
class PlannedLooks:
    """Group-sequential t at a constant nominal level over the looks that the sweep declared; `n` pairs by now."""

    n: int
    looks: tuple[int, ...]
    words = "group-sequential t (a constant level at the planned looks)"

    def p(self, t: float) -> float:
        """The probability of as small a p at any of the planned looks."""
        return overall_p(OneLook(self.n - 1).p(t), self.looks)

    def critical(self, alpha: float) -> float:
        """Student's quantile at the nominal level: a repeated confidence interval (Jennison and Turnbull 1989)."""
        return OneLook(self.n - 1).critical(nominal_level(alpha, self.looks))


@dataclass(frozen=True)
class AnyLooks:
    """The anytime-valid t of `n` pairs (`analysis.statistics.sequential`)."""

    n: int
    words = "anytime-valid paired t (tau = 1)"

    def p(self, t: float) -> float:
        """1 over the e-value, at most 1."""
        return float(np.exp(-max(0.0, float(log_e_value(t, self.n)))))

    def critical(self, alpha: float) -> float:
        """The half-width in standard errors; infinite while n is too small."""
        return multiplier(self.n, alpha)


def interval(test: TTest, mean: float, error: float, alpha: float) -> Interval:
    """The interval of a mean with its standard error at 1 - alpha."""
    half = test.critical(alpha) * error
    return Interval(mean - half, mean + half)


def equivalence_p(test: TTest, mean: float, error: float, margin: float) -> float:
    """p of the two one-sided tests that the mean lies within ± margin; at least .5 where it does not."""
    distance = (margin - abs(mean)) / error
    p = test.p(distance) / 2
    return p if distance > 0 else 1 - p

"""Tests of a mean that stay valid when one looks at the data several times, planned or not.

Unplanned looks: a test by betting on the standardised effect. With n pairs, t the one-sample statistic of D, tau the
prior deviation of the standardised effect and the right-Haar prior on the scale, let A = 1 + n tau² and nu = n - 1:

    log E = -½ log A + (nu + 1)/2 · [log(1 + t²/nu) - log(1 + t²/(nu A))]
    reject when E >= 1/alpha;  p = min(1, 1 / running maximum of E)
    half-width = s/sqrt(n) · sqrt(nu (r - 1) / (1 - r/A)),  r = (A/alpha²)^(1/(nu + 1)),  infinite when r >= A

The interval holds at all n at once (type I at most alpha over any looks), at the price of being wider: 8.45 standard
errors at n = 5 against 2.78, 3.87 at 10 against 2.26.

Planned looks (after 5, 10, ..., 40 pairs): Student's t at a constant nominal level (Pocock 1977), the one at which all
looks together reject a true hypothesis with probability alpha. It is read from simulated t statistics of normal
differences, exact but for the number of simulations: .011 for these eight looks at alpha .05, .0033 at .05/3.
"""

import functools
from collections.abc import Sequence

import numpy as np
from scipy import special, stats

from analysis.statistics.intervals import MINIMUM, Array, Interval

TAU = 1.0
"""Prior standard deviation of the standardised effect mean D / s_D."""


def log_e_value(t: float | Array, n: int | Array, tau: float = TAU) -> Array:
    """Logarithm of the e-value of the one-sample t statistic of n pairs, element by element."""
    growth, nu = 1 + n * tau**2, n - 1
    ratio = np.log1p(np.square(t) / nu) - np.log1p(np.square(t) / (nu * growth))
    return np.asarray(-0.5 * np.log(growth) + (nu + 1) / 2 * ratio)


def multiplier(n: int, alpha: float = 0.05, tau: float = TAU) -> float:
    """Half-width of the anytime-valid interval in standard errors s/sqrt(n); infinite while n is too small."""
    growth, nu = 1 + n * tau**2, n - 1
    r = (growth / alpha**2) ** (1 / (nu + 1))
    return float(np.sqrt(nu * (r - 1) / (1 - r / growth))) if r < growth else float("inf")


def anytime_interval(differences: Array, alpha: float = 0.05) -> Interval:
    """The anytime-valid interval of mean D from all pairs seen so far."""
    n = differences.size
    half = multiplier(n, alpha) * float(differences.std(ddof=1)) / np.sqrt(n)
    return Interval(float(differences.mean() - half), float(differences.mean() + half))


def anytime_p(differences: Array, looks: Sequence[int]) -> float:
    """1 over the largest e-value at any look (the first n pairs) or now, at most 1."""
    sizes = sorted({n for n in [*looks, differences.size] if MINIMUM <= n <= differences.size})
    log_e = [0.0]
    for n in sizes:
        seen = differences[:n]
        spread = float(seen.std(ddof=1))
        if spread > 0:
            log_e.append(float(log_e_value(float(seen.mean()) * np.sqrt(n) / spread, n)))
    return float(np.exp(-max(log_e)))


DRAWS = 2_000_000
"""Simulated t statistics from which the levels of planned looks are read, over all looks together."""

FEWEST_IN_TAIL = 200
"""Simulated studies beyond a p for it to be read from them; further out Bonferroni's bound is nearly exact."""


@functools.lru_cache(maxsize=16)
def _smallest_p(looks: tuple[int, ...]) -> Array:
    """The smallest p of the t-test over these looks, in many simulated studies without an effect, in order.

    p above .2 are 1: nobody tests at such a level, and they take the time.
    """
    studies = max(100_000, DRAWS // len(looks))
    generator = np.random.default_rng(20261207)
    smallest, total, squares, before = np.ones(studies), np.zeros(studies), np.zeros(studies), 0
    for n in looks:
        block = n - before
        added = generator.normal(scale=np.sqrt(block), size=studies)
        within = generator.chisquare(block - 1, size=studies) if block > 1 else 0.0
        total, squares, before = total + added, squares + added**2 / block + within, n
        t = np.abs(total) / np.sqrt(n * (squares - total**2 / n) / (n - 1))
        small = t > stats.t.isf(0.1, n - 1)
        smallest[small] = np.minimum(smallest[small], 2 * special.stdtr(n - 1, -t[small]))
    return np.sort(smallest)


def overall_p(p: float, looks: Sequence[int]) -> float:
    """The probability, without an effect, that the t-test at one of these numbers of pairs has a p as small as this.

    Looks at fewer than 3 pairs are no tests and do not count.
    """
    tested = tuple(n for n in looks if n >= MINIMUM)
    if len(tested) < 2:
        return p
    simulated = _smallest_p(tested)
    beyond = int(np.searchsorted(simulated, p, side="right"))
    bound = min(1.0, len(tested) * p)  # Bonferroni's
    return min(bound, max(beyond, FEWEST_IN_TAIL) / simulated.size)


def nominal_level(alpha: float, looks: Sequence[int]) -> float:
    """The level of the t-test at each of these looks at which all together err at alpha: `overall_p` the other way."""
    tested = tuple(n for n in looks if n >= MINIMUM)
    if len(tested) < 2:
        return alpha
    simulated = _smallest_p(tested)
    place = int(alpha * simulated.size)
    return float(simulated[place - 1]) if place > FEWEST_IN_TAIL else alpha / len(tested)

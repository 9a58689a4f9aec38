"""The comparison of two arms, variant minus baseline.

Paired (the same seed gives both arms the same data and the same start): with D_s = y(variant, s) - y(baseline, s),

    mean D ± t_{.975, n-1} · s_D / sqrt(n)          interval and p of `scipy.stats.ttest_rel`
    d_z = mean D / s_D · (1 - 3 / (4 (n - 1) - 1))  Hedges' correction for small n
    gain = (s_A² + s_B²) / s_D²                     how many times more seeds an unpaired design would need

Unpaired (no common seeds): Welch's t with Satterthwaite's degrees of freedom (1947), Hedges' g with the pooled
deviation, and P(variant better), ties counted half. Which test turns the mean and its standard error into p and
intervals is in `t_tests`.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from analysis.statistics.intervals import MINIMUM, Array, Interval, is_constant, wilson
from analysis.statistics.sensitivity import Sensitivity, iqm_difference, sensitivity, why_fragile
from analysis.statistics.t_tests import OneLook, TTest, equivalence_p, interval


@dataclass(frozen=True)
class Difference:
    """Variant minus baseline. `n` counts pairs, or the runs of the smaller arm when unpaired.

    `error` is the standard error of the mean and `test` turns both into p and intervals: `interval` is the 95 %,
    `interval90` the 90 % interval. All are None below 3 pairs and when the difference is constant over seeds (its
    spread is then no evidence of anything). `wins` counts ties half. `effect` is d_z or g. `superiority` is P(variant
    better). `sensitivity` holds what other tests say, `fragile` why the result hangs on one seed or on the choice of
    test.
    """

    paired: bool
    n: int
    mean: float | None
    sd: float | None
    interval: Interval | None = None
    interval90: Interval | None = None
    p: float | None = None
    wins: float | None = None
    wins_interval: Interval | None = None
    effect: float | None = None
    rho: float | None = None
    gain: float | None = None
    sensitivity: Sensitivity = field(default_factory=Sensitivity)
    superiority: float | None = None
    constant: bool = False
    fragile: str | None = None
    error: float | None = None
    test: TTest | None = None

    def interval_at(self, alpha: float) -> Interval | None:
        """The interval at 1 - alpha."""
        if self.test is None or self.mean is None or self.error is None:
            return None
        return interval(self.test, self.mean, self.error, alpha)

    def equivalence_p(self, margin: float) -> float | None:
        """p of the two one-sided tests that the mean difference lies within ± margin."""
        if self.test is None or self.mean is None or self.error is None:
            return None
        return equivalence_p(self.test, self.mean, self.error, margin)

    def by(self, test: TTest, p: float) -> "Difference":
        """The same difference by a test that allows for several looks, with its p over them.

        The checks that hold for one look only are dropped; what has no p stays as it is.
        """
        if self.p is None:
            return self
        tested = replace(self, test=test, p=p, fragile=None)
        checks = Sensitivity(iqm_difference=self.sensitivity.iqm_difference)
        return replace(
            tested, interval=tested.interval_at(0.05), interval90=tested.interval_at(0.10), sensitivity=checks
        )


def superiority(better: Array, worse: Array, *, lower_is_better: bool) -> float:
    """P(a run of the first arm is better than one of the second), ties counted half: Mann-Whitney U / (n m)."""
    delta = better[:, None] - worse[None, :]
    wins = delta < 0 if lower_is_better else delta > 0
    return float(np.mean(wins + 0.5 * (delta == 0)))


def _correlation(first: Array, second: Array) -> float | None:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _wins(differences: Array, lower_is_better: bool) -> float:
    oriented = differences if lower_is_better else -differences
    return float(np.sum(oriented < 0) + 0.5 * np.sum(oriented == 0))


def paired_difference(variant: Array, baseline: Array, *, lower_is_better: bool = True) -> Difference:
    """Compare two arms of equal length whose i-th entries share a seed. Raises ValueError when the lengths differ."""
    if variant.shape != baseline.shape:
        raise ValueError(f"paired arms need equal lengths, got {variant.size} and {baseline.size}")
    d = variant - baseline
    n = d.size
    if n == 0:
        return Difference(paired=True, n=0, mean=None, sd=None)
    wins = _wins(d, lower_is_better)
    sd = float(d.std(ddof=1)) if n > 1 else None
    constant = is_constant(d, float(np.max(np.abs([variant, baseline]))))
    base = Difference(True, n, float(d.mean()), sd, wins=wins, wins_interval=wilson(wins, n), constant=constant)
    return base if n < MINIMUM or constant else _tested(base, d, variant, baseline)


def _tested(base: Difference, d: Array, variant: Array, baseline: Array) -> Difference:
    mean, sd, test = float(d.mean()), float(d.std(ddof=1)), OneLook(base.n - 1)
    error = sd / float(np.sqrt(base.n))
    p = test.p(mean / error)
    checks = sensitivity(variant, baseline, p)
    return Difference(
        paired=True,
        n=base.n,
        mean=mean,
        sd=sd,
        interval=interval(test, mean, error, 0.05),
        interval90=interval(test, mean, error, 0.10),
        p=p,
        wins=base.wins,
        wins_interval=base.wins_interval,
        effect=float(mean / sd * (1 - 3 / (4 * (base.n - 1) - 1))),
        rho=_correlation(variant, baseline),
        gain=float((variant.var(ddof=1) + baseline.var(ddof=1)) / sd**2),
        sensitivity=checks,
        fragile=why_fragile(d, checks),
        error=error,
        test=test,
    )


def unpaired_difference(variant: Array, baseline: Array, *, lower_is_better: bool = True) -> Difference:
    """Compare two arms without common seeds: Welch interval and p, Hedges' g, P(variant better).

    `sd` is the pooled deviation. Interval and p are None when an arm has fewer than 3 runs or both are constant.
    """
    n, total = min(variant.size, baseline.size), variant.size + baseline.size
    if n == 0:
        return Difference(paired=False, n=0, mean=None, sd=None)
    mean = float(variant.mean() - baseline.mean())
    better = superiority(variant, baseline, lower_is_better=lower_is_better)
    scale = float(max(np.abs(variant).max(), np.abs(baseline).max()))
    if n < MINIMUM or (is_constant(variant, scale) and is_constant(baseline, scale)):
        return Difference(False, n, mean, None, superiority=better, constant=n >= MINIMUM)
    own, other = variant.var(ddof=1) / variant.size, baseline.var(ddof=1) / baseline.size
    freedom = (own + other) ** 2 / (own**2 / (variant.size - 1) + other**2 / (baseline.size - 1))
    error, test = float(np.sqrt(own + other)), OneLook(float(freedom))
    p = test.p(mean / error)
    squares = (variant.size - 1) * variant.var(ddof=1) + (baseline.size - 1) * baseline.var(ddof=1)
    pooled = float(np.sqrt(squares / (total - 2)))
    return Difference(
        paired=False,
        n=n,
        mean=mean,
        sd=pooled,
        interval=interval(test, mean, error, 0.05),
        interval90=interval(test, mean, error, 0.10),
        p=p,
        effect=mean / pooled * (1 - 3 / (4 * (total - 2) - 1)),
        superiority=better,
        sensitivity=Sensitivity(welch=p, iqm_difference=iqm_difference(variant, baseline)),
        error=error,
        test=test,
    )

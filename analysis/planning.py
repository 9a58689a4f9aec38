"""What a study would find and cost, before a run of it is trained: power, seeds needed, detectable difference, hours.

    power       of the two-sided t-test for a true difference as large as the margin, at alpha / m: m = arms - 1
                comparisons with the baseline, the first step of Holm's correction
    SD          paired: of the difference between two runs of one seed, SD · sqrt(2 (1 - correlation)) where both arms
                have one SD; unpaired: of the runs of an arm

From an earlier study the SD is pooled over its comparisons, root mean square, and taken at its 80 % upper bound
(`analysis.statistics.power`), because a few seeds may well have shown too little of it.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.results import Comparison
from analysis.scale import PLAIN, Scale
from analysis.statistics.intervals import MINIMUM
from analysis.statistics.power import MOST_SEEDS, minimum_detectable_effect, power, seeds_needed, upper_sd
from analysis.study import StudyError

USUAL = (3, 5, 8, 10, 15, 20, 30, 50)
"""Numbers of seeds that the table shows beside the planned and the needed one."""


@dataclass(frozen=True)
class Spread:
    """A standard deviation and where it comes from, in words; `paired` says of what it is (see the module)."""

    sd: float
    paired: bool
    source: str


@dataclass(frozen=True)
class Step:
    """What so many seeds give. `detectable` and the cost, in seconds, are None where they cannot be known."""

    seeds: int
    power: float
    detectable: float | None
    runs: int
    seconds: float | None


@dataclass(frozen=True)
class Plan:
    """A study to be: `seeds` per arm, `arms` with the baseline among them, `seconds` per run if they are known."""

    seeds: int
    arms: int
    margin: float
    spread: Spread
    alpha: float = 0.05
    target: float = 0.8
    seconds: float | None = None
    cores: int = 1
    scale: Scale = PLAIN

    def words(self, effect: float) -> str:
        """A difference in words: a difference of 0.01, or on the log scale a factor of 1.02."""
        return f"{'' if self.scale.is_log else 'a difference of '}{self.scale.size(effect, 3)}"

    @property
    def comparisons(self) -> int:
        """The comparisons with the baseline."""
        return self.arms - 1

    @property
    def level(self) -> float:
        """The alpha of each comparison."""
        return self.alpha / self.comparisons

    @property
    def needed(self) -> int | None:
        """The smallest number of seeds with the target power; None beyond 200."""
        return seeds_needed(
            self.spread.sd, self.margin, paired=self.spread.paired, target=self.target, alpha=self.level
        )

    def step(self, seeds: int) -> Step:
        """What so many seeds give."""
        sd, paired, runs = self.spread.sd, self.spread.paired, seeds * self.arms
        return Step(
            seeds,
            power(self.margin, sd, seeds, paired=paired, alpha=self.level),
            minimum_detectable_effect(sd, seeds, paired=paired, target=self.target, alpha=self.level),
            runs,
            None if self.seconds is None else runs * self.seconds,
        )

    def curve(self) -> list[Step]:
        """From the fewest seeds that give a verdict to well beyond the planned and the needed ones.

        Every number up to 200; beyond, where the curve is flat, a hundred up to the planned one.
        """
        last = max(20, self.seeds, min(MOST_SEEDS, math.ceil(1.2 * (self.needed or MOST_SEEDS))))
        shown = [*range(MINIMUM, min(last, MOST_SEEDS) + 1)]
        if last > MOST_SEEDS:
            shown += map(int, np.unique(np.geomspace(MOST_SEEDS, last, 100).round())[1:])
        return [self.step(n) for n in shown]

    def table(self) -> list[Step]:
        """The planned number of seeds, the needed one, and some usual ones around them."""
        chosen = {self.seeds, *([self.needed] if self.needed else [])}
        usual = [n for n in USUAL if n <= max(20, *chosen)]
        return [self.step(n) for n in sorted({*usual, *chosen})]


def checked(plan: Plan) -> Plan:
    """The plan. Raises StudyError, in one line, for a value that no study can have."""
    rules: list[tuple[str, Any, bool, str]] = [
        ("seeds", plan.seeds, MINIMUM <= plan.seeds <= 10_000, f"a verdict takes at least {MINIMUM}, at most 10000"),
        ("arms", plan.arms, 2 <= plan.arms <= 1000, "at least 2, the baseline among them, at most 1000"),
        ("margin", plan.margin, _positive(plan.margin), "must be a number above 0"),
        ("alpha", plan.alpha, 0 < plan.alpha < 1, "must lie between 0 and 1, such as 0.05"),
        ("power", plan.target, plan.alpha < plan.target < 1, "must lie between alpha and 1, such as 0.8"),
        ("seconds", plan.seconds, plan.seconds is None or _positive(plan.seconds), "must be a number above 0"),
        ("cores", plan.cores, plan.cores >= 1, "must be at least 1"),
    ]
    for name, value, holds, rule in rules:
        if not holds:
            raise StudyError(f"--{name} {value:g}: {rule}")
    return plan


def _positive(value: float) -> bool:
    return 0 < value < math.inf


def spread_of_arms(sd: float, correlation: float, *, paired: bool = True) -> Spread:
    """The spread of two arms of one SD. Raises StudyError for an SD or a correlation that none can have."""
    if not _positive(sd):
        raise StudyError(f"--sd {sd:g}: must be a number above 0")
    if not -1 < correlation < 1:
        raise StudyError(f"--correlation {correlation:g}: must lie between -1 and 1")
    if not paired:
        return Spread(sd, False, f"SD {sd:.3g} of an arm's runs, as given")
    found = sd * math.sqrt(2 * (1 - correlation))
    of_arms = f"SD {sd:.3g} of an arm's runs and correlation {correlation:g} of the arms, as given"
    return Spread(found, True, f"SD {found:.3g} of the paired difference, from {of_arms}")


def spread_of_study(comparison: Comparison) -> Spread:
    """The pooled spread of a study's comparisons. Raises StudyError when none of them has one."""
    differences = [against.difference for _, against in comparison.others]
    paired = all(d.paired for d in differences)
    known = [(d.sd, d.n) for d in differences if d.paired == paired and d.sd and d.n >= MINIMUM and not d.constant]
    if not known:
        raise StudyError(
            f"study {comparison.study.name} has no two variants with {MINIMUM} finished seeds that differ; give --sd"
        )
    weights = sum(n - 1 for _, n in known)
    pooled = math.sqrt(sum((n - 1) * sd**2 for sd, n in known) / weights)
    fewest = min(n for _, n in known)
    upper = upper_sd(pooled, fewest if paired else 2 * fewest - 1)
    of = "the paired differences" if paired else "an arm's runs"
    count = f"{len(known)} comparisons" if len(known) > 1 else "the comparison"
    source = f"SD {pooled:.3g} of {of} in {count} of {comparison.study.name}, at its 80 % upper bound {upper:.3g}"
    return Spread(upper, paired, source)


def seconds_of_study(comparison: Comparison) -> float | None:
    """The mean time of the study's finished runs; None when none was recorded."""
    known = [one.seconds for one in comparison.study.records if one.status.is_result and one.seconds]
    return sum(known) / len(known) if known else None

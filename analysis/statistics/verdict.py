"""The six verdicts, and the rule that gives each. Sentences with numbers in them are written in `analysis.wording`.

Written for D = variant minus baseline with interval [L, U], in the orientation where lower is better:

    insufficient   fewer than 3 pairs (3 runs per arm when unpaired), unless one arm alone lost all its seeds
    unstable       one arm did, success rates differ, failures turn the sign of the comparison, some runs of an arm
                   solve the task and some do not, or an arm falls into two groups
    better         Holm p < alpha and U < 0      (worse is the mirror)
    equivalent     a margin is declared and the 90 % interval lies inside ± margin
    inconclusive   all else
"""

from dataclasses import dataclass
from enum import StrEnum

from scipy import stats

from analysis.statistics.intervals import MINIMUM, Interval
from analysis.statistics.paired import Difference


class Verdict(StrEnum):
    """The answer about one variant."""

    better = "better"
    worse = "worse"
    equivalent = "equivalent"
    inconclusive = "inconclusive"
    unstable = "unstable"
    insufficient = "insufficient"


def _rate(ok: int, failed: int) -> float:
    return ok / (ok + failed) if failed else 1.0


@dataclass(frozen=True)
class Outcomes:
    """How the runs of two arms ended.

    A run succeeds when it finished with a value (and reached the threshold, where one counts) and fails when it
    crashed, diverged or fell short. `only_variant` and `only_baseline` count the common seeds on which that arm alone
    succeeded.
    """

    variant_ok: int
    variant_failed: int
    baseline_ok: int
    baseline_failed: int
    only_variant: int = 0
    only_baseline: int = 0

    @property
    def variant_rate(self) -> float:
        """Share of the variant's ended runs that succeeded; 1 when none has ended."""
        return _rate(self.variant_ok, self.variant_failed)

    @property
    def baseline_rate(self) -> float:
        """Share of the baseline's ended runs that succeeded; 1 when none has ended."""
        return _rate(self.baseline_ok, self.baseline_failed)

    @property
    def rates_differ(self) -> bool:
        """Whether the shares differ."""
        return self.variant_rate != self.baseline_rate

    @property
    def any_failed(self) -> bool:
        """Whether any run of either arm failed."""
        return self.variant_failed + self.baseline_failed > 0

    def p(self, *, paired: bool) -> float:
        """Exact p of equal success rates: McNemar on common seeds, Boschloo on separate ones."""
        if paired:
            discordant = self.only_variant + self.only_baseline
            return float(stats.binomtest(self.only_variant, discordant).pvalue) if discordant else 1.0
        columns = [[self.variant_ok, self.baseline_ok], [self.variant_failed, self.baseline_failed]]
        return float(stats.boschloo_exact(columns).pvalue) if self.any_failed else 1.0


@dataclass(frozen=True)
class Evidence:
    """All that a verdict rests on. `margin` is positive, in the unit of the metric, or None when none was declared.

    `solved` counts the runs that reached the threshold, None when none was declared. `two_groups` names the arms whose
    runs fall into two groups. `looked_before` says that the data were looked at several times; for unpaired arms there
    is no valid interval then.
    """

    difference: Difference
    p_holm: float | None
    outcomes: Outcomes
    lower_is_better: bool = True
    margin: float | None = None
    solved: Outcomes | None = None
    two_groups: tuple[str, ...] = ()
    looked_before: bool = False
    alpha: float = 0.05

    @property
    def oriented(self) -> Interval | None:
        """The 95 % interval of D with the sign turned so that negative is better."""
        bounds = self.difference.interval
        if bounds is None or self.lower_is_better:
            return bounds
        return Interval(-bounds.high, -bounds.low)


@dataclass(frozen=True)
class Judgement:
    """A verdict, and how it is qualified ("" when it is not)."""

    verdict: Verdict
    qualifier: str = ""


def judge(evidence: Evidence) -> Judgement:
    """Give the verdict; the rules are tried in the order of the module's docstring."""
    lost = _all_failed(evidence.outcomes)
    if lost:
        return Judgement(Verdict.unstable, lost)
    if evidence.difference.n < MINIMUM:
        return Judgement(Verdict.insufficient, "fewer than 3 pairs of finished runs")
    reason = _unstable(evidence)
    if reason:
        return Judgement(Verdict.unstable, reason)
    return _judge_mean(evidence)


def _all_failed(o: Outcomes) -> str:
    """Which arm lost all its seeds, 3 or more, while the other one shows that the task can be run; else empty."""
    if o.variant_ok == 0 and o.variant_failed >= MINIMUM and o.baseline_ok >= MINIMUM:
        return f"all {o.variant_failed} seeds failed"
    if o.baseline_ok == 0 and o.baseline_failed >= MINIMUM and o.variant_ok >= MINIMUM:
        return f"all {o.baseline_failed} seeds of the baseline failed"
    return ""


def _unstable(evidence: Evidence) -> str:
    outcomes, solved = evidence.outcomes, evidence.solved
    if outcomes.rates_differ or (solved is not None and solved.rates_differ):
        return "success rates differ"
    if outcomes.any_failed and _signs_disagree(evidence):
        return "counting failed seeds as the worst turns the sign"
    if solved is not None and 0 < solved.variant_rate < 1:
        return "some seeds solve the task and others do not"
    return f"two groups of runs in {' and '.join(evidence.two_groups)}" if evidence.two_groups else ""


def _signs_disagree(evidence: Evidence) -> bool:
    """Whether wins less losses, failed seeds ranked worst, points the other way than mean D."""
    difference, outcomes = evidence.difference, evidence.outcomes
    if difference.mean is None or difference.wins is None:
        return False
    lead = 2 * difference.wins - difference.n + outcomes.only_variant - outcomes.only_baseline
    return lead * (difference.mean if evidence.lower_is_better else -difference.mean) > 0


def _judge_mean(evidence: Evidence) -> Judgement:
    bounds, p = evidence.oriented, evidence.p_holm
    if evidence.difference.constant or bounds is None or p is None:
        return Judgement(Verdict.inconclusive, "the difference is identical across seeds")
    if evidence.looked_before and not evidence.difference.paired:
        return Judgement(
            Verdict.inconclusive, "looked at early or several times, and unpaired arms have no interval for that"
        )
    if p < evidence.alpha and bounds.high < 0:
        return Judgement(Verdict.better, _size(-bounds.high, -bounds.low, evidence.margin))
    if p < evidence.alpha and bounds.low > 0:
        return Judgement(Verdict.worse, _size(bounds.low, bounds.high, evidence.margin))
    narrow = evidence.difference.interval90
    if evidence.margin is not None and narrow is not None and narrow.inside(evidence.margin):
        return Judgement(Verdict.equivalent, "within the margin of interest")
    return Judgement(Verdict.inconclusive)


def _size(least: float, most: float, margin: float | None) -> str:
    """Qualify an effect whose size lies between `least` and `most`, both positive."""
    if margin is None:
        return ""
    if least > margin:
        return "by a meaningful margin"
    return "but smaller than the margin of interest" if most < margin else ""

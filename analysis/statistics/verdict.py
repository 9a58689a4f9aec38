"""The six verdicts, and the rule that gives each. Sentences with numbers in them are written in `analysis.wording`.

Written for D = variant minus baseline with interval [L, U], in the orientation where lower is better:

    insufficient   fewer than 3 pairs, and fewer than 3 runs of an arm, unless one arm alone lost all its seeds
    unstable       one arm did, or lost over a fifth of its planned seeds; the exact test of the success rates is
                   significant; the arm that is better failed more; or an arm falls into two groups of seeds, and the
                   mean differences of the two have opposite signs
    better         Holm p < alpha and U < 0      (worse is the mirror)
    equivalent     a margin is declared and both one-sided tests reject a difference beyond it, Holm-corrected
    inconclusive   all else

A success is a run that finished with a value, or, where a threshold is declared, also one that reached it. Seeds that
failed at a rate that the exact test cannot tell from the other arm's leave the verdict on the mean as it is.
"""

from dataclasses import dataclass
from enum import StrEnum

from scipy import stats

from analysis.statistics.intervals import MINIMUM, Interval
from analysis.statistics.paired import Difference

MOST_LOST = 0.2
"""Share of an arm's planned seeds that may fail before the rest of them says too little of the arm."""


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
    succeeded; `variant_pending` and `baseline_pending` the planned seeds that have not ended.
    """

    variant_ok: int
    variant_failed: int
    baseline_ok: int
    baseline_failed: int
    only_variant: int = 0
    only_baseline: int = 0
    variant_pending: int = 0
    baseline_pending: int = 0

    @property
    def variant_rate(self) -> float:
        """Share of the variant's ended runs that succeeded; 1 when none has ended."""
        return _rate(self.variant_ok, self.variant_failed)

    @property
    def baseline_rate(self) -> float:
        """Share of the baseline's ended runs that succeeded; 1 when none has ended."""
        return _rate(self.baseline_ok, self.baseline_failed)

    @property
    def lost_too_many(self) -> str:
        """Which arms lost over a fifth of their planned seeds: "the variant", "the baseline", "both arms" or ""."""
        variant = self.variant_failed > MOST_LOST * (self.variant_ok + self.variant_failed + self.variant_pending)
        baseline = self.baseline_failed > MOST_LOST * (self.baseline_ok + self.baseline_failed + self.baseline_pending)
        return {(True, True): "both arms", (True, False): "the variant", (False, True): "the baseline"}.get(
            (variant, baseline), ""
        )

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

    `p_holm` and `p_equivalence` (of the two one-sided tests against the margin) are Holm-corrected over the family of
    comparisons, and `corrected` is the interval at alpha over their number, from which an effect's size is judged.
    `solved` counts the runs that reached the threshold, None when none was declared. `split` says which arms fall into
    groups of seeds that contradict each other. `looked_before` says that the data were looked at before all planned
    seeds had ended; for unpaired arms there is no valid interval then.
    """

    difference: Difference
    p_holm: float | None
    outcomes: Outcomes
    lower_is_better: bool = True
    margin: float | None = None
    p_equivalence: float | None = None
    corrected: Interval | None = None
    solved: Outcomes | None = None
    split: tuple[str, ...] = ()
    looked_before: bool = False
    alpha: float = 0.05

    def oriented(self, bounds: Interval | None) -> Interval | None:
        """An interval of D with the sign turned so that negative is better."""
        if bounds is None or self.lower_is_better:
            return bounds
        return Interval(-bounds.high, -bounds.low)


@dataclass(frozen=True)
class Judgement:
    """A verdict, and how it is qualified ("" when it is not)."""

    verdict: Verdict
    qualifier: str = ""


def judge(evidence: Evidence) -> Judgement:
    """Give the verdict by the rules of the module's docstring."""
    lost = _all_failed(evidence.outcomes)
    if lost:
        return Judgement(Verdict.unstable, lost)
    if evidence.difference.n < MINIMUM:
        return Judgement(Verdict.insufficient, "fewer than 3 pairs of finished runs")
    on_the_mean = _judge_mean(evidence)
    reason = _unstable(evidence, on_the_mean.verdict)
    return Judgement(Verdict.unstable, reason) if reason else on_the_mean


def _all_failed(o: Outcomes) -> str:
    """Which arm lost all its seeds, 3 or more, while the other one shows that the task can be run; else empty."""
    if o.variant_ok == 0 and o.variant_failed >= MINIMUM and o.baseline_ok >= MINIMUM:
        return f"all {o.variant_failed} seeds failed"
    if o.baseline_ok == 0 and o.baseline_failed >= MINIMUM and o.variant_ok >= MINIMUM:
        return f"all {o.baseline_failed} seeds of the baseline failed"
    return ""


def _unstable(evidence: Evidence, on_the_mean: Verdict) -> str:
    """Why the mean is no answer, or empty."""
    lost = evidence.outcomes.lost_too_many
    for counted, verb in ((evidence.outcomes, "failed"), (evidence.solved, "fell short")):
        if counted is None:
            continue
        if counted.any_failed and counted.p(paired=evidence.difference.paired) < evidence.alpha:
            return "success rates differ"
        if on_the_mean is Verdict.better and counted.variant_rate < counted.baseline_rate:
            return f"better on the mean, but {verb} on more seeds"
        if on_the_mean is Verdict.worse and counted.baseline_rate < counted.variant_rate:
            return f"worse on the mean, but the baseline {verb} on more seeds"
    if lost:
        return f"{lost} lost over a fifth of the seeds"
    return " and ".join(evidence.split)


def _judge_mean(evidence: Evidence) -> Judgement:
    bounds, p = evidence.oriented(evidence.difference.interval), evidence.p_holm
    if evidence.difference.constant or bounds is None or p is None:
        return Judgement(Verdict.inconclusive, "the difference is identical across seeds")
    if evidence.looked_before and not evidence.difference.paired:
        return Judgement(
            Verdict.inconclusive, "looked at early or several times, and unpaired arms have no interval for that"
        )
    corrected = evidence.oriented(evidence.corrected)
    if p < evidence.alpha and bounds.high < 0:
        return Judgement(
            Verdict.better, _size(corrected and Interval(-corrected.high, -corrected.low), evidence.margin)
        )
    if p < evidence.alpha and bounds.low > 0:
        return Judgement(Verdict.worse, _size(corrected, evidence.margin))
    if evidence.p_equivalence is not None and evidence.p_equivalence < evidence.alpha:
        return Judgement(Verdict.equivalent, "within the margin of interest")
    return Judgement(Verdict.inconclusive)


def _size(effect: Interval | None, margin: float | None) -> str:
    """Qualify an effect whose size lies within the interval, in the direction in which it was found."""
    if margin is None or effect is None:
        return ""
    if effect.low > margin:
        return "by a meaningful margin"
    return "but smaller than the margin of interest" if effect.high < margin else ""

"""From what was gathered to verdicts: Holm's correction over all of it, the rule, power, flags, what is in bold.

What `conclude` returns holds numbers and verdicts, and no text but flags. Tables, sentences, figures and files are made
from it elsewhere.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from analysis.design import Arm
from analysis.evidence import Compared, Gathered, contrast
from analysis.flags import flags_of
from analysis.question import Question
from analysis.results import MORE_THAN_200, Against, Comparison, VariantResult
from analysis.statistics.intervals import MINIMUM, summarise, two_groups
from analysis.statistics.multiple import benjamini_hochberg, holm
from analysis.statistics.paired import Difference, unpaired_difference
from analysis.statistics.power import minimum_detectable_effect, seeds_needed, upper_sd
from analysis.statistics.sensitivity import why_fragile
from analysis.statistics.verdict import Evidence, judge
from analysis.study import Study


def conclude(questions: Sequence[Gathered]) -> list[Comparison]:
    """The verdicts on every question, with Holm's correction over the comparisons of all of them together.

    The q values of Benjamini and Hochberg stand beside, over the same comparisons.
    """
    compared = [(one, asked) for asked in questions for one in asked.compared]
    p_values = [one.difference.p for one, _ in compared]
    corrected = zip(compared, holm(p_values), benjamini_hochberg(p_values), strict=True)
    judged = (
        replace(_judge_one(_checked(one, p_values, place), p, asked.question), q_bh=q)
        for place, ((one, asked), p, q) in enumerate(corrected)
    )
    return [_comparison(asked, list(islice(judged, len(asked.compared))), len(p_values)) for asked in questions]


def _comparison(asked: Gathered, judged: Sequence[Against], family: int) -> Comparison:
    study, question, others = asked.study, asked.question, iter(judged)
    results = [_result(study, question, arm, None if arm is asked.base else next(others)) for arm in asked.arms]
    return Comparison(study, question, tuple(_mark_best(study, results, question)), family)


def _checked(one: Compared, p_values: Sequence[float | None], place: int) -> Compared:
    return replace(one, difference=_with_fragility(one, p_values, place))


def _with_fragility(one: Compared, p_values: Sequence[float | None], place: int) -> Difference:
    """Fragility by the p that decides: Holm's, with all other comparisons as they are."""
    d = one.difference
    if d.p is None or not d.paired or one.looks:
        return d

    def corrected(p: float) -> float:
        return holm([*p_values[:place], p, *p_values[place + 1 :]])[place] or 0.0

    return replace(d, fragile=why_fragile(one.pairs.variant - one.pairs.baseline, d.sensitivity, corrected))


def _judge_one(one: Compared, p_holm: float | None, question: Question) -> Against:
    evidence = Evidence(
        difference=one.difference,
        p_holm=p_holm,
        outcomes=one.outcomes,
        solved=one.success if question.threshold is not None else None,
        lower_is_better=question.lower_is_better,
        margin=question.margin,
        two_groups=tuple(arm.variant.label for arm in (one.arm, one.base) if two_groups(arm.sample)),
        looked_before=bool(one.looks),
        alpha=question.alpha,
    )
    plain = Against(
        one.pairs,
        one.difference,
        one.outcomes,
        one.success,
        judge(evidence),
        p_holm,
        looks=one.looks,
        welch=one.welch,
    )
    return _with_power(plain, question.margin)


def _with_power(against: Against, margin: float | None) -> Against:
    """Add what the design could detect, and the seeds that would resolve the margin."""
    difference = against.difference
    if difference.sd is None or difference.sd <= 0 or difference.n < MINIMUM or difference.constant:
        return against
    mde = minimum_detectable_effect(difference.sd, difference.n, paired=difference.paired)
    if margin is None:
        return replace(against, mde=mde)
    freedom = difference.n if difference.paired else 2 * difference.n - 1
    needed = seeds_needed(upper_sd(difference.sd, freedom), margin, paired=difference.paired)
    return replace(against, mde=mde, seeds_needed=MORE_THAN_200 if needed is None else needed)


def _result(study: Study, question: Question, arm: Arm, against: Against | None) -> VariantResult:
    summary = summarise(arm.sample)
    if summary.interval is not None:
        summary = replace(summary, interval=summary.interval.clipped(question.limits))
    return VariantResult(arm, summary, against, tuple(flags_of(study, question, arm, summary, against)))


def _mark_best(study: Study, results: list[VariantResult], question: Question) -> list[VariantResult]:
    """Mark the variant of the best mean and every one that the data cannot tell from it (p >= alpha, uncorrected)."""
    sign = 1 if question.lower_is_better else -1
    ranked = sorted((r for r in results if r.summary.mean is not None), key=lambda r: sign * (r.summary.mean or 0.0))
    if not ranked:
        return results
    return [replace(result, among_best=_close_to(study, result, ranked[0], question)) for result in results]


def _close_to(study: Study, result: VariantResult, best: VariantResult, question: Question) -> bool:
    """Whether two arms cannot be told apart: as they would be compared, on too few pairs by all their runs."""
    if result.summary.mean is None or result is best:
        return result is best
    d = contrast(study, question, result.arm, best.arm).difference
    if d.constant:
        return d.mean == 0
    p = d.p if d.p is not None else unpaired_difference(result.arm.sample, best.arm.sample).p
    return p is None or p >= question.alpha

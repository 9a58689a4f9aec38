"""From what was gathered to verdicts: Holm's correction over all of it, the rule, power, flags, what is in bold.

What `conclude` returns holds numbers and verdicts, and no text but flags. Tables, sentences, figures and files are made
from it elsewhere.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from analysis.design import Arm
from analysis.evidence import Compared, Gathered, contrast
from analysis.flags import flags_of
from analysis.question import Question
from analysis.results import MORE_THAN_200, Against, Comparison, VariantResult
from analysis.statistics.intervals import MINIMUM, summarise
from analysis.statistics.multiple import benjamini_hochberg, holm
from analysis.statistics.paired import unpaired_difference
from analysis.statistics.power import minimum_detectable_effect, seeds_needed, upper_sd
from analysis.statistics.sensitivity import why_fragile
from analysis.statistics.verdict import Evidence, judge
from analysis.study import Study


def conclude(questions: Sequence[Gathered]) -> list[Comparison]:
    """The verdicts on every question, with Holm's correction over the comparisons of all of them together.

    So are the p of equivalence, a family of their own, and the level at which effects are sized and power is computed.
    The q values of Benjamini and Hochberg are over the same comparisons.
    """
    compared = [(one, asked.question) for asked in questions for one in asked.compared]
    p_values = [one.difference.p for one, _ in compared]
    equivalence = holm([_equivalence_p(one, question) for one, question in compared])
    corrected = zip(compared, holm(p_values), equivalence, benjamini_hochberg(p_values), strict=True)
    judged = (
        _judge_one(_with_fragility(one, p_values, place), question, Corrected(p, p_equivalence, q, len(p_values)))
        for place, ((one, question), p, p_equivalence, q) in enumerate(corrected)
    )
    return [_comparison(asked, list(islice(judged, len(asked.compared))), len(p_values)) for asked in questions]


class Corrected(NamedTuple):
    """One comparison's p, p of equivalence and q, corrected over a family of so many comparisons."""

    p: float | None
    p_equivalence: float | None
    q: float | None
    family: int


def _equivalence_p(one: Compared, question: Question) -> float | None:
    return None if question.margin is None else one.difference.equivalence_p(question.margin)


def _comparison(asked: Gathered, judged: Sequence[Against], family: int) -> Comparison:
    study, question, others = asked.study, asked.question, iter(judged)
    results = [_result(study, question, arm, None if arm is asked.base else next(others)) for arm in asked.arms]
    return Comparison(study, question, tuple(_mark_best(study, results, question)), family)


def _with_fragility(one: Compared, p_values: Sequence[float | None], place: int) -> Compared:
    """Fragility by the p that decides: Holm's, with all other comparisons as they are."""
    d = one.difference
    if d.p is None or not d.paired or one.looks:
        return one

    def corrected(p: float) -> float:
        return holm([*p_values[:place], p, *p_values[place + 1 :]])[place] or 0.0

    fragile = why_fragile(one.pairs.variant - one.pairs.baseline, d.sensitivity, corrected)
    return replace(one, difference=replace(d, fragile=fragile))


def _judge_one(one: Compared, question: Question, corrected: Corrected) -> Against:
    alpha = question.alpha / corrected.family
    evidence = Evidence(
        difference=one.difference,
        p_holm=corrected.p,
        outcomes=one.outcomes,
        solved=one.success if question.threshold is not None else None,
        lower_is_better=question.lower_is_better,
        margin=question.margin,
        p_equivalence=corrected.p_equivalence,
        corrected=one.difference.interval_at(alpha),
        split=one.split,
        looked_before=bool(one.looks),
        alpha=question.alpha,
    )
    plain = Against(
        one.pairs,
        one.difference,
        one.outcomes,
        one.success,
        judge(evidence),
        corrected.p,
        corrected.q,
        corrected.p_equivalence,
        looks=one.looks,
        welch=one.welch,
        unpaired=one.unpaired,
        split=one.split,
    )
    return _with_power(plain, question.margin, alpha)


def _with_power(against: Against, margin: float | None, alpha: float) -> Against:
    """Add what the design could detect at the corrected level, and the seeds that would resolve the margin."""
    difference = against.difference
    if difference.sd is None or difference.sd <= 0 or difference.n < MINIMUM or difference.constant:
        return against
    mde = minimum_detectable_effect(difference.sd, difference.n, paired=difference.paired, alpha=alpha)
    if margin is None:
        return replace(against, mde=mde)
    freedom = difference.n if difference.paired else 2 * difference.n - 1
    needed = seeds_needed(upper_sd(difference.sd, freedom), margin, paired=difference.paired, alpha=alpha)
    return replace(against, mde=mde, seeds_needed=MORE_THAN_200 if needed is None else needed)


def _result(study: Study, question: Question, arm: Arm, against: Against | None) -> VariantResult:
    summary = summarise(arm.sample)
    if summary.interval is not None:
        summary = replace(summary, interval=summary.interval.clipped(question.limits))
    return VariantResult(arm, summary, against, tuple(flags_of(study, question, arm, summary, against)))


def _mark_best(study: Study, results: list[VariantResult], question: Question) -> list[VariantResult]:
    """Mark the variant of the best mean and every one that the data cannot tell from it.

    The best is picked from the data, so any two variants may turn out to be compared: p are Holm-corrected over all
    pairs. Over the k - 1 comparisons alone some of 8 equal variants would be set apart in 11 % of studies; so in 3 %.
    """
    sign = 1 if question.lower_is_better else -1
    ranked = sorted((r for r in results if r.summary.mean is not None), key=lambda r: sign * (r.summary.mean or 0.0))
    if not ranked:
        return results
    best, *others = ranked
    unseen = len(others) * (len(others) - 1) // 2  # the pairs that the best is not one of count as p = 1
    p_values = holm([*(_p_against(study, other, best, question) for other in others), *[None] * unseen])
    close = {id(other) for other, p in zip(others, p_values, strict=False) if p is None or p >= question.alpha}
    return [replace(result, among_best=result is best or id(result) in close) for result in results]


def _p_against(study: Study, result: VariantResult, best: VariantResult, question: Question) -> float | None:
    """p of equal means of two arms: as they would be compared, on too few pairs by all their runs."""
    d = contrast(study, question, result.arm, best.arm).difference
    if d.constant:
        return 1.0 if d.mean == 0 else 0.0
    return d.p if d.p is not None else unpaired_difference(result.arm.sample, best.arm.sample).p

"""Every variant against the baseline: `analysis.statistics` applied to the arms of `analysis.design`.

`compare` is the one entry; what it returns holds numbers and verdicts, and no text but flags. Tables, sentences,
figures and files are made from it elsewhere.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis import design
from analysis.design import DEFAULT_METRIC, PENDING, Arm, Pairs, Question
from analysis.flags import flags_of
from analysis.load import load_study
from analysis.results import MORE_THAN_200, Against, Comparison, VariantResult
from analysis.statistics.intervals import MINIMUM, summarise, two_groups
from analysis.statistics.multiple import benjamini_hochberg, holm
from analysis.statistics.paired import Difference, paired_difference, unpaired_difference
from analysis.statistics.power import minimum_detectable_effect, seeds_needed, upper_sd
from analysis.statistics.sensitivity import why_fragile
from analysis.statistics.sequential import at_several_looks
from analysis.statistics.verdict import Evidence, Outcomes, judge
from analysis.study import Study


def compare(
    study: Study | Path | str,
    metric: str = DEFAULT_METRIC,
    *,
    baseline: str | None = None,
    direction: str | None = None,
    margin: float | str | None = None,
    transform: str = "none",
    threshold: float | str | None = None,
    only: Iterable[str] | None = None,
) -> Comparison:
    """Compare every variant (or `only` those labels) with the baseline.

    `study` is a folder or what `load_study` gave; the baseline is the plan's first cell unless named by label, by
    factor=value or by level; `direction` is lower or higher (by default from the metric's name); `margin` is the
    smallest effect of interest, absolute or "2%". `transform` is none, or log to compare logarithms (differences are
    then ratios, and margins in per cent). A run has solved the task when its final value is at or beyond `threshold`.
    Raises StudyError when the question cannot be asked of this study.
    """
    loaded = study if isinstance(study, Study) else load_study(study)
    question = design.ask(
        loaded,
        metric,
        baseline=baseline,
        direction=direction,
        margin=margin,
        transform=transform,
        threshold=threshold,
    )
    chosen = [loaded.variant(label) for label in only] if only is not None else list(loaded.variants)
    arms = [design.arm_of(loaded, variant, question) for variant in loaded.variants if variant in chosen]
    base = design.arm_of(loaded, question.baseline, question)
    evidence = [contrast(loaded, question, arm, base) for arm in arms if arm.variant is not question.baseline]
    judged = iter(_judged(evidence, question, base))
    results = [_result(loaded, question, arm, None if arm.variant is base.variant else next(judged)) for arm in arms]
    if question.baseline not in chosen:
        results.insert(0, _result(loaded, question, base, None))
    assert only is not None or len(results) == len(loaded.variants), "rows out must equal variants in"
    return Comparison(loaded, question, tuple(_mark_best(results, question)))


@dataclass(frozen=True)
class Compared:
    """Two arms before Holm's correction, which needs all of them."""

    arm: Arm
    pairs: Pairs
    difference: Difference
    outcomes: Outcomes
    success: Outcomes
    looks: tuple[int, ...]
    welch: Difference | None


def contrast(study: Study, question: Question, arm: Arm, base: Arm) -> Compared:
    """One arm minus another: paired where seeds are shared, else Welch; anytime-valid after several looks."""
    pairs = design.pair(arm, base)
    lower = question.lower_is_better
    paired = study.shared_seeds and bool(set(arm.ended) & set(base.ended))
    outcomes = _outcomes(arm, base, arm.values, base.values, paired=paired)
    success = _outcomes(arm, base, arm.solved, base.solved, paired=paired)
    looks = _several_looks(study, arm, base)
    if not paired:
        unpaired = unpaired_difference(arm.sample, base.sample, lower_is_better=lower)
        return Compared(arm, pairs, unpaired, outcomes, success, looks, None)
    difference = paired_difference(pairs.variant, pairs.baseline, lower_is_better=lower)
    if looks:
        seen = [sum(seed in study.seeds[:n] for seed in pairs.seeds) for n in looks]
        difference = at_several_looks(difference, pairs.variant - pairs.baseline, seen)
    lost = len(pairs.dropped) > 0.2 * (len(pairs.seeds) + len(pairs.dropped))
    welch = unpaired_difference(arm.sample, base.sample, lower_is_better=lower) if lost else None
    beside = welch if welch is not None and welch.p is not None else None
    return Compared(arm, pairs, difference, outcomes, success, looks, beside)


def _several_looks(study: Study, arm: Arm, base: Arm) -> tuple[int, ...]:
    """The looks, this one among them, when there were several or the only one came before the planned seeds."""
    cells = frozenset({arm.variant.cell, base.variant.cell})
    recorded = design.looks_at(study, cells)
    looks = sorted({*recorded, design.seeds_now(study, cells)}) if recorded else []
    pending = any(counts[kind] for counts in (arm.counts, base.counts) for kind in PENDING)
    early = pending and any(n < len(study.seeds) for n in looks)
    return tuple(looks) if len(looks) > 1 or early else ()


def _outcomes(arm: Arm, base: Arm, left: Collection[int], right: Collection[int], *, paired: bool) -> Outcomes:
    """Count the seeds of either arm that did well, `left` and `right`, and the others that ended."""
    common = set(arm.ended) & set(base.ended) if paired else set()
    return Outcomes(
        variant_ok=len(left),
        variant_failed=len(arm.ended) - len(left),
        baseline_ok=len(right),
        baseline_failed=len(base.ended) - len(right),
        only_variant=sum(seed in left and seed not in right for seed in common),
        only_baseline=sum(seed in right and seed not in left for seed in common),
    )


def _judged(compared: list[Compared], question: Question, base: Arm) -> list[Against]:
    """Verdicts, after Holm's correction over all comparisons with the baseline; q values beside them."""
    p_values = [one.difference.p for one in compared]
    checked = [replace(one, difference=_with_fragility(one, p_values, i)) for i, one in enumerate(compared)]
    judged = [_judge_one(one, p, question, base) for one, p in zip(checked, holm(p_values), strict=True)]
    return [replace(one, q_bh=q) for one, q in zip(judged, benjamini_hochberg(p_values), strict=True)]


def _with_fragility(one: Compared, p_values: Sequence[float | None], place: int) -> Difference:
    """Fragility by the p that decides: Holm's, with all other comparisons as they are."""
    d = one.difference
    if d.p is None or not d.paired or one.looks:
        return d

    def corrected(p: float) -> float:
        return holm([*p_values[:place], p, *p_values[place + 1 :]])[place] or 0.0

    return replace(d, fragile=why_fragile(one.pairs.variant - one.pairs.baseline, d.sensitivity, corrected))


def _judge_one(one: Compared, p_holm: float | None, question: Question, base: Arm) -> Against:
    evidence = Evidence(
        difference=one.difference,
        p_holm=p_holm,
        outcomes=one.outcomes,
        solved=one.success if question.threshold is not None else None,
        lower_is_better=question.lower_is_better,
        margin=question.margin,
        two_groups=tuple(arm.variant.label for arm in (one.arm, base) if two_groups(arm.sample)),
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


def _mark_best(results: list[VariantResult], question: Question) -> list[VariantResult]:
    """Mark the variant of the best mean and every one that the data cannot tell from it (p >= alpha, uncorrected)."""
    sign = 1 if question.lower_is_better else -1
    ranked = sorted((r for r in results if r.summary.mean is not None), key=lambda r: sign * (r.summary.mean or 0.0))
    if not ranked:
        return results
    return [replace(result, among_best=_close_to(result, ranked[0], question)) for result in results]


def _close_to(result: VariantResult, best: VariantResult, question: Question) -> bool:
    if result.summary.mean is None or result is best:
        return result is best
    pairs = design.pair(result.arm, best.arm)
    p = paired_difference(pairs.variant, pairs.baseline).p if len(pairs.seeds) >= MINIMUM else None
    if p is None:
        p = unpaired_difference(result.arm.sample, best.arm.sample).p
    return p is None or p >= question.alpha

"""What a reader must know about one variant beside its numbers; the verdict rests on the numbers, not on these."""

from collections.abc import Iterable

import numpy as np

from analysis import formatting as fmt
from analysis.design import PENDING, Arm, arm_of, as_compared, finished
from analysis.question import Question
from analysis.results import Against
from analysis.statistics.intervals import Summary, is_constant, one_apart, two_groups
from analysis.statistics.tail import slow_tail
from analysis.study import Study, Variant


def flags_of(study: Study, question: Question, arm: Arm, summary: Summary, against: Against | None) -> Iterable[str]:
    """What a reader must know about a row, most serious first."""
    if study.mixed_code:
        yield "mixed code"
    if study.mixed_arithmetic:
        yield "mixed arithmetic"
    if (
        len(arm.sample) > 1
        and is_constant(arm.sample, float(np.max(np.abs(arm.sample))))
        and not _at_limit(question, arm)
    ):
        yield "same value for every seed: the seed is not applied"
    if question.threshold is not None and 0 < len(arm.solved) < len(arm.ended):
        yield f"{len(arm.solved)} of {len(arm.ended)} runs solve the task, the others do not"
    if two_groups(arm.sample):
        yield "two groups of runs"
    if one_apart(arm.sample):
        yield "one run stands apart from the others"
    if _coarse_evaluation(study, question, arm, summary):
        yield "evaluation error over 0.2 of the spread between seeds: evaluate on more sequences"
    yield from _open_flags(arm)
    yield from _replaced_flags(study, arm)
    stopped = study.stopped.get(arm.variant.cell)
    if stopped is not None:
        yield f"stopped at n = {stopped.seeds}: {stopped.why}"
    if against is not None:
        yield from _pair_flags(study, question, arm, against)


def _at_limit(question: Question, arm: Arm) -> bool:
    return bool(np.all(np.isin(arm.sample, question.limits)))


def _coarse_evaluation(study: Study, question: Question, arm: Arm, summary: Summary) -> bool:
    """Whether the evaluation's standard error (metric `<name>_se`) is over 0.2 of the deviation between seeds."""
    values = finished(arm.outcomes)
    records = [run.record for run in study.of(arm.variant) if run.record is not None and run.seed in values]
    found = [(values[record.seed], record.metrics.get(f"{question.metric}_se")) for record in records]
    # The standard error of log y is, to first order, that of y divided by y.
    errors = [e / value if question.scale.is_log else e for value, e in found if e is not None]
    return bool(errors and summary.sd and float(np.mean(errors)) > 0.2 * summary.sd)


def _open_flags(arm: Arm) -> Iterable[str]:
    found = [f"{arm.counts[kind]} {kind}" for kind in PENDING if arm.counts[kind]]
    if found:
        yield f"without an outcome so far: {', '.join(found)}"


def _replaced_flags(study: Study, arm: Arm) -> Iterable[str]:
    seeds = sorted({r.seed for r in study.replaced if r.label == arm.variant.label and r.differs})
    if seeds:
        yield f"a rerun changed the result of seed {', '.join(map(str, seeds))}"


def _tail_flags(question: Question, arm: Arm, base: Arm) -> Iterable[str]:
    """A slow tail of either arm of a comparison, seen from the other."""
    for one, other in ((arm, base), (base, arm)):
        tail = slow_tail(one.sample, other.sample, lower_is_better=question.lower_is_better, alpha=question.alpha)
        if tail is not None:
            fence, name = question.scale.back(tail.fence), other.variant.label
            places = fmt.decimals(abs(fence - question.scale.back(float(np.median(other.sample)))), fence)
            shown = fmt.number(fence, places)
            side = "above" if question.lower_is_better else "below"
            yield (
                f"slow tail of {one.variant.label}: {tail.runs} of {tail.n} runs {side} {shown}, the fence of {name}; "
                f"spreads differ (Brown-Forsythe {fmt.p_phrase(tail.p, question.alpha)})"
            )


def _pair_flags(study: Study, question: Question, arm: Arm, against: Against) -> Iterable[str]:
    difference = against.difference
    arm, base = as_compared(study, arm, arm_of(study, question.baseline, question))
    yield from _tail_flags(question, arm, base)
    if not difference.paired:
        yield (
            "unpaired: no common seeds" if study.shared_seeds else "unpaired: equal run numbers have nothing in common"
        )
    if against.looks:
        how = "anytime-valid interval" if difference.paired else "unpaired arms have no interval that allows for it"
        yield f"looked at {', '.join(map(str, against.looks))} seeds: {how}"
    if difference.constant and not (_at_limit(question, arm) and _at_limit(question, base)):
        yield "identical across seeds: check that the factor takes effect and the seed reaches the generator"
    if difference.fragile:
        yield f"fragile: {difference.fragile}"
    if difference.paired and against.pairs.dropped:
        yield f"seeds without a pair: {', '.join(map(str, against.pairs.dropped))}"
    budgets = _budgets(study, arm.variant, question.baseline)
    if len(budgets) > 1:
        yield f"different step budgets: {_listed(budgets)} steps"


def _listed(budgets: list[int]) -> str:
    return f"{budgets[0]} {'and' if len(budgets) == 2 else 'to'} {budgets[-1]}"


def _budgets(study: Study, *variants: Variant) -> list[int]:
    runs = [run for variant in variants for run in study.of(variant)]
    return sorted({run.record.steps_planned for run in runs if run.record is not None})

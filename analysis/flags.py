"""What a reader must know about one variant beside its numbers; the verdict rests on the numbers, not on these."""

from collections.abc import Iterable

import numpy as np

from analysis import formatting as fmt
from analysis.design import PENDING, Arm, arm_of, as_compared
from analysis.question import Question
from analysis.results import Against
from analysis.statistics.groups import one_apart, split_value, two_groups
from analysis.statistics.intervals import Summary, is_constant
from analysis.statistics.paired import Difference
from analysis.statistics.tail import slow_tail
from analysis.study import Study, Variant
from analysis.wording import plural


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
    if two_groups(arm.sample, arm.error):
        yield _groups_flag(question, arm)
    if one_apart(arm.sample, arm.error):
        yield "one run lies apart from the others"
    if summary.sd and arm.error > 0.2 * summary.sd:
        yield "evaluation error over 0.2 of the spread between seeds: evaluate on more sequences"
    yield from _failure_flags(arm)
    yield from _open_flags(arm)
    yield from _replaced_flags(study, arm)
    stopped = study.stopped.get(arm.variant.cell)
    if stopped is not None:
        yield f"stopped at n = {stopped.seeds}: {stopped.why}"
    if against is not None:
        yield from _pair_flags(study, question, arm, against)


def _at_limit(question: Question, arm: Arm) -> bool:
    return bool(np.all(np.isin(arm.sample, question.limits)))


def _groups_flag(question: Question, arm: Arm) -> str:
    """Two groups of runs: how many are in each, and their means."""
    middle, values = split_value(arm.sample), np.sort(arm.sample)
    parts = values[values < middle], values[values >= middle]
    means = [question.scale.back(float(part.mean())) for part in parts]
    places = fmt.decimals(abs(means[1] - means[0]), means[0])
    shown = " and ".join(
        f"{len(part)} runs around {fmt.number(mean, places)}" for part, mean in zip(parts, means, strict=True)
    )
    return f"two groups of runs: {shown}; a mean describes neither"


def _failure_flags(arm: Arm) -> Iterable[str]:
    """What became of the seeds that failed: a run that diverged speaks of the variant, one that was killed does not."""
    total = f"of {plural(len(arm.outcomes), 'seed')}"
    lost = sum(outcome.machine for outcome in arm.outcomes.values() if outcome.kind == "failed")
    if arm.counts["diverged"]:
        yield f"{arm.counts['diverged']} {total} diverged"
    if arm.counts["failed"] > lost:
        yield f"{arm.counts['failed'] - lost} {total} failed with an error"
    if lost:
        yield f"{lost} {total} lost to the machine (killed, out of memory or disk): train again with sweep.rerun=failed"


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
    if against.unpaired:
        yield f"unpaired: {against.unpaired}"
    if against.looks:
        how = against.difference.test.words if against.difference.test is not None else "no interval yet"
        if not difference.paired:
            how = "unpaired arms have no interval that allows for it"
        yield f"looked at {', '.join(map(str, against.looks))} seeds: {how}"
    if difference.constant and not (_at_limit(question, arm) and _at_limit(question, base)):
        yield _constant_flag(difference)
    if difference.fragile:
        yield f"fragile: {difference.fragile}"
    if difference.paired and against.pairs.dropped:
        yield _dropped_flag(question, arm, against)
    budgets = _budgets(study, arm.variant, question.baseline)
    if len(budgets) > 1:
        yield f"different step budgets: {_listed(budgets)} steps"


def _constant_flag(difference: Difference) -> str:
    if difference.mean:
        return "the same difference for every seed: without a spread there is nothing to judge it by"
    return "identical across seeds: check that the factor takes effect and the seed reaches the generator"


def _dropped_flag(question: Question, arm: Arm, against: Against) -> str:
    """The seeds that are in no difference, and the means over the pairs, which are what is subtracted."""
    pairs, scale = against.pairs, question.scale
    flag = f"seeds without a pair: {', '.join(map(str, pairs.dropped))}"
    if not pairs.seeds:
        return flag
    means = [scale.back(float(values.mean())) for values in (pairs.variant, pairs.baseline)]
    places = fmt.decimals(against.difference.sd, means[0])
    own, base = (fmt.number(mean, places) for mean in means)
    return (
        f"{flag}; over the {plural(len(pairs.seeds), 'pair')} the means are {own} and, of "
        f"{question.baseline.label}, {base}"
    )


def _listed(budgets: list[int]) -> str:
    return f"{budgets[0]} {'and' if len(budgets) == 2 else 'to'} {budgets[-1]}"


def _budgets(study: Study, *variants: Variant) -> list[int]:
    runs = [run for variant in variants for run in study.of(variant)]
    return sorted({run.record.steps_planned for run in runs if run.record is not None})

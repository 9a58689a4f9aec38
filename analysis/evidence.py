"""What is known of every variant against the baseline before the verdicts: Holm's correction needs all of them first.

`gather` gives one `Gathered` per question; verdicts are made of it in `analysis.verdicts`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from analysis import design
from analysis.design import Arm, Pairs
from analysis.looks import Looks, looks_to_allow_for, pairs_seen
from analysis.question import Question
from analysis.statistics.groups import split_value, two_groups
from analysis.statistics.paired import Difference, paired_difference, unpaired_difference
from analysis.statistics.sequential import anytime_p, overall_p
from analysis.statistics.t_tests import AnyLooks, PlannedLooks
from analysis.statistics.verdict import Outcomes
from analysis.study import Study


@dataclass(frozen=True)
class Compared:
    """One variant against the baseline, not corrected yet; the other fields are those of `analysis.results.Against`.

    `arm` and `base` are the arms as they were compared: on the seeds planned for both, where one was stopped early.
    """

    arm: Arm
    base: Arm
    pairs: Pairs
    difference: Difference
    outcomes: Outcomes
    success: Outcomes
    looks: tuple[int, ...]
    welch: Difference | None
    unpaired: str
    split: tuple[str, ...]


@dataclass(frozen=True)
class Gathered:
    """One question with its arms, the baseline's among them, and how each of the others compares with it, in order."""

    study: Study
    question: Question
    arms: tuple[Arm, ...]
    base: Arm
    compared: tuple[Compared, ...]


def gather(study: Study, question: Question) -> Gathered:
    """Compare every variant with the baseline of the question."""
    base = design.arm_of(study, question.baseline, question)
    arms = [
        base if variant is question.baseline else design.arm_of(study, variant, question) for variant in study.variants
    ]
    others = [arm for arm in arms if arm is not base]
    return Gathered(study, question, tuple(arms), base, tuple(contrast(study, question, arm, base) for arm in others))


def contrast(study: Study, question: Question, arm: Arm, base: Arm) -> Compared:
    """One arm minus another: paired where seeds are shared, else Welch; by a test that allows for the looks."""
    arm, base = design.as_compared(study, arm, base)
    pairs = design.pair(arm, base)
    unpaired = design.why_unpaired(study, arm, base, pairs)
    looks = looks_to_allow_for(study, arm, base)
    lower = question.lower_is_better
    lost = len(pairs.dropped) > 0.2 * (len(pairs.seeds) + len(pairs.dropped))
    welch = unpaired_difference(arm.sample, base.sample, lower_is_better=lower) if unpaired or lost else None
    if unpaired and welch is not None:
        difference, beside = welch, None
    else:
        difference = paired_difference(pairs.variant, pairs.baseline, lower_is_better=lower)
        if looks.planned and difference.p is not None:
            difference = difference.by(PlannedLooks(difference.n, looks.planned), _p_over_blocks(looks, arm, pairs))
        elif looks.sizes and difference.p is not None:
            seen = pairs_seen(study, pairs, frozenset({arm.variant.cell, base.variant.cell}))
            p = anytime_p((pairs.variant - pairs.baseline)[seen.order], seen.sizes)
            difference = difference.by(AnyLooks(difference.n), p)
        beside = welch if welch is not None and welch.p is not None else None
    outcomes = _outcomes(arm, base, arm.values, base.values, paired=not unpaired)
    success = _outcomes(arm, base, arm.solved, base.solved, paired=not unpaired)
    split = tuple(_contradicting_groups(question, arm, base, pairs, paired=not unpaired))
    return Compared(arm, base, pairs, difference, outcomes, success, looks.sizes, beside, unpaired, split)


def _p_over_blocks(looks: Looks, arm: Arm, pairs: Pairs) -> float:
    """The smallest p of the t-test at the planned looks so far, as it is over all planned looks."""
    planned, found = list(arm.outcomes), [1.0]
    for n in (n for n in looks.planned if n <= len(planned)):
        block = frozenset(planned[:n])
        within = [place for place, seed in enumerate(pairs.seeds) if seed in block]
        p = paired_difference(pairs.variant[within], pairs.baseline[within]).p
        found.append(1.0 if p is None else p)
    return overall_p(min(found), looks.planned)


def _contradicting_groups(question: Question, arm: Arm, base: Arm, pairs: Pairs, *, paired: bool) -> Iterable[str]:
    """Which of the two arms falls into two groups of seeds that answer the question in opposite ways.

    Paired: the mean differences of the two groups have opposite signs. Else the means of the groups lie on different
    sides of the other arm's mean.
    """
    for one, other in ((arm, base), (base, arm)):
        for group, words in groups_of(question, one):
            if paired:
                d = dict(zip(pairs.seeds, pairs.variant - pairs.baseline, strict=True))
                sides = [[d[s] for s in d if s in group], [d[s] for s in d if s not in group]]
            else:
                middle = float(np.mean(other.sample)) if other.sample.size else 0.0
                sides = [[v - middle for s, v in one.values.items() if (s in group) is side] for side in (True, False)]
            if all(sides) and np.mean(sides[0]) * np.mean(sides[1]) < 0:
                yield f"{words} in {one.variant.label}, on different sides of {other.variant.label}"
                break


def groups_of(question: Question, arm: Arm) -> Iterable[tuple[Collection[int], str]]:
    """The ways in which an arm's seeds fall into two groups: one of the two, and what they are."""
    if question.threshold is not None and 0 < len(arm.solved) < len(arm.values):
        yield arm.solved, "seeds that solve the task and seeds that do not"
    if two_groups(arm.sample, arm.error):
        middle = split_value(arm.sample)
        yield [seed for seed, value in arm.values.items() if value < middle], "two groups of runs"


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
        variant_pending=len(arm.outcomes) - len(arm.ended),
        baseline_pending=len(base.outcomes) - len(base.ended),
    )

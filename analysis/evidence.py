"""What is known of every variant against the baseline before the verdicts: Holm's correction needs all of them first.

`gather` gives one `Gathered` per question; verdicts are made of it in `analysis.verdicts`.
"""

from collections.abc import Collection
from dataclasses import dataclass

from analysis import design
from analysis.design import PENDING, Arm, Pairs
from analysis.question import Question
from analysis.statistics.paired import Difference, paired_difference, unpaired_difference
from analysis.statistics.sequential import at_several_looks
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
    """One arm minus another: paired where seeds are shared, else Welch; anytime-valid after several looks."""
    arm, base = design.as_compared(study, arm, base)
    pairs = design.pair(arm, base)
    lower = question.lower_is_better
    paired = study.shared_seeds and bool(set(arm.ended) & set(base.ended))
    outcomes = _outcomes(arm, base, arm.values, base.values, paired=paired)
    success = _outcomes(arm, base, arm.solved, base.solved, paired=paired)
    looks = _several_looks(study, arm, base)
    if not paired:
        unpaired = unpaired_difference(arm.sample, base.sample, lower_is_better=lower)
        return Compared(arm, base, pairs, unpaired, outcomes, success, looks, None)
    difference = paired_difference(pairs.variant, pairs.baseline, lower_is_better=lower)
    if looks:
        seen = design.pairs_seen(study, pairs, frozenset({arm.variant.cell, base.variant.cell}))
        difference = at_several_looks(difference, (pairs.variant - pairs.baseline)[seen.order], seen.sizes)
    lost = len(pairs.dropped) > 0.2 * (len(pairs.seeds) + len(pairs.dropped))
    welch = unpaired_difference(arm.sample, base.sample, lower_is_better=lower) if lost else None
    beside = welch if welch is not None and welch.p is not None else None
    return Compared(arm, base, pairs, difference, outcomes, success, looks, beside)


def _several_looks(study: Study, arm: Arm, base: Arm) -> tuple[int, ...]:
    """The looks, this one among them.

    Empty when there was but one and the number of seeds did not hang on results: at all planned seeds, none pending.
    """
    cells = frozenset({arm.variant.cell, base.variant.cell})
    recorded, now = design.looks_at(study, cells), design.seeds_now(study, cells)
    if cells & study.open_ended:
        return tuple(sorted({*recorded, now} - {0}))
    looks = sorted({*recorded, now}) if recorded else []
    pending = any(counts[kind] for counts in (arm.counts, base.counts) for kind in PENDING)
    early = pending and any(n < max(len(arm.outcomes), len(base.outcomes)) for n in looks)
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

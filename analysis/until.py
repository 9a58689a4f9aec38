"""When a comparison is decided while seeds are still being added, so that all looks together err at most at alpha.

A variant is decided against the baseline when one of these holds, with m comparisons in all (those of every task):

    better, worse   its p over all planned looks is at most alpha/m
    equivalent      a margin is declared and the p of the two one-sided tests, over these looks, is at most alpha/m
    unstable        one of the two arms lost all its seeds, 3 or more

The looks are planned: one after each block, up to the most seeds. Where that was changed on the way, the p is the
anytime-valid one. Bonferroni's bound implies Holm's correction, so the verdict of the final report is the one that
stopped the variant.
"""

from pathlib import Path
from typing import NamedTuple

from analysis.load import load_study
from analysis.results import Against, Comparison, VariantResult
from analysis.statistics.verdict import Verdict
from analysis.study import StudyError
from analysis.task_sets import compare_tasks
from analysis.wording import effect_text


class Decision(NamedTuple):
    """How one variant stands against its baseline, named by its cell too.

    `why` is its verdict once it is decided, else empty; `text` is for people.
    """

    cell: str
    baseline: str
    label: str
    why: str
    text: str


class Standing(NamedTuple):
    """How all variants stand; `problem` says why nothing can be compared, and ends the adding of seeds."""

    decisions: tuple[Decision, ...]
    problem: str = ""


def decisions(study: Path | str, sweep: str) -> Standing:
    """Judge every variant of a sweep in progress by the question that its plan declares."""
    try:
        found = compare_tasks(load_study(study, sweep))
    except StudyError as error:
        return Standing((), str(error))
    rows = [(comparison, *row) for comparison in found.comparisons.values() for row in comparison.others]
    return Standing(tuple(_decision(*row) for row in rows))


def _decision(comparison: Comparison, result: VariantResult, against: Against) -> Decision:
    verdict = why(comparison, against)
    judged = against.judgement
    state = verdict or "undecided" + (f" ({judged.qualifier})" if judged.verdict is Verdict.unstable else "")
    part = comparison.study.part
    label = f"{part.task}, {result.variant.label}" if part else result.variant.label
    text = f"{label}: {state}; {effect_text(comparison, against)}"
    return Decision(result.variant.cell, comparison.question.baseline.cell, label, verdict, text)


def why(comparison: Comparison, against: Against) -> str:
    """The verdict that decides this comparison for good, or empty while it is open."""
    judged, outcomes, d = against.judgement, against.outcomes, against.difference
    alpha = comparison.question.alpha / comparison.family
    if judged.verdict is Verdict.unstable and not (outcomes.variant_ok and outcomes.baseline_ok):
        return f"{judged.verdict} ({judged.qualifier})"
    if judged.verdict in (Verdict.better, Verdict.worse) and d.p is not None and d.p <= alpha:
        return str(judged.verdict)
    margin = comparison.question.margin
    p = None if margin is None else d.equivalence_p(margin)
    return str(judged.verdict) if judged.verdict is Verdict.equivalent and p is not None and p <= alpha else ""

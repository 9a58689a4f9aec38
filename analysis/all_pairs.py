"""Every pair of variants, on request: differences, intervals and wins, Holm-corrected over all pairs. No verdicts.

Verdicts are on the comparisons with the baseline, which were declared beforehand; see `analysis.verdicts`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from analysis import formatting as fmt
from analysis.captions import marked, tests_in_words
from analysis.comparison_table import delta_text
from analysis.evidence import contrast
from analysis.question import Question
from analysis.results import Comparison
from analysis.statistics.multiple import holm
from analysis.statistics.paired import Difference
from analysis.study import Variant
from analysis.tables import Cell, Column, Table


@dataclass(frozen=True)
class Pair:
    """`variant` minus `reference`. `p_holm` is corrected over all pairs; `looks` as in `Against`."""

    variant: Variant
    reference: Variant
    difference: Difference
    looks: tuple[int, ...]
    p_holm: float | None = None


def all_pairs(comparison: Comparison) -> list[Pair]:
    """Every pair once, the baseline as the reference of all others, else the one that comes first in the plan."""
    arms = [comparison.baseline.arm, *(result.arm for result, _ in comparison.others)]
    found = []
    for reference, arm in combinations(arms, 2):
        one = contrast(comparison.study, comparison.question, arm, reference)
        found.append(Pair(arm.variant, reference.variant, one.difference, one.looks))
    adjusted = holm([pair.difference.p for pair in found])
    return [replace(pair, p_holm=p) for pair, p in zip(found, adjusted, strict=True)]


def all_pairs_table(comparison: Comparison) -> Table:
    """The pairs as a table; without rows for a single variant."""
    pairs, scale = all_pairs(comparison), comparison.question.scale
    columns = (
        Column("variant"),
        Column("reference"),
        Column(f"{scale.difference_words} [95 % CI]", "right"),
        *(Column(title, "right") for title in ("n", "wins", "p", "p (Holm)")),
    )
    rows = [_row(pair, comparison.question) for pair in pairs]
    return Table("all_pairs", columns, rows, marked(comparison.study, _caption(comparison, pairs)))


def _row(pair: Pair, question: Question) -> tuple[Cell, ...]:
    d = pair.difference
    interval = list(d.interval) if d.interval else None
    return (
        Cell(pair.variant.label, {"label": pair.variant.label}),
        Cell(pair.reference.label, {"reference": pair.reference.label}),
        Cell(delta_text(d, question.scale, question.margin), {"delta": d.mean, "delta_ci": interval}),
        Cell(str(d.n), {"n": d.n, "paired": d.paired}),
        Cell(fmt.DASH if d.wins is None else f"{fmt.count(d.wins)}/{d.n}", {"wins": d.wins}),
        Cell(fmt.p_value(d.p, question.alpha), {"p": d.p}),
        Cell(fmt.p_value(pair.p_holm, question.alpha), {"p_holm": pair.p_holm}),
    )


def _caption(comparison: Comparison, pairs: Sequence[Pair]) -> str:
    question = comparison.question
    paired = all(pair.difference.paired for pair in pairs)
    how = "paired by seed, n pairs" if paired else "paired by seed where seeds are shared, else Welch, n runs per arm"
    method = tests_in_words(pair.difference for pair in pairs)
    return (
        f"Every pair of variants on {question.label} ({question.rule}): the variant against the "
        f"reference, {how}; intervals: {method}, 95 %; p Holm-corrected over {len(pairs)} pairs. Verdicts are on the "
        "comparisons with the baseline only."
    )

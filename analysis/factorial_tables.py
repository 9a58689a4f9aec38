"""The factorial analysis of a study as tables and sentences, or one sentence that says why there is none.

Only for studies in which two or more factors vary. The statistics are in `analysis.statistics.factorial`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analysis import formatting as fmt
from analysis.captions import marked
from analysis.crossing import crossing
from analysis.question import Question
from analysis.results import Comparison
from analysis.scale import Scale
from analysis.statistics.factorial import Contrast, Design, Factorial, Term, analyse, complete_design
from analysis.statistics.paired import Difference
from analysis.streams import stream_factors
from analysis.tables import Cell, Column, Table

TERM_COLUMNS = (
    Column("term"),
    Column("df", "right"),
    Column("F", "right"),
    Column("p", "right"),
    Column("partial ω²", "right"),
    Column("share of sum of squares", "right"),
)

ONE_LOOK = "p for a single look at the data."


@dataclass(frozen=True)
class FactorialReport:
    """What a report shows: two tables and a sentence per factor, or no table and why, or nothing at all."""

    tables: tuple[Table, ...] = ()
    sentences: tuple[str, ...] = ()


def factorial_report(comparison: Comparison) -> FactorialReport:
    """Analyse a comparison in which two or more factors vary; empty for fewer, and when one is a random stream.

    The levels of a stream are a sample, not a choice: see `analysis.variance`. Empty too for some of a study's variants
    only, such as two that are compared: nothing is then said of the study's grid.
    """
    grid, partial = crossing(comparison), len(comparison.results) < len(comparison.study.variants)
    if len(grid.factors) < 2 or partial or stream_factors(comparison.study):
        return FactorialReport()
    if not comparison.study.shared_seeds:
        return FactorialReport(sentences=("No factorial analysis: equal seeds of two variants share nothing.",))
    lower, alpha = comparison.question.lower_is_better, comparison.question.alpha
    try:
        design = complete_design(grid.factors, {levels: one.arm.values for levels, one in grid.results.items()})
        found = analyse(design, lower_is_better=lower, alpha=alpha)
    except ValueError as error:
        return FactorialReport(sentences=(f"No factorial analysis: {error}.",))
    tables = (_terms_table(comparison, found), _contrasts_table(comparison, found))
    return FactorialReport(tables, (*_sentences(found, alpha), *_looked(comparison)))


def factorial_data(found: FactorialReport) -> dict[str, Any]:
    """The same for scripts, unrounded: sentences, and the rows of each table when there are tables."""
    return {"sentences": list(found.sentences), **{table.name: table.records() for table in found.tables}}


def _terms_table(comparison: Comparison, found: Factorial) -> Table:
    caption = (
        f"Analysis of variance of {comparison.question.label}, least squares with the seed as a fixed block, type II; "
        f"{_extent(found.design)}. {ONE_LOOK}"
    )
    rows = [_term_row(one, comparison.question.alpha) for one in found.terms]
    return Table("factorial", TERM_COLUMNS, rows, marked(comparison.study, caption))


def _extent(design: Design) -> str:
    cells = design.values.size // len(design.seeds)
    return f"{cells} cells with {len(design.seeds)} seeds each (seeds {fmt.seed_list(design.seeds)})"


def _looked(comparison: Comparison) -> Iterable[str]:
    """The warning of a study that was looked at several times, or before its planned seeds had ended."""
    looks = sorted({n for _, against in comparison.others for n in against.looks})
    if looks:
        seen = ", ".join(map(str, looks))
        yield f"Exploratory: these p are for a single look, and the study was looked at {seen} seeds."


def _term_row(term: Term, alpha: float) -> tuple[Cell, ...]:
    f = fmt.DASH if term.f is None else fmt.number(term.f, 2)
    omega = fmt.DASH if term.omega is None else fmt.number(term.omega, 2, apart=(1.0,))
    return (
        Cell(term.name, {"term": term.name}),
        Cell(str(term.df), {"df": term.df}),
        Cell(f, {"f": term.f}),
        Cell(fmt.DASH if term.p is None else fmt.p_value(term.p, alpha), {"p": term.p}),
        Cell(omega, {"partial_omega_squared": term.omega}),
        Cell(f"{fmt.percent(term.share, 1)} %", {"share": term.share, "sum_squares": term.sum_squares}),
    )


def _contrasts_table(comparison: Comparison, found: Factorial) -> Table:
    scale, family = comparison.question.scale, len(found.contrasts)
    rows = [_contrast_row(one, comparison.question) for one in found.contrasts]
    caption = (
        f"Marginal means of {comparison.question.label} compared by seed with each factor's first level; paired t, "
        f"p Holm-corrected over {family} contrasts. {ONE_LOOK}"
    )
    if found.interaction is not None:
        rows.append(_interaction_row(found.design, found.interaction, comparison.question))
        caption += " Last row: the difference of differences by seed, outside that correction."
    return Table("contrasts", _contrast_columns(scale), rows, marked(comparison.study, caption))


def _contrast_columns(scale: Scale) -> tuple[Column, ...]:
    names = tuple(Column(title) for title in ("factor", "level", "reference"))
    numbers = (f"{scale.difference_words} [95 % CI]", "pairs", "p", "p (Holm)")
    return (*names, *(Column(title, "right") for title in numbers))


def _contrast_row(one: Contrast, question: Question) -> tuple[Cell, ...]:
    adjusted = Cell(fmt.p_value(one.p_holm, question.alpha), {"p_holm": one.p_holm})
    return (*_names(one.factor, one.level, one.reference), *_difference_cells(one.difference, question), adjusted)


def _interaction_row(design: Design, difference: Difference, question: Question) -> tuple[Cell, ...]:
    first, second = (", ".join(levels[place] for levels in design.levels) for place in (0, 1))
    names = _names(" × ".join(design.factors), second, first)
    return (*names, *_difference_cells(difference, question), Cell(fmt.DASH, {"p_holm": None}))


def _names(factor: str, level: str, reference: str) -> tuple[Cell, ...]:
    named = {"factor": factor, "level": level, "reference": reference}
    return tuple(Cell(text, {name: text}) for name, text in named.items())


def _difference_cells(d: Difference, question: Question) -> tuple[Cell, ...]:
    assert d.mean is not None, "a complete design has a pair for every seed"
    middle, bounds = question.scale.contrast(d.mean, d.interval, d.sd, question.margin)
    values: dict[str, Any] = {"delta": d.mean, "delta_ci": list(d.interval) if d.interval else None}
    text = f"{middle} {bounds or '[n/a]'}"
    return Cell(text, values), Cell(str(d.n), {"pairs": d.n}), Cell(fmt.p_value(d.p, question.alpha), {"p": d.p})


def _sentences(found: Factorial, alpha: float) -> Iterable[str]:
    """One per factor, on its main effect, and one for every interaction that is significant."""
    residual = next(term for term in found.terms if term.f is None)
    for term in found.terms:
        numbers = _numbers(term, residual, alpha)
        if len(term.factors) == 1:
            yield f"{term.name}: {_main_effect(found, term, numbers, alpha)}"
        elif term.factors and _significant(term, alpha):
            yield f"{term.name}: the effect of one depends on the other ({numbers})."


def _significant(term: Term, alpha: float) -> bool:
    return term.p is not None and term.p < alpha


def _main_effect(found: Factorial, term: Term, numbers: str, alpha: float) -> str:
    if (obstacle := found.withheld.get(term.name)) is not None:
        return (
            f"no main effect is claimed, because the interaction {obstacle.name} is significant "
            f"({fmt.p_phrase(obstacle.p or 0.0, alpha)}) and levels change places over it: compare cells instead."
        )
    if not _significant(term, alpha):
        return f"inconclusive ({numbers})."
    own = [one.p_holm for one in found.contrasts if one.factor == term.name]
    clear = any(p is not None and p < alpha for p in own)
    rest = "" if clear else "; no contrast with the first level is significant after Holm's correction"
    return f"the levels differ on average ({numbers}){rest}."


def _numbers(term: Term, residual: Term, alpha: float) -> str:
    """The test of a term: F(1, 12) = 8.10, p = .015, partial ω² = 0.31."""
    if term.f is None or term.p is None:
        return ""
    test = f"F({term.df}, {residual.df}) = {fmt.number(term.f, 2)}, {fmt.p_phrase(term.p, alpha)}"
    return f"{test}, partial ω² = {fmt.number(term.omega, 2, apart=(1.0,))}"

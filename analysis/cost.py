"""What a study cost: time, tokens and floating-point operations, per variant and per comparison that was decided.

    FLOPs = 6 N D

with N the parameters (embeddings included) and D the tokens trained on: two operations per parameter and token forward,
four backward (Kaplan et al. 2020, arXiv:2001.08361, section 2.1). The products of attention itself and evaluation are
not in it. Every run with a record counts, whatever became of it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ablate.records import RunRecord
from analysis import formatting as fmt
from analysis.captions import marked
from analysis.results import Against, Comparison, VariantResult
from analysis.statistics.verdict import Verdict
from analysis.study import Variant
from analysis.tables import Cell, Column, Table
from analysis.wording import plural

FLOPS_PER_PARAMETER_AND_TOKEN = 6

DECIDED = (Verdict.better, Verdict.worse, Verdict.equivalent)
"""Verdicts that answer the question that was asked."""

METHOD = (
    "FLOPs: 6 × parameters (embeddings included) × tokens, forward and backward, without the products of attention "
    "itself and without evaluation (Kaplan et al. 2020). Seconds hold evaluation. Runs that failed or diverged are "
    "included."
)


class Cost(NamedTuple):
    """What some runs cost together; parameters of the largest model among them, time in seconds."""

    runs: int
    parameters: int
    tokens: int
    seconds: float
    flops: float


def cost_of(records: Iterable[RunRecord]) -> Cost:
    """The cost of these runs together."""
    found = list(records)
    return Cost(
        runs=len(found),
        parameters=max((record.parameters for record in found), default=0),
        tokens=sum(record.tokens for record in found),
        seconds=sum(record.seconds for record in found),
        flops=float(sum(FLOPS_PER_PARAMETER_AND_TOKEN * record.parameters * record.tokens for record in found)),
    )


def cost_tables(comparison: Comparison) -> tuple[Table, ...]:
    """Cost by variant, and by decided comparison where there is one; nothing when no time was recorded."""
    if not any(record.seconds for record in comparison.study.records):
        return ()
    decided = _decided_table(comparison)
    return (_variants_table(comparison), *([decided] if decided.rows else []))


def _decided_sentence(comparison: Comparison) -> str:
    """How many comparisons are decided and what one costs: all runs of the study, divided by their number."""
    n, of = len(_decided(comparison)), len(comparison.others)
    total = cost_of(comparison.study.records)
    if not of:
        return ""
    if not n:
        return f"None of {plural(of, 'comparison')} is decided (better, worse or equivalent) so far."
    each = f"{fmt.duration(total.seconds / n)} and {fmt.scientific(total.flops / n)} FLOPs"
    return f"{n} of {plural(of, 'comparison')} decided (better, worse or equivalent), at {each} of this study for each."


def _variants_table(comparison: Comparison) -> Table:
    columns = (
        Column("variant"),
        Column("runs", "right"),
        Column("parameters", "right"),
        Column("tokens", "right"),
        Column("seconds per run", "right"),
        Column("tokens/s", "right"),
        Column("seconds", "right"),
        Column("FLOPs", "right"),
    )
    study = comparison.study
    rows = [
        _row(result.variant.label, cost_of(_records(comparison, [result.variant]))) for result in comparison.results
    ]
    if len(rows) > 1:
        rows.append(_row("all", cost_of(study.records)))
    sentences = f"Cost of every run that was started. {METHOD} {_decided_sentence(comparison)}"
    return Table("cost", columns, rows, marked(study, sentences.strip()))


def _row(label: str, cost: Cost) -> tuple[Cell, ...]:
    per_run = cost.seconds / cost.runs if cost.runs else None
    speed = cost.tokens / cost.seconds if cost.seconds else None
    return (
        Cell(label, {"label": label}),
        Cell(str(cost.runs), {"runs": cost.runs}),
        Cell(f"{cost.parameters:,}", {"parameters": cost.parameters}),
        Cell(f"{cost.tokens:,}", {"tokens": cost.tokens}),
        Cell(_digits(per_run), {"seconds_per_run": per_run}),
        Cell(_digits(speed), {"tokens_per_second": speed}),
        *_time_and_flops(cost),
    )


def _time_and_flops(cost: Cost) -> tuple[Cell, Cell]:
    return Cell(_digits(cost.seconds), {"seconds": cost.seconds}), Cell(
        fmt.scientific(cost.flops), {"flops": cost.flops}
    )


def _decided_table(comparison: Comparison) -> Table:
    columns = (
        Column("comparison"),
        Column("verdict"),
        Column("runs", "right"),
        Column("seconds", "right"),
        Column("FLOPs", "right"),
    )
    rows = [_decided_row(comparison, result, against) for result, against in _decided(comparison)]
    text = "Cost of both arms of each decided comparison; the baseline's runs are in every row."
    return Table("cost_decided", columns, rows, marked(comparison.study, text))


def _decided(comparison: Comparison) -> list[tuple[VariantResult, Against]]:
    return [pair for pair in comparison.others if pair[1].judgement.verdict in DECIDED]


def _decided_row(comparison: Comparison, result: VariantResult, against: Against) -> tuple[Cell, ...]:
    baseline = comparison.question.baseline
    cost = cost_of(_records(comparison, [result.variant, baseline]))
    verdict = str(against.judgement.verdict)
    return (
        Cell(f"{result.variant.label} against {baseline.label}", {"label": result.variant.label}),
        Cell(verdict, {"verdict": verdict}),
        Cell(str(cost.runs), {"runs": cost.runs}),
        *_time_and_flops(cost),
    )


def _records(comparison: Comparison, variants: Sequence[Variant]) -> list[RunRecord]:
    return [run.record for variant in variants for run in comparison.study.of(variant) if run.record is not None]


def _digits(value: float | None) -> str:
    """Three significant digits, thousands apart; n/a for None."""
    if value is None:
        return fmt.NOT_AVAILABLE
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

"""Scores at other lengths than the trained one, and along the positions of a sequence, as tables.

Final metrics are named `eval/loss@128` for sequences of 128 positions and `eval/accuracy@128[33-64]` for the targets at
positions 33 to 64 of these. The figure is `analysis.plots.length_generalisation`.
"""

import re
from collections.abc import Iterable, Mapping

from analysis import formatting as fmt
from analysis.captions import marked
from analysis.results import Comparison
from analysis.statistics.intervals import summarise
from analysis.study import Study, Variant
from analysis.tables import Cell, Column, Table

TRAINED = "task.seq_len"
"""The config key of the length that runs are trained on, and that a metric without a length is measured at."""

BY_POSITION = "eval/accuracy"
"""The metric that runs tell apart by position."""


def at_lengths(names: Iterable[str], metric: str) -> dict[int, str]:
    """This metric at explicit lengths among the names, by length."""
    pattern = re.compile(rf"{re.escape(metric)}@(\d+)")
    matches = ((pattern.fullmatch(one), one) for one in names)
    return dict(sorted((int(match[1]), one) for match, one in matches if match))


def trained_length(study: Study, variant: Variant) -> int | None:
    """The length that a variant was trained on, as far as configs say."""
    length = variant.factors.get(TRAINED, study.config.get(TRAINED))
    return length if isinstance(length, int) else None


def length_tables(comparison: Comparison) -> tuple[Table, ...]:
    """The metric by length and accuracy by position; each only where runs were evaluated so."""
    return tuple(table for table in (_lengths(comparison), _positions(comparison)) if len(table.columns) > 1)


def _lengths(comparison: Comparison) -> Table:
    study, metric = comparison.study, comparison.question.metric.partition("@")[0]
    found = at_lengths(study.metrics, metric)
    columns = {f"{length}": name for length, name in found.items()}
    if found:
        columns = {"trained length": metric} | columns
    what = f"Final {metric} by the length of the evaluated sequences, mean ± SD of the finished runs."
    caption = what + _trained(comparison)
    return Table("lengths", _columns(columns), _rows(comparison, columns), marked(study, caption))


def _trained(comparison: Comparison) -> str:
    lengths = {trained_length(comparison.study, result.variant) for result in comparison.results} - {None}
    return f" Trained on {' or '.join(map(str, sorted(lengths, key=str)))} positions." if lengths else ""


def _positions(comparison: Comparison) -> Table:
    study = comparison.study
    pattern = re.compile(rf"{re.escape(BY_POSITION)}@(\d+)\[(\d+)-(\d+)\]")
    matches = [(match, name) for name in study.metrics if (match := pattern.fullmatch(name))]
    ordered = sorted(matches, key=lambda one: tuple(map(int, one[0].groups())))
    columns = {f"{match[2]}–{match[3]} of {match[1]}": name for match, name in ordered}
    caption = (
        f"Final {BY_POSITION} (teacher-forced) on the targets at these positions of sequences of a length: mean ± SD."
    )
    return Table("positions", _columns(columns), _rows(comparison, columns), marked(study, caption))


def _columns(columns: Mapping[str, str]) -> tuple[Column, ...]:
    return (Column("variant"), *(Column(title, "right") for title in columns))


def _rows(comparison: Comparison, columns: Mapping[str, str]) -> list[tuple[Cell, ...]]:
    return [
        (
            Cell(result.variant.label, {"label": result.variant.label}),
            *(_cell(comparison.study, result.variant, name) for name in columns.values()),
        )
        for result in comparison.results
    ]


def _cell(study: Study, variant: Variant, metric: str) -> Cell:
    """Mean ± SD over the runs that finished with a value, and their number where runs that finished lack one."""
    outcomes = [run.outcome(metric) for run in study.of(variant)]
    found = summarise([one.value for one in outcomes if one.value is not None])
    places = fmt.decimals(found.sd, found.mean)
    text = fmt.number(found.mean, places)
    text += f" ± {fmt.deviation(found.sd, found.mean, places)}" if found.sd is not None else ""
    text += f" (n = {found.n})" if 0 < found.n < len(outcomes) else ""
    return Cell(text, {f"{metric}": found.mean, f"{metric} sd": found.sd, f"{metric} n": found.n})

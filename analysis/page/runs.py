"""Every run of a study on the page, and where the runs behind a number are.

Anchors are made from a variant's place in the study and the seed, so no label has to be fit for an address.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from ablate.jsonfiles import canonical_json
from analysis import formatting as fmt
from analysis.page.tables import Links
from analysis.results import Comparison
from analysis.study import LoadedRun, Study, Variant
from analysis.tables import Cell, Column, Table

COLUMNS = (
    Column("seed", "right"),
    Column("status"),
    Column("value", "right"),
    Column("steps", "right"),
    Column("seconds", "right"),
    Column("commit"),
    Column("source"),
    Column("folder"),
)


@dataclass(frozen=True)
class Anchors:
    """Where the runs of a study stand on the page: by label, and by label and seed."""

    variants: Mapping[str, str]
    runs: Mapping[tuple[str, int], str]


class RunGroup(NamedTuple):
    """The runs of one variant: what it changes, how many have a value, and the table with its links and row ids."""

    anchor: str
    label: str
    change: str
    ok: str
    table: Table
    links: Links
    rows: Sequence[Mapping[str, str]]


def anchors(study: Study, prefix: str = "") -> Anchors:
    """The anchors of a study; `prefix` tells the sections of a page apart."""
    orders = {variant.label: order for order, variant in enumerate(study.variants)}
    return Anchors(
        {label: f"{prefix}runs-{order}" for label, order in orders.items()},
        {(run.variant.label, run.seed): f"{prefix}run-{orders[run.variant.label]}-{run.seed}" for run in study.loaded},
    )


def run_groups(comparison: Comparison, places: Anchors, *, linked: bool) -> list[RunGroup]:
    """One group per variant; folders are links relative to the study's report folder, or text when not `linked`."""
    return [_group(comparison, variant, places, linked=linked) for variant in comparison.study.variants]


def _group(comparison: Comparison, variant: Variant, places: Anchors, *, linked: bool) -> RunGroup:
    study, metric = comparison.study, comparison.question.metric
    runs = study.of(variant)
    folders = {index: folder for index, run in enumerate(runs) if (folder := run.place)}
    links = {(index, len(COLUMNS) - 1): f"../{quote(folder, safe='/=')}/" for index, folder in folders.items()}
    return RunGroup(
        places.variants[variant.label],
        variant.label,
        change(study, variant, comparison.question.baseline),
        f"{sum(run.outcome(metric).kind == 'ok' for run in runs)}/{len(runs)}",
        Table("runs", COLUMNS, [_row(run, metric) for run in runs]),
        links if linked else {},
        [{"id": places.runs[variant.label, run.seed]} for run in runs],
    )


def change(study: Study, variant: Variant, baseline: Variant) -> str:
    """The factors in which a variant differs from the baseline, a dash for one that it lacks."""
    if variant is baseline:
        return "baseline"
    texts = [
        f"{name}={_factor(variant, name)}"
        for name in study.factor_names
        if _compared(variant, name) != _compared(baseline, name)
    ]
    return ", ".join(texts)


def _factor(variant: Variant, name: str) -> str:
    return fmt.factor_value(variant.factors[name]) if name in variant.factors else fmt.DASH


def _compared(variant: Variant, name: str) -> str | None:
    return canonical_json(variant.factors[name]) if name in variant.factors else None


def _row(run: LoadedRun, metric: str) -> tuple[Cell, ...]:
    outcome, record = run.outcome(metric), run.record
    commit, source = _commit(run), record.source[:8] if record else ""
    return (
        Cell(str(run.seed), {"seed": run.seed}),
        Cell(outcome.kind),
        Cell(fmt.DASH if outcome.value is None else f"{outcome.value:.6g}", {"value": outcome.value}),
        Cell(
            f"{record.steps_done}/{record.steps_planned}" if record else fmt.DASH,
            {"steps": record and record.steps_done},
        ),
        Cell(f"{record.seconds:.3g}" if record else fmt.DASH, {"seconds": record and record.seconds}),
        Cell(commit or fmt.DASH),
        Cell(source or fmt.DASH),
        Cell(run.place or fmt.DASH),
    )


def _commit(run: LoadedRun) -> str:
    """The short commit, with a plus when the checkout held changes beside it."""
    git = run.record.git if run.record else {}
    commit = str(git.get("commit") or "")[:7]
    return f"{commit}+" if commit and git.get("dirty") else commit


def links_to_runs(table: Table, places: Anchors) -> Links:
    """Each number of a row leads to the runs of the variant that the row names, or to one run when it has a seed."""
    found: dict[tuple[int, int], str] = {}
    for index, row in enumerate(table.rows):
        named = {key: value for cell in row[:2] for key, value in cell.values.items()}
        label = str(named.get("label"))
        anchor = places.runs.get((label, named["seed"])) if "seed" in named else places.variants.get(label)
        shown = [j for j, column in enumerate(table.columns) if column.align == "right" and row[j].text != fmt.DASH]
        found |= {(index, j): f"#{anchor}" for j in shown if anchor}
    return found


def links_of_matrix(study: Study, places: Anchors) -> Links:
    """The completeness matrix: each sign leads to its run."""
    return {
        (row, column): f"#{places.runs[variant.label, seed]}"
        for row, variant in enumerate(study.variants)
        for column, seed in enumerate(study.seeds, start=1)
        if (variant.label, seed) in places.runs
    }

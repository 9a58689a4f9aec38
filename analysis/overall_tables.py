"""What goes over several tasks, as tables and as data for scripts: verdicts side by side, the aggregate.

The numbers come from `analysis.task_sets` and `analysis.aggregate`.
"""

from typing import Any

from analysis import formatting as fmt
from analysis.aggregate import Aggregate, VariantScores, profile
from analysis.captions import family_text, marked
from analysis.results import Comparison
from analysis.statistics.aggregate import Estimate
from analysis.tables import Cell, Column, Table
from analysis.task_sets import TaskSet
from analysis.wording import plural

TAUS = (0.0, 0.25, 0.5, 0.75, 0.9)
"""The scores at which the table of the performance profile is cut; the figure has all of them."""

METHOD = "95 %, delete-one-seed jackknife with Student t"

AGGREGATE_COLUMNS = (
    Column("variant"),
    Column("runs (seeds)", "right"),
    Column("IQM score [95 % CI]", "right"),
    Column("Δ vs baseline [95 % CI]", "right"),
    Column("wins [95 % CI]", "right"),
)


def overall_tables(task_set: TaskSet) -> dict[str, Table]:
    """The tables over all tasks by name; empty for a study of one task, and of verdicts only without an aggregate."""
    found = task_set.aggregate
    scores = (_scores_table(task_set, found), _profile_table(task_set, found)) if found is not None else ()
    tables = (verdicts_table(task_set), *scores) if task_set.several else ()
    return {table.name: table for table in tables}


def verdicts_table(task_set: TaskSet) -> Table:
    """Variant by task: the verdict, a dash where the task has no such variant."""
    columns = (Column("variant"), *map(Column, task_set.comparisons))
    rows = [
        (Cell(label, {"label": label}), *(_verdict(task, one, label) for task, one in task_set.comparisons.items()))
        for label in task_set.labels
    ]
    corrected = f"; p Holm-corrected over {family_text(task_set.first)}" if task_set.first.family > 1 else ""
    caption = f"Verdict on each task against its own baseline{corrected}."
    return Table("verdicts", columns, rows, marked(task_set.study, caption))


def _verdict(task: str, comparison: Comparison, label: str) -> Cell:
    found = {result.variant.label: result for result in comparison.results}.get(label)
    if found is None:
        return Cell(fmt.DASH, {task: None})
    verdict = "baseline" if found.against is None else str(found.against.judgement.verdict)
    return Cell(verdict, {task: verdict})


def _scores_table(task_set: TaskSet, found: Aggregate) -> Table:
    rows = [_row(one) for one in found.variants]
    return Table("aggregate", AGGREGATE_COLUMNS, rows, marked(task_set.study, _caption(task_set, found)))


def _row(one: VariantScores) -> tuple[Cell, ...]:
    failed = f", {one.n_failed} failed" if one.n_failed else ""
    return (
        Cell(one.label, {"label": one.label}),
        Cell(f"{one.n_runs} ({one.iqm.n}){failed}", {"runs": one.n_runs, "n_failed": one.n_failed, "seeds": one.iqm.n}),
        Cell(estimate_text(one.iqm), {"iqm": one.iqm.value, "iqm_ci": ends(one.iqm)}),
        _against_cell("delta", one.difference, sign=True),
        _against_cell("wins", one.wins),
    )


def _against_cell(name: str, estimate: Estimate | None, *, sign: bool = False) -> Cell:
    """A number against the baseline; a dash for the baseline itself, and without shared seeds."""
    if estimate is None:
        return Cell(fmt.DASH, {name: None, f"{name}_ci": None})
    return Cell(estimate_text(estimate, sign=sign), {name: estimate.value, f"{name}_ci": ends(estimate)})


def estimate_text(estimate: Estimate, *, sign: bool = False) -> str:
    """A score or share with its interval: 0.62 [0.51, 0.73]."""
    bounds = estimate.interval
    places = fmt.decimals((bounds.high - bounds.low) / 2 if bounds else 0.1)
    middle, shown = fmt.estimate(estimate.value, bounds, places, sign=sign, apart=(0.5, 1.0))
    return f"{middle} {shown or f'[{fmt.NOT_AVAILABLE}]'}"


def ends(estimate: Estimate) -> list[float] | None:
    """Both ends of the interval for scripts; None without one."""
    return list(estimate.interval) if estimate.interval is not None else None


def _caption(task_set: TaskSet, found: Aggregate) -> str:
    question = task_set.first.question
    failed, runs = sum(one.n_failed for one in found.variants), sum(one.n_runs for one in found.variants)
    return (
        f"Over {plural(len(found.tasks), 'task')} ({', '.join(found.tasks)}), by the final {question.label}, "
        f"{question.direction} is better; baseline {found.baseline}. The score of a run is 0 for the worst and 1 for "
        "the best finished run of its task in this study; one that failed or diverged scores 0 "
        f"({failed} of {runs} runs). IQM: mean of the middle half of the scores of all runs and tasks. Δ and wins (the "
        "share of runs that score higher than the baseline's, ties half) are by seed within each task. Intervals: "
        f"{METHOD}, the best and worst run taken as given.{_looked(task_set)} There is no verdict on a score: verdicts "
        "are by task."
    )


def _looked(task_set: TaskSet) -> str:
    """The warning of a study that was looked at several times, or before its planned seeds had ended."""
    looks = sorted({n for one in task_set.comparisons.values() for _, against in one.others for n in against.looks})
    seen = ", ".join(map(str, looks))
    return f" Exploratory: they are for a single look, and the study was looked at {seen} seeds." if looks else ""


def _profile_table(task_set: TaskSet, found: Aggregate) -> Table:
    columns = (Column("variant"), *(Column(f"score > {tau:g}", "right") for tau in TAUS))
    rows = [
        (Cell(one.label, {"label": one.label}), *map(_share_cell, TAUS, profile(one, TAUS))) for one in found.variants
    ]
    caption = (
        f"Performance profile over {plural(len(found.tasks), 'task')}: the share of a variant's runs with a score "
        f"above a threshold. Pointwise intervals: {METHOD}; n/a where leaving out a seed never changes the share."
    )
    return Table("performance_profile", columns, rows, marked(task_set.study, caption))


def _share_cell(tau: float, estimate: Estimate) -> Cell:
    name = f"share_above_{tau:g}"
    return Cell(estimate_text(estimate), {name: estimate.value, f"{name}_ci": ends(estimate)})


def aggregate_data(task_set: TaskSet) -> dict[str, Any] | None:
    """The aggregate for scripts, unrounded, with the score of every run; None without one."""
    found = task_set.aggregate
    if found is None:
        return None
    tables = overall_tables(task_set)
    rows, shares = (tables[name].records() for name in ("aggregate", "performance_profile"))
    return {
        "tasks": list(found.tasks),
        "baseline": found.baseline,
        "caption": tables["aggregate"].caption,
        "variants": [
            row | {"profile": share, "scores": _scores(one)}
            for row, share, one in zip(rows, shares, found.variants, strict=True)
        ],
    }


def _scores(one: VariantScores) -> dict[str, dict[str, float]]:
    """Scores by task and seed, with keys that JSON can have."""
    return {task: {str(seed): score for seed, score in own.items()} for task, own in one.scores.items()}

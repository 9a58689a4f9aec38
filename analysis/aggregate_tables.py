"""The aggregate over several tasks as tables and as data for scripts. Its numbers come from `analysis.aggregate`."""

from typing import Any

from analysis import formatting as fmt
from analysis.aggregate import Aggregate, VariantScores, profile
from analysis.statistics.aggregate import Estimate
from analysis.tables import Cell, Column, Table
from analysis.task_sets import TaskSet
from analysis.wording import family_text, marked, plural

TAUS = (0.0, 0.25, 0.5, 0.75, 0.9)
"""The scores at which the table of the performance profile is cut; the figure has all of them."""

METHOD = "95 %, delete-one-seed jackknife with Student t"

AGGREGATE_COLUMNS = (
    Column("variant"),
    Column("runs", "right"),
    Column("IQM score [95 % CI]", "right"),
    Column("Δ vs baseline [95 % CI]", "right"),
    Column("verdicts by task"),
)


def aggregate_tables(task_set: TaskSet) -> dict[str, Table]:
    """The tables over all tasks by name; empty without an aggregate."""
    found = task_set.aggregate
    tables = (_scores_table(task_set, found), _profile_table(task_set, found)) if found is not None else ()
    return {table.name: table for table in tables}


def _scores_table(task_set: TaskSet, found: Aggregate) -> Table:
    rows = [_row(one, found.baseline) for one in found.variants]
    return Table("aggregate", AGGREGATE_COLUMNS, rows, marked(task_set.study, _caption(task_set, found)))


def _row(one: VariantScores, baseline: str) -> tuple[Cell, ...]:
    failed = f" ({one.n_failed} failed)" if one.n_failed else ""
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in one.verdicts.items())
    return (
        Cell(one.label, {"label": one.label}),
        Cell(f"{one.n_runs}{failed}", {"runs": one.n_runs, "n_failed": one.n_failed, "seeds": one.iqm.n}),
        Cell(estimate_text(one.iqm), {"iqm": one.iqm.value, "iqm_ci": ends(one.iqm)}),
        _difference_cell(one.difference),
        Cell("baseline" if one.label == baseline else verdicts, {"verdicts": dict(one.verdicts)}),
    )


def _difference_cell(estimate: Estimate | None) -> Cell:
    if estimate is None:
        return Cell(fmt.DASH, {"delta": None, "delta_ci": None})
    return Cell(estimate_text(estimate, sign=True), {"delta": estimate.value, "delta_ci": ends(estimate)})


def estimate_text(estimate: Estimate, *, sign: bool = False) -> str:
    """A score or share with its interval: 0.62 [0.51, 0.73]."""
    bounds = estimate.interval
    places = fmt.decimals((bounds.high - bounds.low) / 2 if bounds else 0.1)
    shown = fmt.interval(bounds, places, sign=sign) if bounds else f"[{fmt.NOT_AVAILABLE}]"
    return f"{fmt.number(estimate.value, places, sign=sign)} {shown}"


def ends(estimate: Estimate) -> list[float] | None:
    """Both ends of the interval for scripts; None without one."""
    return list(estimate.interval) if estimate.interval is not None else None


def _caption(task_set: TaskSet, found: Aggregate) -> str:
    question = task_set.first.question
    failed, runs = sum(one.n_failed for one in found.variants), sum(one.n_runs for one in found.variants)
    return (
        f"Over {plural(len(found.tasks), 'task')} ({', '.join(found.tasks)}), by the final {question.label}, "
        f"{question.direction} is better; baseline {found.baseline}. Score of a run: 0 for the worst and 1 for the best "
        f"finished run of its task in this study; a run that failed or diverged scores 0 ({failed} of {runs} runs). IQM: "
        "mean of the middle half of the scores of all runs and tasks. Differences on the runs that ended in both. Intervals: "
        f"{METHOD}, the best and worst run taken as given.{_looked(task_set)} Verdicts are those on single tasks, with p "
        f"Holm-corrected over {family_text(task_set.first)}; the aggregate has none."
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
        f"Performance profile over {plural(len(found.tasks), 'task')}: the share of a variant's runs that score above a "
        f"threshold. Pointwise intervals: {METHOD}; n/a where leaving out a seed never changes the share."
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
    tables = aggregate_tables(task_set)
    profiles = [{name: row[name] for name in row if name != "label"} for row in tables["performance_profile"].records()]
    scores = [
        {task: {str(seed): x for seed, x in own.items()} for task, own in v.scores.items()} for v in found.variants
    ]
    records = zip(tables["aggregate"].records(), profiles, scores, strict=True)
    return {
        "tasks": list(found.tasks),
        "baseline": found.baseline,
        "caption": tables["aggregate"].caption,
        "variants": [{**row, "profile": share, "scores": own} for row, share, own in records],
    }

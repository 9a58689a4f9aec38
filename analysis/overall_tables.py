"""What goes over several tasks, as tables and as data for scripts: verdicts side by side, the aggregate.

The numbers come from `analysis.task_sets` and `analysis.aggregate`.
"""

import math
from typing import Any

from analysis import formatting as fmt
from analysis.aggregate import Aggregate, VariantScores, profile
from analysis.captions import family_text, marked
from analysis.over_tasks import Ranked, Ranking, omnibus_text, sentences
from analysis.results import Comparison
from analysis.statistics.aggregate import Estimate
from analysis.tables import Cell, Column, Table
from analysis.task_sets import TaskSet
from analysis.wording import plural

TAUS, RELATIVE_TAUS = (0.0, 0.25, 0.5, 0.75, 0.9), (-2.0, -1.0, 0.0, 1.0, 2.0)
"""The scores at which the table of the performance profile is cut, with a declared reference and relative to the
baseline; the figure has all of them."""

METHOD = "95 %, delete-one-seed jackknife with Student t"

AGGREGATE_COLUMNS = (
    Column("variant"),
    Column("runs (seeds)", "right"),
    Column("IQM score [95 % CI]", "right"),
    Column("Δ vs baseline [95 % CI]", "right"),
    Column("wins [95 % CI]", "right"),
)


def overall_tables(task_set: TaskSet) -> dict[str, Table]:
    """The tables over all tasks by name; empty for a study of one task."""
    found = task_set.aggregate
    scores = (_scores_table(task_set, found), _profile_table(task_set, found)) if found is not None else ()
    ranks = (ranks_table(task_set, task_set.ranking),) if task_set.ranking is not None else ()
    tables = (verdicts_table(task_set), *ranks, *scores) if task_set.several else ()
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
    reference = found.reference
    chosen = " (chosen after the sweep was planned)" if reference is not None and reference.after else ""
    scale = (
        f"is {reference.text}{chosen}"
        if reference is not None
        else f"is its difference from the mean of {found.baseline} on its task, better counting up, in standard "
        f"deviations of {found.baseline}'s runs there (Glass's delta)"
    )
    return (
        f"Over {plural(len(found.tasks), 'task')} ({', '.join(found.tasks)}), by the final {question.label}, "
        f"{question.rule}; baseline {found.baseline}. The score of a run {scale}; it does not depend on "
        f"other variants. A run that failed or diverged ({failed} of {runs} runs) is above no score and loses; in a "
        "mean it counts as the worst finished run of its variant and the baseline, at most 0. IQM: mean of the middle "
        "half of the scores of all runs and tasks. Δ and wins (the share of runs that score higher than the "
        f"baseline's, ties half) are by seed within each task. Intervals: {METHOD}, the scale taken as given."
        f"{_looked(task_set)}"
    )


def _looked(task_set: TaskSet) -> str:
    """The warning of a study that was looked at several times, or before its planned seeds had ended."""
    looks = sorted({n for one in task_set.comparisons.values() for _, against in one.others for n in against.looks})
    seen = ", ".join(map(str, looks))
    return f" Exploratory: they are for a single look, and the study was looked at {seen} seeds." if looks else ""


def ranks_table(task_set: TaskSet, ranking: Ranking) -> Table:
    """The verdict over tasks by variant, with its mean rank."""
    columns = (
        Column("variant"),
        Column("mean rank", "right"),
        Column("tasks won : lost", "right"),
        Column("p (Holm)", "right"),
        Column("verdict over tasks"),
    )
    others = len(ranking.variants) - 1
    caption = (
        f"{omnibus_text(ranking)} By the rank of each variant's mean on each task ({', '.join(ranking.tasks)}), 1 "
        "being best and failed runs counting as the worst of their task; a task is the unit, not a seed. "
        f"Verdicts against {ranking.baseline}: exact p of the difference of mean ranks"
        f"{f', Holm-corrected over {others} comparisons' if others > 1 else ''}; mean ranks depend on which variants "
        "are ranked, tasks won and lost do not. Nemenyi's critical difference for any two variants is "
        f"{ranking.critical:.2f} (Demšar 2006).{_looked(task_set)}"
    )
    return Table("ranks", columns, [_rank_row(one) for one in ranking.variants], marked(task_set.study, caption))


def _rank_row(one: Ranked) -> tuple[Cell, ...]:
    compared = one.verdict is not None
    return (
        Cell(one.label, {"label": one.label}),
        Cell(fmt.number(one.mean_rank, 2), {"mean_rank": one.mean_rank}),
        Cell(
            f"{one.won} : {one.lost}" if compared else fmt.DASH,
            {"tasks_won": one.won, "tasks_lost": one.lost, "sign_p": one.sign_p},
        ),
        Cell(fmt.p_value(one.p_holm) if compared else fmt.DASH, {"p": one.p, "p_holm": one.p_holm}),
        Cell(str(one.verdict) if compared else "baseline", {"verdict": str(one.verdict) if compared else None}),
    )


def ranking_data(task_set: TaskSet) -> dict[str, Any] | None:
    """The verdict over tasks for scripts, unrounded; None without one."""
    found = task_set.ranking
    if found is None:
        return None
    return {
        "tasks": list(found.tasks),
        "baseline": found.baseline,
        "f": found.f if math.isfinite(found.f) else None,
        "p": found.p,
        "critical_difference": found.critical,
        "sentences": sentences(found),
        "variants": ranks_table(task_set, found).records(),
        "ranks": {
            task: dict(zip((one.label for one in found.variants), map(float, row), strict=True))
            for task, row in zip(found.tasks, found.ranks, strict=True)
        },
    }


def _profile_table(task_set: TaskSet, found: Aggregate) -> Table:
    taus = TAUS if found.reference is not None else RELATIVE_TAUS
    columns = (Column("variant"), *(Column(f"score > {tau:g}".replace("-", "−"), "right") for tau in taus))
    rows = [
        (Cell(one.label, {"label": one.label}), *map(_share_cell, taus, profile(one, taus))) for one in found.variants
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
        "scale": found.unit,
        "caption": tables["aggregate"].caption,
        "variants": [
            row | {"profile": share, "scores": _scores(one), "failed_count_as": one.floor}
            for row, share, one in zip(rows, shares, found.variants, strict=True)
        ],
    }


def _scores(one: VariantScores) -> dict[str, dict[str, float | None]]:
    """Scores by task and seed, with keys that JSON can have; None for a run that failed or diverged."""
    return {
        task: {str(seed): score if math.isfinite(score) else None for seed, score in own.items()}
        for task, own in one.scores.items()
    }

"""What a report is made of, computed once for all its files: a section per task, and what goes over all tasks.

How it is written as Markdown, HTML, JSON and files is elsewhere.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.all_pairs import all_pairs_table
from analysis.comparison_table import comparison_table, completeness, factors_table, failures_table
from analysis.cost import cost_tables
from analysis.factorial_tables import FactorialReport, factorial_report
from analysis.lengths import length_tables
from analysis.load import SEARCHED
from analysis.overall_tables import overall_tables
from analysis.plots.base import Drawn, Earlier, draw_aggregate, draw_all, draw_ranking
from analysis.results import Comparison
from analysis.search_parts import Part, search_parts
from analysis.searches import Searches
from analysis.steps import steps_table
from analysis.tables import Table
from analysis.task_sets import TaskSet
from analysis.variance import VarianceReport, variance_report


@dataclass(frozen=True)
class Section:
    """One task; `title` is its name. Its tables and figures lie under `folder`, which is "" for a study of one task."""

    title: str
    comparison: Comparison
    tables: Mapping[str, Table]
    drawn: Sequence[Drawn]
    factorial: FactorialReport
    variance: VarianceReport
    folder: str = ""


@dataclass(frozen=True)
class Report:
    """All of a report; `tables` and `drawn` are those over all tasks, `command` writes it again.

    `parts` are the study's searches and tunings.
    """

    task_set: TaskSet
    sections: Sequence[Section]
    tables: Mapping[str, Table]
    drawn: Sequence[Drawn]
    command: str
    parts: Sequence[Part] = ()

    @property
    def of_a_search(self) -> bool:
        """Whether the cells are trials of a search, which then is what the report is about."""
        return SEARCHED in self.task_set.study.remarks

    @property
    def title(self) -> str:
        """The study, its task where one of several was chosen, and the metric."""
        study, question = self.task_set.study, self.task_set.first.question
        task = f", {study.part.task}" if study.part else ""
        return f"{study.name}{task}: {question.metric}"


def report_of(
    task_set: TaskSet,
    command: str,
    before: Path | None = None,
    *,
    pairwise: bool = False,
    searches: Searches | None = None,
) -> Report:
    """Compute all tables and draw all figures, but for those that an earlier report in the folder `before` has.

    `pairwise` adds a table of every pair of variants; `searches` are those of the study's folder.
    """
    earlier = Earlier(before / "figures" if before else None, task_set.study.cache)
    folders = _folders(task_set.comparisons) if task_set.several else dict.fromkeys(task_set.comparisons, "")
    sections = [
        _section(task, one, folders[task], earlier, pairwise=pairwise) for task, one in task_set.comparisons.items()
    ]
    drawn = draw_aggregate(task_set.aggregate, earlier) if task_set.aggregate is not None else []
    drawn += draw_ranking(task_set.ranking, earlier) if task_set.ranking is not None else []
    parts = search_parts(searches or Searches(), earlier)
    earlier.close()
    return Report(task_set, sections, overall_tables(task_set), drawn, command, parts)


def _section(task: str, comparison: Comparison, folder: str, earlier: Earlier, *, pairwise: bool) -> Section:
    """A table is named after its folder too, so that labels in LaTeX are unique."""
    factorial, variance = factorial_report(comparison), variance_report(comparison)
    tables = report_tables(comparison, factorial, variance)
    tables += [all_pairs_table(comparison)] if pairwise else []
    found = {table.name: replace(table, name=f"{folder}{table.name}") for table in tables}
    return Section(task, comparison, found, draw_all(comparison, earlier, folder), factorial, variance, folder)


def report_tables(comparison: Comparison, factorial: FactorialReport, variance: VarianceReport) -> list[Table]:
    """The tables of one comparison."""
    study, steps = comparison.study, steps_table(comparison)
    return [
        comparison_table(comparison),
        *variance.tables,
        *([steps] if steps.rows else []),
        *length_tables(comparison),
        factors_table(study),
        completeness(comparison),
        failures_table(study, comparison.question.metric),
        *factorial.tables,
        *cost_tables(comparison),
    ]


def _folders(tasks: Iterable[str]) -> dict[str, str]:
    """A folder per task whose name any file system takes, with a number where two would be the same."""
    found: dict[str, str] = {}
    for task in tasks:
        plain = re.sub(r"[^\w.=-]+", "-", task).strip(".-") or "task"
        taken = {name.casefold() for name in found.values()}
        names = [f"{plain}/", *(f"{plain}-{i}/" for i in range(2, len(found) + 3))]
        found[task] = next(name for name in names if name.casefold() not in taken)
    return found

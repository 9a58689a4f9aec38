"""What the commands print: comparisons, verdicts, aggregate, what did not finish. Light enough to end every sweep."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from analysis.comparison_table import comparison_table, failures_table
from analysis.over_tasks import sentences
from analysis.overall_tables import overall_tables
from analysis.results import Comparison
from analysis.streams import only_streams
from analysis.study import Study
from analysis.tables import Table, to_terminal
from analysis.task_sets import TaskSet
from analysis.variance import variance_report
from analysis.wording import flag_lines, notes, verdict_sentences


def print_task_set(task_set: TaskSet, console: Console, *, failures: bool = True) -> None:
    """Print the comparison of every task, then, for several, the aggregate and what must be said of the tasks."""
    for task, comparison in task_set.comparisons.items():
        if task_set.several:
            console.print()
            console.rule(Text(f"task {task}"), align="left")
        print_comparison(comparison, console, failures=failures)
    if not task_set.several:
        return
    console.print()
    console.rule(Text("all tasks"), align="left")
    tables = overall_tables(task_set)
    for name in ("verdicts", "ranks", "aggregate"):
        if name in tables:
            print_table(tables[name], console)
    if task_set.ranking is not None:
        print_sentences(sentences(task_set.ranking), console)
    for remark in task_set.remarks:
        console.print(Text(f"note: {remark}", style="yellow"))


def print_table(table: Table, console: Console) -> None:
    """Print a table with its caption."""
    console.print(to_terminal(table, console.width))
    console.print(Text(table.caption, style="dim"))


def print_comparison(comparison: Comparison, console: Console, *, failures: bool = True) -> None:
    """Print the table with its caption, one sentence per variant, flags, failures (unless told not to) and notes.

    A study of random streams has no verdicts; the shares of variance stand in their place.
    """
    variance = variance_report(comparison)
    if not (variance.sentences and only_streams(comparison.study)):
        print_table(comparison_table(comparison), console)
        print_sentences(verdict_sentences(comparison), console)
    for shares in variance.tables:
        print_table(shares, console)
    print_sentences(variance.sentences, console)
    for line in flag_lines(comparison):
        console.print(Text(f"note: {line}", style="yellow"))
    if failures:
        print_failures(comparison.study, comparison.question.metric, console)
    for note in notes(comparison.study):
        console.print(Text(f"warning: {note}", style="yellow"))


def print_sentences(sentences: Iterable[str], console: Console) -> None:
    """Print each sentence as a paragraph."""
    for sentence in sentences:
        console.print(Text(f"\n{sentence}"))


def print_failures(study: Study, metric: str, console: Console) -> None:
    """Print the runs that have no value of the metric; nothing when there are none."""
    failures = failures_table(study, metric)
    if failures.rows:
        console.print(Text(f"\n{failures.caption}"))
        console.print(to_terminal(failures, console.width))

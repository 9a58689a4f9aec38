"""What the commands print: comparisons, verdicts, aggregate, what did not finish. Light enough to end every sweep."""

from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ablate.screen import Wrapped
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
            _heading(console, f"task {task}")
        print_comparison(comparison, console, failures=failures)
    if not task_set.several:
        return
    _heading(console, "all tasks")
    tables = overall_tables(task_set)
    for name in ("verdicts", "ranks", "aggregate"):
        if name in tables:
            print_table(tables[name], console)
    if task_set.ranking is not None:
        print_sentences(sentences(task_set.ranking)[1:], console)  # the first one is in the caption
    for remark in task_set.remarks:
        _say(console, f"note: {remark}", "yellow")


def _heading(console: Console, title: str) -> None:
    """A title with a rule behind it where there is room for one."""
    console.print()
    if cell_len(title) + 4 <= console.width:
        console.rule(Text(title), align="left")
    else:
        _say(console, title, "bold")


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Wrapped(Text(text, style=style)))


def print_table(table: Table, console: Console) -> None:
    """Print a table with its caption."""
    console.print(to_terminal(table))
    _say(console, table.caption, "dim")


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
        _say(console, f"note: {line}", "yellow")
    if failures:
        print_failures(comparison.study, comparison.question.metric, console)
    for note in notes(comparison.study):
        _say(console, f"warning: {note}", "yellow")


def print_sentences(sentences: Iterable[str], console: Console) -> None:
    """Print each sentence as a paragraph."""
    for sentence in sentences:
        _say(console, f"\n{sentence}")


def print_failures(study: Study, metric: str, console: Console) -> None:
    """Print the runs that have no value of the metric; nothing when there are none."""
    failures = failures_table(study, metric)
    if failures.rows:
        _say(console, f"\n{failures.caption}")
        console.print(to_terminal(failures))

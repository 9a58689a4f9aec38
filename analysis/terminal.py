"""What the commands print: the comparison, the verdicts, what did not finish. Light enough to end every sweep."""

from rich.console import Console
from rich.text import Text

from analysis.comparison_table import comparison_table, failures_table
from analysis.results import Comparison
from analysis.study import Study
from analysis.tables import to_terminal
from analysis.wording import flag_lines, notes, verdict_sentences


def print_comparison(comparison: Comparison, console: Console, *, failures: bool = True) -> None:
    """Print the table with its caption, one sentence per variant, flags, failures (unless told not to) and notes."""
    table = comparison_table(comparison)
    console.print(to_terminal(table, console.width))
    console.print(Text(table.caption, style="dim"))
    for sentence in verdict_sentences(comparison):
        console.print(Text(f"\n{sentence}"))
    for line in flag_lines(comparison):
        console.print(Text(f"note: {line}", style="yellow"))
    if failures:
        print_failures(comparison.study, comparison.question.metric, console)
    for note in notes(comparison.study):
        console.print(Text(f"warning: {note}", style="yellow"))


def print_failures(study: Study, metric: str, console: Console) -> None:
    """Print the runs that have no value of the metric; nothing when there are none."""
    failures = failures_table(study, metric)
    if failures.rows:
        console.print(Text(f"\n{failures.caption}"))
        console.print(to_terminal(failures, console.width))

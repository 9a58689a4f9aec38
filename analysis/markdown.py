"""The report as Markdown, for places that render it; figures are linked."""

from collections.abc import Iterable

from analysis.checklist import checklist
from analysis.factorial_tables import FactorialReport
from analysis.over_tasks import sentences
from analysis.results import Against, Comparison, VariantResult
from analysis.search_parts import Part
from analysis.sections import Report, Section
from analysis.streams import only_streams
from analysis.tables import escape_markdown, to_markdown
from analysis.wording import beside, flag_lines, notes, sensitivity_line, verdict_sentence

LATER_TABLES = {
    "all_pairs": "All pairs",
    "steps_to_threshold": "Steps to the threshold",
    "lengths": "Other lengths",
    "positions": "Accuracy by position",
    "factors": "Factors",
    "completeness": "Runs",
    "failures": "Runs without a value",
    "cost": "Cost",
    "cost_decided": "Cost of the decided comparisons",
}
"""Tables that come after the figures, with their headings."""


def report_markdown(report: Report) -> str:
    """The whole report; with several tasks what goes over all of them comes first, then a part per task."""
    several = report.task_set.several
    parts = [block for section in report.sections for block in _section(section, several=several)]
    searches = [block for part in report.parts for block in _part(part)]
    parts = [*searches, *parts] if report.of_a_search else [*parts, *searches]
    blocks = [f"# {report.title}", *(_over_all_tasks(report) if several else []), *parts]
    blocks.append(f"Written by\n\n    {report.command}")
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def _over_all_tasks(report: Report) -> list[str]:
    """The aggregate and what must be said of the tasks."""
    remarks = [f"- {escape_markdown(text)}" for text in report.task_set.remarks]
    ranking = report.task_set.ranking
    blocks = [
        "## All tasks",
        _bullets(sentences(ranking)) if ranking else "",
        *map(to_markdown, report.tables.values()),
    ]
    blocks += [f"![{figure.plot.title}](figures/{figure.plot.name}.svg)" for figure in report.drawn]
    return [*blocks, "\n".join(["Notes", "", *remarks]) if remarks else ""]


def _part(part: Part) -> list[str]:
    """A search or a tuning."""
    blocks = [f"## {escape_markdown(part.title)}", _bullets(part.sentences), *map(to_markdown, part.tables)]
    return blocks + [f"![{one.plot.title}](figures/{part.folder}{one.plot.name}.svg)" for one in part.drawn]


def _section(section: Section, *, several: bool) -> list[str]:
    """One task, under a heading of its own when there are several."""
    level = "###" if several else "##"
    tables, folder = section.tables, section.folder
    blocks = [f"## {escape_markdown(section.title)}"] * several
    blocks += _answer(section, level)
    blocks += _factorial(section.factorial, level)
    blocks += [f"![{figure.plot.title}](figures/{folder}{figure.plot.name}.svg)" for figure in section.drawn]
    later = {"comparison": "Cells"} | LATER_TABLES if only_streams(section.comparison.study) else LATER_TABLES
    shown = [(title, tables[name]) for name, title in later.items() if name in tables and tables[name].rows]
    blocks += [f"{level} {title}\n\n{to_markdown(table)}" for title, table in shown]
    answers = [f"**{answer.title}.** {escape_markdown(answer.text)}" for answer in checklist(section.comparison)]
    return [*blocks, f"{level} For the checklist of a paper (NeurIPS)", *answers]


def _answer(section: Section, level: str) -> list[str]:
    """A sentence per variant and the table, or shares of variance where verdicts mean nothing; then the notes."""
    comparison, variance = section.comparison, section.variance
    shares = [_bullets(variance.sentences), *map(to_markdown, variance.tables)]
    verdicts = [_bullets(_verdict_line(comparison, *row) for row in comparison.others)]
    verdicts.append(to_markdown(section.tables["comparison"]))
    remarks = _bullets([*flag_lines(comparison), *notes(comparison.study)])
    noted = f"Notes\n\n{remarks}" if remarks else ""
    if only_streams(comparison.study):
        return [*shares, noted]
    return [*verdicts, noted, *([f"{level} Variance", *shares] if variance.sentences else [])]


def _bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(text)}" for text in texts)


def _verdict_line(comparison: Comparison, result: VariantResult, against: Against) -> str:
    """The sentence on one variant and what stands beside it, in one line."""
    more = [beside(comparison, against), sensitivity_line(comparison, against)]
    return f"{verdict_sentence(comparison, result, against)} {'; '.join(text for text in more if text)}".strip()


def _factorial(found: FactorialReport, level: str) -> list[str]:
    """Heading, sentences and tables; nothing for a study of one factor."""
    sentences = _bullets(found.sentences)
    return [f"{level} Factorial analysis", sentences, *map(to_markdown, found.tables)] if sentences else []

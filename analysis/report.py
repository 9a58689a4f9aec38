"""The command `python -m analysis.report STUDY`: a study's verdicts, tables and figures as files, and on the terminal.

    report.html        one self-contained file        comparison.json    every number, unrounded
    report.md          the same without figures       runs.csv           one row per planned run
    tables/<name>.{md,csv,tex}                        figures/<name>.{png,svg,pdf,csv}

The same study gives the same bytes, whatever the folder, day and time zone: no build time and no absolute path is
written. Exit codes: 0 all planned runs have a value, 1 some have not (the report is written all the same), 2 bad input.
"""

import argparse
import base64
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup
from rich.console import Console

from ablate.jsonfiles import write_atomic
from ablate.records import StudyFolder
from analysis import commands
from analysis.all_pairs import all_pairs_table
from analysis.comparison import compare
from analysis.comparison_table import comparison_table, completeness, factors_table, failures_table
from analysis.design import DEFAULT_METRIC
from analysis.export import comparison_data, to_json
from analysis.factorial_tables import FactorialReport, factorial_report
from analysis.latex import to_latex
from analysis.load import load_study
from analysis.plots.base import Drawn, draw_all
from analysis.results import Comparison
from analysis.steps import steps_table
from analysis.streams import only_streams
from analysis.tables import Table, escape_markdown, to_csv, to_html, to_markdown
from analysis.terminal import print_comparison, print_table
from analysis.variance import variance_report
from analysis.wording import beside, flag_lines, headline, notes, sensitivity_line, verdict_sentence

Files = dict[str, bytes]

SECTIONS = {
    "all_pairs": "All pairs",
    "steps_to_threshold": "Steps to the threshold",
    "factors": "Factors",
    "completeness": "Runs",
    "failures": "Runs without a value",
}
"""Tables that come after the figures in the Markdown report, with their headings."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report, print the table and where the report is, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m analysis.report", description=__doc__.splitlines()[0])
    commands.add_common(parser)
    parser.add_argument("--baseline", help="label of a variant, factor=value, or a level (default: the plan's first)")
    parser.add_argument("--all-pairs", action="store_true", help="add a table of every pair of variants")
    parser.add_argument("--out", type=Path, help="folder of the report (default: STUDY/report)")
    options = parser.parse_args(arguments)
    return commands.guarded(lambda: _report(options))


def _report(options: argparse.Namespace) -> int:
    comparison = compare(
        load_study(options.study, options.sweep),
        options.metric,
        baseline=options.baseline,
        direction=options.direction,
        margin=options.margin,
        transform=options.transform,
        threshold=options.threshold,
    )
    out = options.out or StudyFolder(options.study).report
    command = regenerate(comparison, options)
    for name, content in report_files(comparison, command, pairwise=options.all_pairs).items():
        write_atomic(out / name, content)
    console = Console()
    print_comparison(comparison, console)
    if options.all_pairs:
        print_table(all_pairs_table(comparison), console)
    console.print(f"\nreport: {out}", soft_wrap=True, markup=False, highlight=False)
    return 0 if all(set(result.counts) <= {"ok"} for result in comparison.results) else 1


def regenerate(comparison: Comparison, options: argparse.Namespace) -> str:
    """The command that writes this report again, with the options that are not the default ones."""
    given = {
        "--baseline": options.baseline,
        "--metric": options.metric if options.metric != DEFAULT_METRIC else None,
        "--direction": options.direction,
        "--margin": options.margin,
        "--transform": options.transform if comparison.question.scale.is_log else None,
        "--threshold": options.threshold,
        "--sweep": comparison.study.sweep if options.sweep == "latest" else options.sweep,
    }
    words = [word for name, value in given.items() if value for word in (name, str(value))]
    words += ["--all-pairs"] if options.all_pairs else []
    return shlex.join(["python", "-m", "analysis.report", f"multirun/{comparison.study.name}", *words])


def report_files(comparison: Comparison, command: str, *, pairwise: bool = False) -> Files:
    """Every file of the report by its name relative to the report's folder."""
    tables = report_tables(comparison, pairwise=pairwise)
    drawn = draw_all(comparison)
    files = {
        "report.html": report_html(comparison, tables, drawn, command).encode(),
        "report.md": report_markdown(comparison, tables, drawn, command).encode(),
        "comparison.json": to_json(comparison_data(comparison)).encode(),
        "runs.csv": comparison.study.runs.to_csv(index=False, lineterminator="\n").encode(),
    }
    for table in tables.values():
        for extension, render in (("md", to_markdown), ("csv", to_csv), ("tex", to_latex)):
            files[f"tables/{table.name}.{extension}"] = render(table).encode()
    for figure in drawn:
        files |= {f"figures/{figure.plot.name}.{extension}": content for extension, content in figure.files.items()}
    return files


def report_tables(comparison: Comparison, *, pairwise: bool = False) -> dict[str, Table]:
    """The tables of the report by name; `pairwise` adds that of all pairs."""
    study, steps = comparison.study, steps_table(comparison)
    tables = (
        comparison_table(comparison),
        *variance_report(comparison).tables,
        *([all_pairs_table(comparison)] if pairwise else []),
        *([steps] if steps.rows else []),
        factors_table(study),
        completeness(comparison),
        failures_table(study, comparison.question.metric),
        *factorial_report(comparison).tables,
    )
    return {table.name: table for table in tables}


def _verdicts(comparison: Comparison) -> list[dict[str, str]]:
    """One entry per variant for the top of the report; none when the variants differ in random streams only."""
    if only_streams(comparison.study):
        return []
    return [
        {
            "verdict": str(against.judgement.verdict),
            "label": result.variant.label,
            "sentence": verdict_sentence(comparison, result, against),
            "beside": beside(comparison, against),
            "sensitivity": sensitivity_line(comparison, against),
        }
        for result, against in comparison.others
    ]


def _verdict_line(entry: Mapping[str, str]) -> str:
    """The sentence and what stands beside it, in one line."""
    more = "; ".join(entry[part] for part in ("beside", "sensitivity") if entry[part])
    return f"{entry['sentence']} {more}".strip()


def report_html(comparison: Comparison, tables: dict[str, Table], drawn: Sequence[Drawn], command: str) -> str:
    """One file that holds everything, figures included, and asks nothing of the network."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis"), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html.j2").render(
        study=comparison.study,
        question=comparison.question,
        headline=headline(comparison),
        verdicts=_verdicts(comparison),
        variance=variance_report(comparison).sentences,
        only_streams=only_streams(comparison.study),
        flags=flag_lines(comparison),
        notes=notes(comparison.study),
        factorial=factorial_report(comparison).sentences,
        tables=tables,
        rendered={name: Markup(to_html(table)) for name, table in tables.items()},
        figures=[(figure.plot, _data_uri(figure.files["svg"])) for figure in drawn],
        command=command,
    )


def _data_uri(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def _answer_markdown(comparison: Comparison, tables: Mapping[str, Table]) -> list[str]:
    """What a report begins with: sentences, then their table; shares of variance where verdicts mean nothing."""
    verdicts, variance = [_verdict_line(entry) for entry in _verdicts(comparison)], variance_report(comparison)
    shares = [_bullets(variance.sentences), *map(to_markdown, variance.tables)]
    if only_streams(comparison.study):
        return shares
    return [_bullets(verdicts), to_markdown(tables["comparison"]), *(["## Variance"] * bool(shares[0])), *shares]


def _bullets(texts: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(text)}" for text in texts)


def _factorial_markdown(found: FactorialReport) -> list[str]:
    """Heading, sentences and tables; nothing for a study of one factor."""
    sentences = _bullets(found.sentences)
    return ["## Factorial analysis", sentences, *map(to_markdown, found.tables)] if sentences else []


def report_markdown(comparison: Comparison, tables: dict[str, Table], drawn: Sequence[Drawn], command: str) -> str:
    """The report for places that render Markdown; figures are linked."""
    remarks = _bullets([*flag_lines(comparison), *notes(comparison.study)])
    blocks = [f"# {comparison.study.name}: {comparison.question.metric}", *_answer_markdown(comparison, tables)]
    blocks.append(f"Notes\n\n{remarks}" if remarks else "")
    blocks += _factorial_markdown(factorial_report(comparison))
    blocks += [f"![{figure.plot.title}](figures/{figure.plot.name}.svg)" for figure in drawn]
    sections = {"comparison": "Cells"} | SECTIONS if only_streams(comparison.study) else SECTIONS
    shown = [(title, tables[name]) for name, title in sections.items() if name in tables and tables[name].rows]
    blocks += [f"## {title}\n\n{to_markdown(table)}" for title, table in shown]
    blocks.append(f"Written by\n\n    {command}")
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


if __name__ == "__main__":
    sys.exit(main())

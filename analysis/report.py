"""The command `python -m analysis.report STUDY`: a study's verdicts, tables and figures as files, and on the terminal.

    report.html        one self-contained file        comparison.json    every number, unrounded
    report.md          the same without figures       runs.csv           one row per planned run
    tables/<name>.{md,csv,tex}                        figures/<name>.{png,svg,pdf,csv}

In a study of several tasks the tables and figures of one task are in a folder of its name (tables/<task>/<name>), those
over all tasks beside these folders. Files that an earlier report wrote and this one lacks are removed.

The same study gives the same bytes, whatever the folder, day and time zone: no build time and no absolute path is
written. Exit codes: 0 all planned runs have a value, 1 some have not (the report is written all the same), 2 bad input.
"""

import argparse
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from ablate import stdio
from analysis import commands, sources
from analysis.all_pairs import all_pairs_table
from analysis.export import task_set_data, to_json
from analysis.latex import to_latex
from analysis.markdown import report_markdown
from analysis.page.render import render_page
from analysis.plots.base import Drawn
from analysis.report_folder import write_report
from analysis.searches import Searches, load_searches
from analysis.sections import report_of
from analysis.tables import Table, to_csv, to_markdown
from analysis.task_sets import TaskSet, compare_tasks
from analysis.terminal import print_table, print_task_set

Files = dict[str, bytes]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report, print the table and where the report is, and return the exit code."""
    stdio.make_safe()
    parser = argparse.ArgumentParser(prog="python -m analysis.report", description=__doc__.splitlines()[0])
    commands.add_common(parser)
    parser.add_argument("--baseline", help="label of a variant, factor=value, or a level (default: the plan's first)")
    parser.add_argument(
        "--reference",
        help="what scores 0 and 1 over several tasks: 0,1 or none,rope or {copy: [0, 1], sort: [0.1, 1]} "
        "(default: the declared one, else relative to the baseline)",
    )
    parser.add_argument("--all-pairs", action="store_true", help="add a table of every pair of variants")
    parser.add_argument(
        "--out", type=Path, help="folder of the report (default: STUDY/report; TABLE_report beside a CSV)"
    )
    options = parser.parse_args(arguments)
    return commands.guarded(lambda: _report(options))


def _report(options: argparse.Namespace) -> int:
    task_set = compare_tasks(
        sources.load(options),
        sources.metric_of(options),
        baseline=options.baseline,
        direction=options.direction,
        margin=options.margin,
        transform=options.transform,
        threshold=options.threshold,
        reference=options.reference,
        task=options.task,
    )
    home, metric = sources.default_out(options.study), task_set.first.question.metric
    out = options.out or home
    linked = out.resolve() == home.resolve()
    command = regenerate(task_set, options)
    searches = load_searches(options.study) if not options.metrics and options.study.is_dir() else None
    files = report_files(task_set, command, linked=linked, before=out, pairwise=options.all_pairs, searches=searches)
    write_report(out, files)
    console = Console()
    print_task_set(task_set, console)
    for comparison in task_set.comparisons.values() if options.all_pairs else ():
        print_table(all_pairs_table(comparison), console)
    console.print(f"\nreport: {out}", soft_wrap=True, markup=False, highlight=False)
    return 0 if all(run.outcome(metric).kind == "ok" for run in task_set.study.loaded) else 1


def regenerate(task_set: TaskSet, options: argparse.Namespace) -> str:
    """The command that writes this report again, with the options that are not the default ones."""
    study = task_set.study
    given = {
        "--metrics": options.metrics,
        "--seed-key": options.seed_key,
        "--variant-key": options.variant_key,
        "--task-key": options.task_key,
        "--step-key": options.step_key,
        "--baseline": options.baseline,
        "--metric": options.metric if not options.metrics else None,
        "--direction": options.direction,
        "--margin": options.margin,
        "--transform": options.transform,
        "--threshold": options.threshold,
        "--reference": options.reference,
        "--task": options.task,
        "--sweep": study.sweep if options.sweep == "latest" else options.sweep,
    }
    words = [word for name, value in given.items() if value for word in (name, str(value))]
    words += ["--all-pairs"] if options.all_pairs else []
    return shlex.join(["python", "-m", "analysis.report", sources.shown(options, study), *words])


def report_files(
    task_set: TaskSet,
    command: str,
    *,
    linked: bool = True,
    before: Path | None = None,
    pairwise: bool = False,
    searches: Searches | None = None,
) -> Files:
    """Every file of the report by its name relative to the report's folder.

    `linked` says that this is the study's own folder for reports, from which the page can link to the runs' folders.
    `before` is a folder with an earlier report, whose figures are taken over where they would be the same. `pairwise`
    adds a table of every pair of variants; `searches` are those of the study.
    """
    report = report_of(task_set, command, before, pairwise=pairwise, searches=searches)
    factorials = {section.title: section.factorial for section in report.sections}
    files = {
        "report.html": render_page(report, linked=linked).encode(),
        "report.md": report_markdown(report).encode(),
        "comparison.json": to_json(task_set_data(task_set, factorials)).encode(),
        "runs.csv": task_set.study.runs.to_csv(index=False, lineterminator="\n").encode(),
    }
    files |= _part_files(report.tables.values(), report.drawn, "")
    for section in report.sections:
        files |= _part_files(section.tables.values(), section.drawn, section.folder)
    for part in report.parts:
        files |= _part_files(part.tables, part.drawn, part.folder)
    return files


def _part_files(tables: Iterable[Table], drawn: Iterable[Drawn], folder: str) -> Files:
    """The tables, which are named after their folder, and the figures of one part of the report."""
    files = {
        f"tables/{table.name}.{extension}": render(table).encode()
        for table in tables
        for extension, render in (("md", to_markdown), ("csv", to_csv), ("tex", to_latex))
    }
    for figure in drawn:
        names = {extension: f"figures/{folder}{figure.plot.name}.{extension}" for extension in figure.files}
        files |= {names[extension]: content for extension, content in figure.files.items()}
    return files


if __name__ == "__main__":
    sys.exit(main())

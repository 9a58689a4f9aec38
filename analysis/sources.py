"""Where a command's study comes from: this project's folder, another program's runs (--metrics), or a table."""

import argparse
from pathlib import Path

from ablate.records import StudyFolder
from analysis.file_formats import named_like_a_table, plain_name
from analysis.foreign import load_runs
from analysis.foreign_logs import Wanted
from analysis.load import load_study
from analysis.plain_csv import load_csv
from analysis.question import DEFAULT_METRIC
from analysis.study import Study, StudyError


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is asked of studies that this project did not train."""
    parser.add_argument(
        "--metrics",
        metavar="FILE:COLUMN",
        help="runs of another program: the file (a glob will do) in each run folder, and the metric's column",
    )
    parser.add_argument("--seed-key", metavar="KEY", help="override, config key or table column of the seed")
    parser.add_argument("--variant-key", metavar="KEY", help="config key or table column of the variant")
    parser.add_argument("--task-key", metavar="COLUMN", help="table column of the task: data sets, folds (or A,B)")
    parser.add_argument(
        "--step-key", metavar="COLUMN", help="column of the step, in a table of records or in the runs' metrics"
    )


def load(options: argparse.Namespace) -> Study:
    """Read what the options mean. Raises StudyError for an option that does not apply to it."""
    path: Path = options.study
    is_table = path.is_file() or (named_like_a_table(path) and not path.is_dir())
    if (options.metrics or is_table) and options.sweep != "latest":
        raise StudyError(f"--sweep {options.sweep}: {path.name} is no study of this project and has no sweeps")
    if options.metrics:
        if options.task_key:
            raise StudyError(
                f"--task-key {options.task_key}: for a table; runs of another program differ by their config"
            )
        if options.metric not in (None, metric_of(options)):
            raise StudyError(
                f"--metric {options.metric}: the metric is the column that --metrics {options.metrics} names"
            )
        return load_runs(path, options.metrics, options.seed_key, options.variant_key, options.step_key)
    if is_table:
        return load_csv(
            path,
            metric=options.metric or DEFAULT_METRIC,
            seed_column=options.seed_key,
            variant_column=options.variant_key,
            task_column=options.task_key,
            step_column=options.step_key,
        )
    for option in ("seed", "variant", "task", "step"):
        if key := getattr(options, f"{option}_key"):
            raise StudyError(f"--{option}-key {key}: for a table, or together with --metrics FILE:COLUMN")
    return load_study(path, options.sweep)


def metric_of(options: argparse.Namespace) -> str | None:
    """The metric that is asked for, if any is."""
    given: str | None = options.metric
    return Wanted.parse(options.metrics).column if options.metrics else given


def default_out(path: Path) -> Path:
    """Where the report goes unless told: STUDY/report, or beside a table."""
    return path.with_name(f"{plain_name(path)}_report") if path.is_file() else StudyFolder(path).report


def shown(options: argparse.Namespace, study: Study) -> str:
    """The study as the command that writes the report again names it; never an absolute path.

    Studies of this project as they lie by default; others as seen from the present folder, else by name alone.
    """
    path: Path = options.study
    if not options.metrics and not path.is_file():
        return f"multirun/{study.name}"
    whole, here = path.resolve(), Path.cwd().resolve()
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) else whole.name

"""What the two commands share: their common options, how they load a study, and one clear line for bad input."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from analysis import sources
from analysis.question import DEFAULT_METRIC
from analysis.scale import SCALES
from analysis.study import StudyError

BAD_INPUT = 2


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add what every command asks: the study, the metric and its direction, the margin, the sweep."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="a study's folder, or a table in CSV")
    parser.add_argument("--metric", help=f"final metric to compare (default: the declared one, else {DEFAULT_METRIC})")
    parser.add_argument("--direction", choices=("lower", "higher"), help="which is better (default: by its name)")
    parser.add_argument("--margin", help="smallest difference of interest: 0.01, or 2%% of the baseline's mean")
    parser.add_argument("--transform", choices=tuple(SCALES), help="log: compare by ratios")
    parser.add_argument("--threshold", help="value of the metric at or beyond which a run has solved the task")
    parser.add_argument("--task", help="one task of a study of several")
    sources.add_options(parser)
    parser.add_argument("--sweep", default="latest", help="latest, all, or the id of a sweep (default: %(default)s)")


def guarded(run: Callable[[], int]) -> int:
    """Run a command; a study that cannot be compared as asked, or a file that cannot be written, is told in one line.

    The exit code is then 2.
    """
    try:
        return run()
    except (StudyError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return BAD_INPUT

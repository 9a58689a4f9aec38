"""The table that a sweep ends with. Importing this module is cheap: pandas and scipy are loaded when it prints."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def print_summary(study: Path, sweep: str, console: "Console") -> None:
    """Print the comparison of one sweep ("latest", "all" or an id); the sweep itself lists what failed.

    Never raises for what the study holds: without a run that can be compared it says so in one line, because a sweep's
    own outcome must not hang on its summary.
    """
    from rich.text import Text  # noqa: PLC0415

    from analysis.load import load_study  # noqa: PLC0415
    from analysis.study import StudyError  # noqa: PLC0415
    from analysis.task_sets import compare_tasks  # noqa: PLC0415
    from analysis.terminal import print_task_set  # noqa: PLC0415

    try:
        print_task_set(compare_tasks(load_study(study, sweep)), console, failures=False)
    except StudyError as error:
        console.print(Text(f"no comparison: {error}"))

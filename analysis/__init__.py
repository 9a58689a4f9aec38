"""From a study folder to a verdict: loading, paired statistics, tables, figures, report. Never imports torch.

    study = load_study("multirun/copy_repeat")
    comparison = compare(study, metric="eval/loss", margin="2%")
    figures(comparison, "figures")                          # every figure as files
    figure(comparison, "paired_difference")                 # one, for a notebook
    task_set = compare_tasks(study, baseline="rope")        # a study of several tasks

`load_runs` reads the runs of another program, `load_csv` a plain table. All are loaded when first used, so that
importing the package costs nothing. Commands: `analysis.report` and `analysis.compare`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.comparison import compare
    from analysis.foreign import load_runs
    from analysis.load import load_study
    from analysis.plain_csv import load_csv
    from analysis.plots.base import figure, figures
    from analysis.task_sets import compare_tasks

__all__ = ["compare", "compare_tasks", "figure", "figures", "load_csv", "load_runs", "load_study"]

_HOMES = {
    "compare": "analysis.comparison",
    "compare_tasks": "analysis.task_sets",
    "figure": "analysis.plots.base",
    "figures": "analysis.plots.base",
    "load_csv": "analysis.plain_csv",
    "load_runs": "analysis.foreign",
    "load_study": "analysis.load",
}


def __getattr__(name: str) -> Any:
    """Load one of the public functions."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)

"""From a study folder to a verdict: loading, paired statistics, tables, figures, report. Never imports torch.

    study = load_study("multirun/copy_repeat")
    comparison = compare(study, metric="eval/loss", margin="2%")
    figures(comparison, "figures")        # every figure as files; figure(comparison, "paired_difference") gives one

The names are loaded when first used, so that importing the package costs nothing. Commands: `analysis.report` and
`analysis.compare`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.comparison import compare
    from analysis.load import load_study
    from analysis.plots.base import figure, figures

__all__ = ["compare", "figure", "figures", "load_study"]

_HOMES = {
    "compare": "analysis.comparison",
    "figure": "analysis.plots.base",
    "figures": "analysis.plots.base",
    "load_study": "analysis.load",
}


def __getattr__(name: str) -> Any:
    """Load one of the public functions."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)

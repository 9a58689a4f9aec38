"""What a plot is to the rest of the house, how plots are found, and how a figure becomes files.

Files are the same bytes for the same numbers: no dates, no random ids, and always the Agg backend.
"""

import importlib
import io
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ablate.jsonfiles import write_atomic
from analysis import plots
from analysis.plots.style import RC
from analysis.results import Comparison
from analysis.study import StudyError

METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Formats, each with the entries of its metadata that would differ between machines or days."""


@dataclass(frozen=True)
class Plot:
    """One figure: its name (that of its module), a title for people, and the two functions."""

    name: str
    title: str
    prepare: Callable[[Comparison], pd.DataFrame]
    draw: Callable[[pd.DataFrame, Figure], None]


@dataclass(frozen=True)
class Drawn:
    """A figure as bytes by format, and its numbers as CSV."""

    plot: Plot
    files: dict[str, bytes]


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dicts by column name."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def all_plots() -> list[Plot]:
    """Every plot of the package, by name; the title is the first line of the module's docstring."""
    names = sorted(module.name for module in pkgutil.iter_modules(plots.__path__))
    modules = [(name, importlib.import_module(f"{plots.__name__}.{name}")) for name in names]
    return [
        Plot(name, (module.__doc__ or name).splitlines()[0].rstrip("."), module.prepare, module.draw)
        for name, module in modules
        if {"prepare", "draw"} <= vars(module).keys()
    ]


def _drawn(plot: Plot, numbers: pd.DataFrame) -> Figure:
    """The figure, not registered with pyplot, so nothing needs closing."""
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    plot.draw(numbers, figure)
    return figure


def render(plot: Plot, numbers: pd.DataFrame) -> Drawn:
    """Draw the numbers in every format. The user's own matplotlibrc has no say."""
    files = {"csv": numbers.to_csv(index=False, lineterminator="\n").encode()}
    with style.context(RC, after_reset=True):
        figure = _drawn(plot, numbers)
        for extension, metadata in METADATA.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=extension, metadata=metadata)
            files[extension] = buffer.getvalue()
    return Drawn(plot, files)


def draw_all(comparison: Comparison) -> list[Drawn]:
    """Every plot that has something to show for this comparison."""
    prepared = [(plot, plot.prepare(comparison)) for plot in all_plots()]
    return [render(plot, numbers) for plot, numbers in prepared if not numbers.empty]


def figure(comparison: Comparison, name: str) -> Figure:
    """One figure, to be shown in a notebook, changed or saved.

    Raises StudyError when there is no figure of that name, or it has nothing to show for this comparison.
    """
    known = {plot.name: plot for plot in all_plots()}
    if name not in known:
        raise StudyError(f"no figure {name!r}; there are: {', '.join(known)}")
    numbers = known[name].prepare(comparison)
    if numbers.empty:
        raise StudyError(f"figure {name} has nothing to show for this comparison; see the docstring of its module")
    with style.context(RC, after_reset=True):
        return _drawn(known[name], numbers)


def figures(comparison: Comparison, folder: Path | str) -> list[Path]:
    """Write every figure to folder/<name>.{png,svg,pdf,csv} and return the paths."""
    written = []
    for drawn in draw_all(comparison):
        for extension, content in sorted(drawn.files.items()):
            path = Path(folder) / f"{drawn.plot.name}.{extension}"
            write_atomic(path, content)
            written.append(path)
    return written

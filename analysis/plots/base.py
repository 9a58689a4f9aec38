"""What a plot is to the rest of the house, how plots are found, and how a figure becomes files.

Files are the same bytes for the same numbers: no dates, no random ids, and always the Agg backend.
"""

import functools
import importlib
import io
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ablate.jsonfiles import write_atomic
from analysis import plots
from analysis.plots.style import RC
from analysis.results import Comparison

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


def render(plot: Plot, numbers: pd.DataFrame) -> Drawn:
    """Draw the numbers in every format. The figure is not registered with pyplot, so nothing needs closing.

    The user's own matplotlibrc has no say.
    """
    files = {"csv": numbers.to_csv(index=False, lineterminator="\n").encode()}
    with style.context(RC, after_reset=True):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        plot.draw(numbers, figure)
        for extension, metadata in METADATA.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=extension, metadata=metadata)
            files[extension] = buffer.getvalue()
    return Drawn(plot, files)


def draw_all(comparison: Comparison, before: Path | None = None) -> list[Drawn]:
    """Every plot that has something to show for this comparison.

    `before` is the folder of figures that an earlier report may have left: those whose numbers, code and files are
    unchanged are taken from there.
    """
    prepared = [(plot, plot.prepare(comparison)) for plot in all_plots()]
    shown = [(plot, numbers) for plot, numbers in prepared if not numbers.empty]
    if before is None:
        return [render(plot, numbers) for plot, numbers in shown]
    cache = comparison.study.cache
    kept, found = cache.figures(), {}
    for plot, numbers in shown:
        key = _drawn_from(plot, numbers)
        found[key] = _as_drawn(plot, before, kept.get(key)) or render(plot, numbers)
    cache.keep_figures({key: {kind: _hash(file) for kind, file in one.files.items()} for key, one in found.items()})
    return list(found.values())


def _drawn_from(plot: Plot, numbers: pd.DataFrame) -> str:
    """A hash of all that decides the bytes of a figure: numbers, the code of this package, versions."""
    said = f"{plot.name} {list(numbers.columns)} {list(numbers.dtypes)} {_code()} {mpl.__version__} {pd.__version__}"
    return _hash(said.encode() + pd.util.hash_pandas_object(numbers, index=False).to_numpy().tobytes())


@functools.cache
def _code() -> str:
    """A hash of the sources of this package, for figures use more of it than `plots`."""
    return _hash(b"".join(file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py"))))


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


def _as_drawn(plot: Plot, folder: Path, hashes: Mapping[str, str] | None) -> Drawn | None:
    """The figure as it was left in the folder; None unless every file is there and is what was written."""
    if not hashes:
        return None
    try:
        files = {kind: (folder / f"{plot.name}.{kind}").read_bytes() for kind in hashes}
    except OSError:
        return None
    return Drawn(plot, files) if all(_hash(file) == hashes[kind] for kind, file in files.items()) else None


def figures(comparison: Comparison, folder: Path | str) -> list[Path]:
    """Write every figure to folder/<name>.{png,svg,pdf,csv} and return the paths."""
    written = []
    for drawn in draw_all(comparison):
        for extension, content in sorted(drawn.files.items()):
            path = Path(folder) / f"{drawn.plot.name}.{extension}"
            write_atomic(path, content)
            written.append(path)
    return written

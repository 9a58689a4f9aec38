"""What a plot is to the rest of the house, how plots are found, and how a figure becomes files.

Files are the same bytes for the same numbers: no dates, no random ids, and always the Agg backend.
"""

import functools
import importlib
import io
import pkgutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar

import matplotlib as mpl
import pandas as pd
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ablate.jsonfiles import write_atomic
from analysis import plots
from analysis.aggregate import Aggregate
from analysis.cache import Cache
from analysis.over_tasks import Ranking
from analysis.plots.style import RC
from analysis.results import Comparison
from analysis.searches import Search, Tuning
from analysis.study import StudyError

METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Formats, each with the entries of its metadata that would differ between machines or days."""


Source = TypeVar("Source")
"""What a figure is of: a comparison, or the aggregate over several tasks."""


@dataclass(frozen=True)
class Plot(Generic[Source]):
    """One figure: its name (that of its module), a title for people, and the two functions."""

    name: str
    title: str
    prepare: Callable[[Source], pd.DataFrame]
    draw: Callable[[pd.DataFrame, Figure], None]


@dataclass(frozen=True)
class Drawn:
    """A figure as bytes by format (its numbers as CSV among them), and the numbers that it shows."""

    plot: Plot[Any]
    files: dict[str, bytes]
    numbers: pd.DataFrame


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as dicts by column name."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def all_plots() -> list[Plot[Comparison]]:
    """Every plot of a comparison, by name; the title is the first line of the module's docstring."""
    return _plots("prepare")


def aggregate_plots() -> list[Plot[Aggregate]]:
    """Every plot of an aggregate over tasks, by name."""
    return _plots("prepare_aggregate")


def ranking_plots() -> list[Plot[Ranking]]:
    """Every plot of ranks over tasks, by name."""
    return _plots("prepare_ranking")


def search_plots() -> list[Plot[Search]]:
    """Every plot of a search, by name."""
    return _plots("prepare_search")


def tuning_plots() -> list[Plot[Tuning]]:
    """Every plot of a tuning, by name."""
    return _plots("prepare_tuning")


def _plots(prepare: str) -> list[Plot[Any]]:
    """The plots whose module has `draw` and a function of that name."""
    names = sorted(module.name for module in pkgutil.iter_modules(plots.__path__))
    modules = [(name, importlib.import_module(f"{plots.__name__}.{name}")) for name in names]
    return [
        Plot(name, (module.__doc__ or name).splitlines()[0].rstrip("."), getattr(module, prepare), module.draw)
        for name, module in modules
        if {prepare, "draw"} <= vars(module).keys()
    ]


def _figure(plot: Plot[Any], numbers: pd.DataFrame) -> Figure:
    """The figure, not registered with pyplot, so nothing needs closing."""
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    plot.draw(numbers, figure)
    return figure


def render(plot: Plot[Any], numbers: pd.DataFrame) -> Drawn:
    """Draw the numbers in every format. The user's own matplotlibrc has no say.

    A label's character that matplotlib's font lacks is drawn as a box, without matplotlib's warning for each.
    """
    files = {"csv": numbers.to_csv(index=False, lineterminator="\n").encode()}
    with style.context(RC, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        figure = _figure(plot, numbers)
        for extension, metadata in METADATA.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=extension, metadata=metadata)
            files[extension] = buffer.getvalue()
    return Drawn(plot, files, numbers)


def draw_all(comparison: Comparison, earlier: "Earlier | None" = None, folder: str = "") -> list[Drawn]:
    """Every plot that has something to show for this comparison; `folder` is where its figures lie in the report's."""
    return _drawn(all_plots(), comparison, earlier or Earlier(), folder)


def draw_aggregate(aggregate: Aggregate, earlier: "Earlier | None" = None) -> list[Drawn]:
    """Every plot of an aggregate."""
    return _drawn(aggregate_plots(), aggregate, earlier or Earlier(), "")


def draw_ranking(ranking: Ranking, earlier: "Earlier | None" = None) -> list[Drawn]:
    """Every plot of ranks over tasks."""
    return _drawn(ranking_plots(), ranking, earlier or Earlier(), "")


def draw_search(search: Search, earlier: "Earlier", folder: str) -> list[Drawn]:
    """Every plot that has something to show for this search."""
    return _drawn(search_plots(), search, earlier, folder)


def draw_tuning(tuning: Tuning, earlier: "Earlier", folder: str) -> list[Drawn]:
    """Every plot that has something to show for this tuning."""
    return _drawn(tuning_plots(), tuning, earlier, folder)


def _drawn(found: Sequence[Plot[Source]], source: Source, earlier: "Earlier", folder: str) -> list[Drawn]:
    prepared = [(plot, plot.prepare(source)) for plot in found]
    return [earlier.draw(plot, numbers, folder) for plot, numbers in prepared if not numbers.empty]


class Earlier:
    """The figures that an earlier report left in its folder: taken over where numbers, code and files are unchanged."""

    def __init__(self, figures: Path | None = None, cache: Cache | None = None) -> None:
        self.figures, self.cache = figures, cache or Cache()
        self._kept = self.cache.figures() if figures is not None else {}
        self._drawn: dict[str, dict[str, str]] = {}

    def draw(self, plot: Plot[Any], numbers: pd.DataFrame, folder: str) -> Drawn:
        """The figure as it was left, else drawn anew."""
        key = _drawn_from(plot, numbers, folder)
        drawn = self._as_left(plot, numbers, folder, self._kept.get(key)) or render(plot, numbers)
        self._drawn[key] = {kind: _hash(file) for kind, file in drawn.files.items()}
        return drawn

    def close(self) -> None:
        """Keep what these figures were drawn from for the next report."""
        if self.figures is not None:
            self.cache.keep_figures(self._drawn)

    def _as_left(
        self, plot: Plot[Any], numbers: pd.DataFrame, folder: str, hashes: Mapping[str, str] | None
    ) -> Drawn | None:
        """None unless every file is there and is what was written."""
        if not hashes or self.figures is None:
            return None
        path = self.figures / folder / plot.name
        try:
            files = {kind: path.with_name(f"{plot.name}.{kind}").read_bytes() for kind in hashes}
        except OSError:
            return None
        return Drawn(plot, files, numbers) if all(_hash(file) == hashes[kind] for kind, file in files.items()) else None


def _drawn_from(plot: Plot[Any], numbers: pd.DataFrame, folder: str) -> str:
    """A hash of all that decides the bytes of a figure: numbers, the code of this package, versions."""
    form = f"{list(numbers.columns)} {list(numbers.dtypes)}"
    said = f"{folder}{plot.name} {form} {_code()} {mpl.__version__} {pd.__version__}"
    return _hash(said.encode() + pd.util.hash_pandas_object(numbers, index=False).to_numpy().tobytes())


@functools.cache
def _code() -> str:
    """A hash of the sources of this package, for figures use more of it than `plots`."""
    return _hash(b"".join(file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py"))))


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


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
        return _figure(known[name], numbers)


def figures(comparison: Comparison, folder: Path | str) -> list[Path]:
    """Write every figure to folder/<name>.{png,svg,pdf,csv} and return the paths."""
    written = []
    for drawn in draw_all(comparison):
        for extension, content in sorted(drawn.files.items()):
            path = Path(folder) / f"{drawn.plot.name}.{extension}"
            write_atomic(path, content)
            written.append(path)
    return written

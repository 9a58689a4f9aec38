"""Contours: the score over two parameters at a time, those that mattered most."""

import itertools

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation

from analysis.plots.style import COLOURS, number_axis
from analysis.searches import Search, number_of
from analysis.statistics.intervals import Array

COLUMNS = ["x_name", "y_name", "x", "y", "x_log", "y_log", "score", "best", "metric", "direction"]
MOST_PAIRS = 3
LEAST = 6
"""Finished trials below which there is no surface to speak of."""


def prepare_search(search: Search) -> pd.DataFrame:
    """One row per finished trial and pair of numeric parameters; nothing for fewer than two of these."""
    shares = search.importances.get(search.metrics[0], {})
    keys = sorted(search.numeric, key=lambda key: -shares.get(key, 0.0))[:3]
    best, log = search.best, search.log
    rows = [
        {
            "x_name": x,
            "y_name": y,
            "x": number_of(one.params[x]),
            "y": number_of(one.params[y]),
            "x_log": x in log,
            "y_log": y in log,
            "score": one.values[0],
            "best": one is best,
            "metric": search.metrics[0],
            "direction": search.directions[0],
        }
        for x, y in list(itertools.combinations(keys, 2))[:MOST_PAIRS]
        for one in search.finished
    ]
    return pd.DataFrame(rows if len(search.finished) >= LEAST else [], columns=COLUMNS)


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw a panel per pair with one colour scale for all."""
    pairs = list(dict.fromkeys(zip(numbers["x_name"], numbers["y_name"], strict=True)))
    figure.set_size_inches(min(11.0, max(7.2, 3.3 * len(pairs) + 1.6)), 3.6)
    for place, (x, y) in enumerate(pairs, 1):
        own = numbers[(numbers["x_name"] == x) & (numbers["y_name"] == y)]
        _panel(figure.add_subplot(1, len(pairs), place), own)
    label = f"{numbers['metric'].iloc[0]} ({numbers['direction'].iloc[0]})"
    figure.colorbar(ScalarMappable(*_colours(numbers)), ax=figure.axes, label=label)
    trials = len(numbers) // len(pairs)
    figure.suptitle(f"{trials} finished trials; between them interpolated; the best as a star", fontsize=10.5)


def _colours(numbers: pd.DataFrame) -> tuple[Normalize, str]:
    """The scale of colours, dark for good."""
    way = "viridis_r" if numbers["direction"].iloc[0] == "maximize" else "viridis"
    return Normalize(numbers["score"].min(), numbers["score"].max()), way


def _panel(axes: Axes, own: pd.DataFrame) -> None:
    """Draw one pair: a surface between the trials where they span one, and the trials themselves."""
    norm, way = _colours(own)
    x, y, score = (own[name].to_numpy(dtype=float) for name in ("x", "y", "score"))
    x_log, y_log = bool(own["x_log"].iloc[0]), bool(own["y_log"].iloc[0])
    if len(set(x)) > 3 and len(set(y)) > 3:
        triangles = Triangulation(_unit(x, log=x_log), _unit(y, log=y_log)).triangles
        axes.tricontourf(Triangulation(x, y, triangles), score, 12, cmap=way, norm=norm, alpha=0.8)
    axes.scatter(x, y, c=score, cmap=way, norm=norm, s=26, edgecolors="black", linewidths=0.5, zorder=3)
    best = own["best"].to_numpy(dtype=bool)
    axes.plot(x[best], y[best], "*", color=COLOURS[1], markersize=13, markeredgecolor="white", zorder=4)
    number_axis(axes.xaxis, list(x), log=x_log)
    number_axis(axes.yaxis, list(y), log=y_log)
    axes.set_xlabel(str(own["x_name"].iloc[0]))
    axes.set_ylabel(str(own["y_name"].iloc[0]))


def _unit(values: Array, *, log: bool) -> Array:
    """Values on the axis as drawn, from 0 to 1, so that triangles do not depend on units."""
    scaled = np.log(values) if log else values
    span = float(np.ptp(scaled)) or 1.0
    return np.asarray((scaled - scaled.min()) / span)

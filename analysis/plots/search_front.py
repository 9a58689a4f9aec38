"""The front: trials by their first two metrics, and those that none beats in both."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.plots.style import COLOURS, GREY
from analysis.searches import Search

COLUMNS = ["number", "x", "y", "front", "x_name", "y_name"]


def prepare_search(search: Search) -> pd.DataFrame:
    """One row per finished trial; nothing for one metric."""
    if len(search.metrics) < 2:
        return pd.DataFrame(columns=COLUMNS)
    signs = [1.0 if way == "minimize" else -1.0 for way in search.directions[:2]]
    points = {one.number: tuple(s * v for s, v in zip(signs, one.values, strict=False)) for one in search.finished}
    names = [f"{metric} ({way})" for metric, way in zip(search.metrics[:2], search.directions, strict=False)]
    rows = [
        [one.number, one.values[0], one.values[1], not any(_beats(other, own) for other in points.values()), *names]
        for one, own in zip(search.finished, points.values(), strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw all trials, and the front as a line of larger dots."""
    figure.set_size_inches(6.4, 4.2)
    axes = figure.add_subplot()
    front = numbers[numbers["front"]].sort_values("x")
    others = numbers[~numbers["front"]]
    axes.plot(others["x"], others["y"], "o", color=GREY, markersize=4)
    axes.plot(front["x"], front["y"], "o", color=COLOURS[1], markersize=7)
    axes.plot(front["x"], front["y"], color=COLOURS[1], linewidth=1, alpha=0.5)
    axes.set_xlabel(numbers["x_name"].iloc[0])
    axes.set_ylabel(numbers["y_name"].iloc[0])
    axes.set_title(f"{len(numbers)} finished trials, {len(front)} on the front")

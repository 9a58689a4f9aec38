"""How one factor's effect depends on the other.

The factor with more levels along x, one line per level of the other: mean of the finished seeds with its 95 % t
interval. Lines that are not parallel are an interaction. For exactly two factors with every combination of levels.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.crossing import Crossing, crossing
from analysis.plots.style import LINES, MARKERS, legend_below
from analysis.results import Comparison
from analysis.streams import only_streams

COLUMNS = [
    "line", "place", "label", "line_level", "level", "mean", "low", "high", "n", "line_factor", "factor", "metric",
    "direction",
]  # fmt: skip


def prepare(comparison: Comparison) -> pd.DataFrame:
    """One row per variant: its line and its place along x.

    Nothing unless two factors vary and are fully crossed, nor when both are random streams.
    """
    grid = crossing(comparison)
    if only_streams(comparison.study) or len(grid.factors) != 2:
        return pd.DataFrame(columns=COLUMNS)
    if len(grid.results) != len(grid.levels(0)) * len(grid.levels(1)):
        return pd.DataFrame(columns=COLUMNS)
    along = 0 if len(grid.levels(0)) > len(grid.levels(1)) else 1
    fixed = {
        "line_factor": grid.factors[1 - along],
        "factor": grid.factors[along],
        "metric": comparison.question.label,
        "direction": comparison.question.direction,
    }
    found = [{**row, **fixed} for row in _points(grid, along)]
    return pd.DataFrame(found, columns=COLUMNS).sort_values(["line", "place"], ignore_index=True)


def _points(grid: Crossing, along: int) -> list[dict[str, Any]]:
    return [
        {
            "line": grid.levels(1 - along).index(levels[1 - along]),
            "place": grid.levels(along).index(levels[along]),
            "label": result.variant.label,
            "line_level": levels[1 - along],
            "level": levels[along],
            "mean": result.summary.mean,
            "low": result.summary.interval.low if result.summary.interval else None,
            "high": result.summary.interval.high if result.summary.interval else None,
            "n": result.summary.n,
        }
        for levels, result in grid.results.items()
    ]


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw one line per level, side by side at each place so that intervals do not hide one another."""
    names = numbers.drop_duplicates("place").sort_values("place")["level"]
    longest = max(map(len, names))
    figure.set_size_inches(
        max(6.0, 1.6 + len(names) * min(1.9, max(1.0, 0.1 * longest))), 4.2 + 0.05 * max(0, longest - 19)
    )
    axes = figure.add_subplot()
    lines = numbers.drop_duplicates("line").sort_values("line")
    handles = [_draw_line(axes, numbers[numbers["line"] == line], int(line), len(lines)) for line in lines["line"]]
    turn: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if longest > 19 else {}
    axes.set_xticks(range(len(names)), list(names), **turn)
    axes.set_xlim(-0.4, len(names) - 0.6)
    axes.grid(visible=False, axis="x")
    metric, direction, factor = (str(numbers[name].iloc[0]) for name in ("metric", "direction", "factor"))
    axes.set_xlabel(factor)
    axes.set_ylabel(f"{metric} ({direction} is better)")
    axes.set_title("mean, 95 % interval")
    labels = [f"{one.line_factor} = {one.line_level} ({_n_text(numbers, one.line)})" for one in lines.itertuples()]
    legend_below(figure, handles, labels)


def _draw_line(axes: Axes, own: pd.DataFrame, line: int, lines: int) -> Line2D:
    """One level's means and intervals. Its colour is a lightness, unlike those of variants, which it is none of."""
    colour = colormaps["cividis"](0.05 + 0.75 * line / max(1, lines - 1))
    style, marker = LINES[line % len(LINES)], MARKERS[line % len(MARKERS)]
    x = own["place"].to_numpy(dtype=float) + min(0.08, 0.4 / lines) * (line - (lines - 1) / 2)
    mean, low, high = (own[name].to_numpy(dtype=float) for name in ("mean", "low", "high"))
    known = np.isfinite(low)
    axes.vlines(x[known], low[known], high[known], color=colour, linewidth=1.6)
    (drawn,) = axes.plot(x, mean, color=colour, linestyle=style, marker=marker, markersize=6)
    return drawn


def _n_text(numbers: pd.DataFrame, line: Any) -> str:
    n = numbers.loc[numbers["line"] == line, "n"]
    return f"n = {n.min()}" if n.min() == n.max() else f"n = {n.min()} to {n.max()}"

"""The metric at every combination of two factors.

Mean ± SD and n in each cell, hatched when n < 3, empty when the study has no such variant. For exactly two factors.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis import formatting as fmt
from analysis.crossing import crossing
from analysis.plots.base import rows
from analysis.plots.style import GREY
from analysis.results import Comparison, VariantResult
from analysis.statistics.intervals import MINIMUM

COLUMNS = [
    "row", "column", "label", "row_level", "column_level", "mean", "sd", "n", "text", "row_factor", "column_factor",
    "metric", "direction",
]  # fmt: skip

COLOURS = "cividis"
"""Even steps of lightness, the same to the colour-blind and in grey."""


def prepare(comparison: Comparison) -> pd.DataFrame:
    """One row per variant, with its place in the grid; nothing unless exactly two factors vary."""
    grid = crossing(comparison)
    if len(grid.factors) != 2:
        return pd.DataFrame(columns=COLUMNS)
    fixed = {
        "row_factor": grid.factors[0],
        "column_factor": grid.factors[1],
        "metric": comparison.question.label,
        "direction": comparison.question.direction,
    }
    found = [
        {
            "row": grid.levels(0).index(row),
            "column": grid.levels(1).index(column),
            "row_level": row,
            "column_level": column,
            **_numbers(result),
            **fixed,
        }
        for (row, column), result in grid.results.items()
    ]
    return pd.DataFrame(found, columns=COLUMNS)


def _numbers(result: VariantResult) -> dict[str, Any]:
    s = result.summary
    places = fmt.decimals(s.sd, s.mean)
    lines = [fmt.number(s.mean, places)] * (s.mean is not None)
    if s.sd is not None:
        lines.append(f"± {fmt.deviation(s.sd, s.mean, places)}")
    text = "\n".join([*lines, f"n = {s.n}"])
    return {"label": result.variant.label, "mean": s.mean, "sd": s.sd, "n": s.n, "text": text}


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw the grid with the first factor downwards and the second to the right, and a colour bar."""
    across, down = (numbers.drop_duplicates(name).sort_values(name) for name in ("column", "row"))
    names = list(across["column_level"]), list(down["row_level"])
    # A cell is as wide as the text in it and the name under it need, up to a limit; longer names are slanted.
    longest = max(map(len, names[0]))
    width, room = min(1.9, max(1.1, 0.1 * longest)), 0.05 * max(0, longest - 19)
    side = 0.085 * max(map(len, names[1]))
    figure.set_size_inches(2.6 + width * len(across) + side, 1.5 + room + 0.8 * max(2, len(down)))
    axes = figure.add_subplot()
    means = numbers["mean"].dropna().astype(float)
    scale = Normalize(means.min(), means.max()) if len(means) else Normalize(0, 1)
    mappable = ScalarMappable(scale, COLOURS)
    for one in rows(numbers):
        _draw_cell(axes, one, mappable)
    _name_levels(axes, names, slanted=longest > 19)
    axes.set_xlabel(str(numbers["column_factor"].iloc[0]))
    axes.set_ylabel(str(numbers["row_factor"].iloc[0]))
    axes.set_title("mean ± SD" + (f", hatched: n < {MINIMUM}" if (numbers["n"] < MINIMUM).any() else ""))
    metric, direction = (str(numbers[name].iloc[0]) for name in ("metric", "direction"))
    if len(means):
        bar = figure.colorbar(mappable, ax=axes, label=f"{metric}\n({direction} is better)")
        bar.ax.locator_params(nbins=5)
        bar.outline.set_visible(False)


def _draw_cell(axes: Axes, one: dict[str, Any], mappable: ScalarMappable) -> None:
    known = pd.notna(one["mean"])
    fill = mappable.to_rgba(one["mean"]) if known else (1.0, 1.0, 1.0, 1.0)
    # Relative luminance (ITU-R BT.709) of the fill decides between dark and light ink.
    ink = "black" if float(np.dot(fill[:3], (0.2126, 0.7152, 0.0722))) > 0.45 else "white"
    place = (one["column"] - 0.5, one["row"] - 0.5)
    hatch = "///" if one["n"] < MINIMUM else ""
    axes.add_patch(Rectangle(place, 1, 1, facecolor=fill, edgecolor=GREY if hatch else "white", hatch=hatch))
    box = {"facecolor": fill, "edgecolor": "none", "pad": 1.5}
    axes.text(one["column"], one["row"], one["text"], ha="center", va="center", color=ink, fontsize=9, bbox=box)


def _name_levels(axes: Axes, names: tuple[list[str], list[str]], *, slanted: bool) -> None:
    across, down = names
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(len(down) - 0.5, -0.5)
    turn: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axes.set_xticks(range(len(across)), across, **turn)
    axes.set_yticks(range(len(down)), down)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)

"""One look for every figure, and one colour, line and marker per variant in all of them.

Colours are those of Okabe and Ito (2008), told apart by the colour-blind, without their yellow, which is too light on
white. The i-th variant of a study takes the i-th colour, line and marker, each list repeated: 7, 5 and 9 have no common
divisor, so colour and line together tell 35 variants apart, line and marker 45 (which is what is left in grey), and all
three 315.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<")

GREY = "#666666"
RED = "#B00020"
FEW = 5
"""Values of a parameter that each get a tick."""

MANY_POWERS, NARROW = 100, 4
"""Largest over smallest value of a logarithmic axis, beyond which powers of ten, under which round numbers do."""

RC: dict[str, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "ablate",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Style:
    """How one variant is drawn."""

    colour: str
    line: Any
    marker: str


def style_of(order: int) -> Style:
    """The style of the variant at this place in the study's plan; the same in every figure."""
    return Style(COLOURS[order % len(COLOURS)], LINES[order % len(LINES)], MARKERS[order % len(MARKERS)])


def number_axis(axis: Axis, values: Sequence[float], *, log: bool) -> None:
    """Set up an axis of a searched parameter: logarithmic with plain numbers, or a tick for each of a few values."""
    (axis.axes.set_xscale if isinstance(axis, XAxis) else axis.axes.set_yscale)("log" if log else "linear")
    few = sorted(set(values))
    if len(few) <= FEW:
        axis.set_ticks(few, [f"{value:.4g}" for value in few])
        axis.set_ticks([], minor=True)
    elif log:
        span = few[-1] / few[0]
        powers = LogLocator(subs=(1.0,) if span > MANY_POWERS else (1.0, 2.0, 5.0))
        axis.set_major_locator(powers if span > NARROW else MaxNLocator(FEW))
        axis.set_major_formatter(lambda value, _: f"{value:.3g}")
        axis.set_minor_formatter(NullFormatter())


def legend_handle(order: int) -> Line2D:
    """What stands for a variant in a legend: its line with its marker."""
    style = style_of(order)
    return Line2D([], [], color=style.colour, linestyle=style.line, marker=style.marker, markersize=5)


def legend_below(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """A legend under the axes that shows every label, those that begin with an underscore too, and is never cut off.

    The figure grows by the height that the legend takes.
    """
    widest = max(map(len, labels), default=1)
    width, height = figure.get_size_inches()
    columns = max(1, min(len(labels), int(width * 14 / (widest + 9))))
    rows = -(-len(labels) // columns)
    figure.set_size_inches(width, height + 0.2 * rows)
    legend = figure.legend(
        handles, ["label"] * len(labels), loc="outside lower center", ncols=columns, fontsize=9, handlelength=3.4
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)

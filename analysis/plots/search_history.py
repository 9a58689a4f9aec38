"""Optimisation history: every trial in its order, and the best so far."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.plots.style import COLOURS, GREY, RED
from analysis.searches import Search, best_so_far

COLUMNS = ["number", "state", "value", "best", "metric", "direction"]


def prepare_search(search: Search) -> pd.DataFrame:
    """One row per trial that counts; nothing for several metrics or when no trial finished."""
    if len(search.metrics) > 1 or search.best is None:
        return pd.DataFrame(columns=COLUMNS)
    values = [one.values[0] if one.values and one.feasible else None for one in search.counted]
    rows = [
        [one.number, one.state, one.values[0] if one.values else None, best, search.metrics[0], search.directions[0]]
        for one, best in zip(search.counted, best_so_far(values, search.sign), strict=True)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw dots, the best so far as steps, and what has no value along the bottom."""
    figure.set_size_inches(7.2, 3.8)
    axes = figure.add_subplot()
    axes.plot(numbers["number"], numbers["best"], drawstyle="steps-post", color=COLOURS[1], label="best so far")
    axes.plot(numbers["number"], numbers["value"], "o", color=COLOURS[0], markersize=5, label="finished")
    for state, marker, colour in (("pruned", "x", GREY), ("failed", "x", RED)):
        own = numbers.loc[numbers["state"] == state, "number"]
        if len(own):
            place = axes.get_xaxis_transform()
            axes.plot(own, [0.03] * len(own), marker, color=colour, markersize=5, label=state, transform=place)
    axes.set_xlabel("trial")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(f"{numbers['metric'].iloc[0]} ({numbers['direction'].iloc[0]})")
    axes.set_title(f"{len(numbers)} trials; without a value: marks at the bottom")
    axes.legend(fontsize=9)

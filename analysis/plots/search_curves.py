"""Learning curves of the trials, and where those that were pruned ended."""

import pandas as pd
from matplotlib.figure import Figure

from analysis.plots.style import COLOURS, GREY
from analysis.searches import Search

COLUMNS = ["number", "state", "step", "value", "best", "metric"]


def prepare_search(search: Search) -> pd.DataFrame:
    """One row per trial and evaluation that was reported; nothing without pruning, which alone reports them."""
    best = search.best
    rows = [
        [one.number, one.state, step, value, one is best, search.metrics[0]]
        for one in search.counted
        for step, value in one.curve
        if any(other.state == "pruned" for other in search.counted)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw a thin line per trial, the best one thick, and a cross where a trial was pruned."""
    figure.set_size_inches(7.2, 3.8)
    axes = figure.add_subplot()
    for _, own in numbers.groupby("number", sort=True):
        pruned, best = own["state"].iloc[0] == "pruned", bool(own["best"].iloc[0])
        colour = COLOURS[1] if best else (GREY if pruned else COLOURS[0])
        axes.plot(own["step"], own["value"], color=colour, linewidth=2.2 if best else 0.9, alpha=1.0 if best else 0.6)
        if pruned:
            axes.plot(own["step"].iloc[-1], own["value"].iloc[-1], "x", color=colour, markersize=5)
    counts = numbers.groupby("number")["state"].first()
    axes.set_xlabel("step (of the seed that is judged), or seed")
    axes.set_ylabel(numbers["metric"].iloc[0])
    pruned = int((counts == "pruned").sum())
    axes.set_title(f"{len(counts)} trials; {pruned} pruned: grey, ending in a cross; the best thick")

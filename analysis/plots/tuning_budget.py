"""What a budget buys: the best score to be expected of k trials, for every variant."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.plots.style import legend_below, legend_handle, style_of
from analysis.searches import Tuning, best_so_far, expected_best

COLUMNS = ["order", "label", "trials", "expected", "so_far", "metric", "direction"]


def prepare_tuning(tuning: Tuning) -> pd.DataFrame:
    """One row per variant and number of trials: the expected best of so many, and the best after so many as tried."""
    rows = []
    for order, one in enumerate(tuning.variants):
        if one.search is None or not one.search.finished:
            continue
        values = [trial.values[0] if trial.values else None for trial in one.search.counted]
        both = zip(expected_best(values, one.search.sign), best_so_far(values, one.search.sign), strict=True)
        rows += [
            [order, one.label, k, expected, so_far, tuning.metric, tuning.direction]
            for k, (expected, so_far) in enumerate(both, 1)
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw a thick curve for what is to be expected, and thin steps for what came, per variant."""
    figure.set_size_inches(7.2, 4.0)
    axes = figure.add_subplot()
    labels = {}
    for order, own in numbers.groupby("order", sort=True):
        style = style_of(int(str(order)))
        axes.plot(own["trials"], own["expected"], color=style.colour, linestyle=style.line)
        axes.plot(own["trials"], own["so_far"], color=style.colour, linewidth=0.8, drawstyle="steps-post", alpha=0.7)
        labels[int(str(order))] = str(own["label"].iloc[0])
    axes.set_xlabel("trials")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(f"best {numbers['metric'].iloc[0]} on the tuning seeds")
    axes.set_title("thick: expected best of k trials drawn at random; thin: in the order tried")
    legend_below(figure, [legend_handle(order) for order in labels], list(labels.values()))

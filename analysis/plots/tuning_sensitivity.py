"""Sensitivity: the score of each variant against the values that were searched."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.plots.style import legend_below, legend_handle, number_axis, style_of
from analysis.searches import Tuning, number_of

COLUMNS = ["order", "label", "parameter", "value", "log", "score", "chosen", "metric", "direction"]


def prepare_tuning(tuning: Tuning) -> pd.DataFrame:
    """One row per variant, numeric parameter and finished trial."""
    begun = [(order, one.label, one.search) for order, one in enumerate(tuning.variants) if one.search is not None]
    keys = [key for key in tuning.space if all(key in search.numeric for _, _, search in begun)]
    fixed = [tuning.metric, tuning.direction]
    rows = [
        [
            order,
            label,
            key,
            number_of(trial.params[key]),
            key in search.log,
            trial.values[0],
            trial is search.best,
            *fixed,
        ]
        for key in keys
        for order, label, search in begun
        for trial in search.finished
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw a panel per parameter: a dot per trial, joined in the order of the parameter; the chosen one large."""
    keys = list(dict.fromkeys(numbers["parameter"]))
    figure.set_size_inches(max(7.2, 3.4 * len(keys)), 4.0)
    first: Axes | None = None
    for place, key in enumerate(keys, 1):
        axes = figure.add_subplot(1, len(keys), place, sharey=first)
        first = first or axes
        own = numbers[numbers["parameter"] == key]
        for order, part in own.groupby("order", sort=True):
            _variant(axes, part.sort_values("value"), int(str(order)))
        number_axis(axes.xaxis, list(own["value"]), log=bool(own["log"].iloc[0]))
        axes.margins(x=0.08)
        axes.set_xlabel(key)
    figure.axes[0].set_ylabel(f"{numbers['metric'].iloc[0]} on the tuning seeds ({numbers['direction'].iloc[0]})")
    figure.axes[0].set_title("every finished trial; what was chosen is large")
    labels = numbers.groupby("order", sort=True)["label"].first()
    legend_below(figure, [legend_handle(int(str(order))) for order in labels.index], [str(one) for one in labels])


def _variant(axes: Axes, own: pd.DataFrame, order: int) -> None:
    style = style_of(order)
    axes.plot(own["value"], own["score"], style.marker, color=style.colour, markersize=4, alpha=0.8)
    if own["value"].nunique() == len(own):  # one trial a value: the line is this parameter's, not a mix of others
        axes.plot(own["value"], own["score"], color=style.colour, linestyle=style.line, linewidth=0.8, alpha=0.6)
    chosen = own[own["chosen"]]
    axes.plot(
        chosen["value"], chosen["score"], style.marker, color=style.colour, markersize=10, markeredgecolor="black"
    )

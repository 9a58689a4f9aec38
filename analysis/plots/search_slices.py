"""Slices: the score of every finished trial against each parameter."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.plots.style import COLOURS, number_axis
from analysis.searches import Search, number_of

COLUMNS = ["parameter", "value", "text", "log", "score", "number", "best", "metric", "direction"]
MOST = 12
"""Panels; of more parameters those that mattered most."""


def prepare_search(search: Search) -> pd.DataFrame:
    """One row per finished trial and parameter; `value` is empty for choices that are no numbers."""
    shares = search.importances.get(search.metrics[0], {})
    keys = sorted(search.space, key=lambda key: -shares.get(key, 0.0))[:MOST]
    best = search.best
    rows = [
        [
            key,
            number_of(one.params.get(key)) if key in search.numeric else None,
            str(one.params.get(key)),
            key in search.log,
            one.values[0],
            one.number,
            one is best,
            search.metrics[0],
            search.directions[0],
        ]
        for key in keys
        for one in search.finished
        if key in one.params
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw a panel per parameter, the score shared by all; later trials are darker."""
    keys = list(dict.fromkeys(numbers["parameter"]))
    columns = min(3, len(keys))
    lines = -(-len(keys) // columns)
    figure.set_size_inches(2.6 * columns + 0.8, 2.7 * lines + 0.4)
    first: Axes | None = None
    for place, key in enumerate(keys, 1):
        axes = figure.add_subplot(lines, columns, place, sharey=first)
        first = first or axes
        _panel(axes, numbers[numbers["parameter"] == key])
        axes.set_xlabel(key)
        if (place - 1) % columns == 0:
            axes.set_ylabel(f"{numbers['metric'].iloc[0]} ({numbers['direction'].iloc[0]})")
    figure.suptitle(
        f"{numbers['number'].nunique()} finished trials, later ones darker; the best as a star", fontsize=10.5
    )


def _panel(axes: Axes, own: pd.DataFrame) -> None:
    if own["value"].isna().any():
        texts = list(dict.fromkeys(sorted(own["text"])))
        where = own["text"].map(texts.index)
        axes.set_xticks(range(len(texts)), texts, rotation=30 if max(map(len, texts)) > 6 else 0)
        axes.margins(x=0.2)
    else:
        where = own["value"]
        number_axis(axes.xaxis, list(where), log=bool(own["log"].iloc[0]))
        axes.margins(x=0.12)
    axes.scatter(where, own["score"], c=own["number"], cmap="Blues", vmin=-own["number"].max() / 2 - 1, s=22)
    best = own["best"]
    axes.plot(where[best], own.loc[best, "score"], "*", color=COLOURS[1], markersize=11)

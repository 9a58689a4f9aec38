"""How much each parameter mattered to what the best trials have in common."""

import pandas as pd
from matplotlib.figure import Figure

from analysis import formatting as fmt
from analysis.plots.style import COLOURS
from analysis.searches import Search

COLUMNS = ["metric", "parameter", "share", "n"]


def prepare_search(search: Search) -> pd.DataFrame:
    """One row per metric and parameter, the greatest last; nothing where one parameter is all."""
    rows = [
        [metric, key, share, len(search.finished)]
        for metric, shares in search.importances.items()
        for key, share in sorted(shares.items(), key=lambda one: one[1])
        if len(search.space) > 1
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw bars, a panel per metric."""
    metrics = list(dict.fromkeys(numbers["metric"]))
    each = numbers["parameter"].nunique()
    figure.set_size_inches(7.2, len(metrics) * (1.1 + 0.32 * each))
    for place, metric in enumerate(metrics, 1):
        axes = figure.add_subplot(len(metrics), 1, place)
        own = numbers[numbers["metric"] == metric]
        bars = axes.barh(own["parameter"], own["share"], color=COLOURS[0], height=0.6)
        axes.bar_label(bars, [f"{fmt.percent(share)} %" for share in own["share"]], padding=3, fontsize=9)
        axes.set_xlim(0, 1.08)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("share (PED-ANOVA)")
        axes.set_title(f"{metric}: from {own['n'].iloc[0]} finished trials")

"""The metric against the length of the evaluated sequences.

Every seed as a thin line, the mean of the finished seeds with its 95 % t interval, n in the legend; the lengths up to
that of training are shaded. Nothing to show unless runs were evaluated at other lengths (eval/loss@256).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis.lengths import at_lengths, trained_length
from analysis.plots.base import rows
from analysis.plots.style import GREY, legend_below, legend_handle, style_of
from analysis.results import Comparison
from analysis.statistics.intervals import t_interval
from analysis.study import LoadedRun

COLUMNS = ["kind", "order", "label", "seed", "length", "value", "low", "high", "n", "metric", "direction", "trained"]

CROWDED = 6
"""With more variants than this, single seeds are left out."""

ROOM = 0.07
"""The part of the axis that a length named below it takes."""


def prepare(comparison: Comparison) -> pd.DataFrame:
    """Rows of kind `seed` (one run at one length) and `mean` (the finished seeds at one length, n of them)."""
    study, question = comparison.study, comparison.question
    metric = question.metric.partition("@")[0]
    fixed = {"metric": metric, "direction": question.direction}
    metrics = at_lengths(study.metrics, metric)
    found: list[dict[str, Any]] = []
    for variant in study.variants if metrics else ():
        trained = trained_length(study, variant)
        own = {trained: metric} | metrics if trained is not None else metrics
        same = {"order": study.places[variant.label], "label": variant.label, "trained": trained, **fixed}
        found += [{**same, **row} for row in _rows(study.of(variant), dict(sorted(own.items())))]
    return pd.DataFrame(found, columns=COLUMNS)


def _rows(runs: Iterable[LoadedRun], metrics: dict[int, str]) -> Iterable[dict[str, Any]]:
    """The seeds and their mean at each length at which any of them has a value."""
    outcomes = [(run.seed, {length: run.outcome(metric).value for length, metric in metrics.items()}) for run in runs]
    for length in metrics:
        values = {seed: own[length] for seed, own in outcomes if own[length] is not None}
        yield from ({"kind": "seed", "seed": seed, "length": length, "value": value} for seed, value in values.items())
        if values:
            sample = np.array(list(values.values()), dtype=float)
            low, high = t_interval(sample) or (None, None)
            middle = {"value": float(sample.mean()), "low": low, "high": high, "n": sample.size}
            yield {"kind": "mean", "length": length, **middle}


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw one line per variant over a logarithmic axis of lengths."""
    figure.set_size_inches(7.2, 4.2)
    axes = figure.add_subplot()
    variants = numbers[["order", "label"]].drop_duplicates().sort_values("order")
    for one in rows(variants):
        own = numbers[numbers["order"] == one["order"]]
        _draw_variant(axes, own, int(one["order"]), crowded=len(variants) > CROWDED)
    _length_axis(axes, numbers)
    axes.set_ylabel(f"{numbers['metric'].iloc[0]} ({numbers['direction'].iloc[0]} is better)")
    labels = [f"{one['label']} ({_n_text(numbers[numbers['order'] == one['order']])})" for one in rows(variants)]
    legend_below(figure, [legend_handle(int(order)) for order in variants["order"]], labels)


def _draw_variant(axes: Axes, own: pd.DataFrame, order: int, *, crowded: bool) -> None:
    style = style_of(order)
    if not crowded:
        for _, run in own[own["kind"] == "seed"].groupby("seed", sort=True):
            axes.plot(run["length"], run["value"], color=style.colour, linewidth=0.7, alpha=0.4)
    mean = own[own["kind"] == "mean"]
    length, value, low, high = (mean[name].to_numpy(dtype=float) for name in ("length", "value", "low", "high"))
    axes.plot(length, value, color=style.colour, linestyle=style.line, marker=style.marker, markersize=5)
    known = np.isfinite(low)
    axes.vlines(length[known], low[known], high[known], color=style.colour, linewidth=1.6)


def _length_axis(axes: Axes, numbers: pd.DataFrame) -> None:
    """Each length by its number, and the trained range, when all variants share it, as a shaded part."""
    lengths = sorted(set(numbers["length"]))
    axes.set_xscale("log", base=2)
    low, high = lengths[0] / 1.15, lengths[-1] * 1.15
    trained = set(numbers["trained"].dropna())
    if len(trained) == 1:
        (end,) = trained
        axes.axvspan(min(low, end / 1.15), end, color=GREY, alpha=0.15, linewidth=0)
        axes.set_title(f"shaded: lengths up to {end:g}, as in training")
        low = min(low, end / 1.15)
    axes.set_xlim(low, high)
    named = _apart(lengths, (high / low) ** ROOM)
    axes.set_xticks(named, [str(length) for length in named])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("length of the evaluated sequences")


def _apart(lengths: Iterable[int], ratio: float) -> list[int]:
    """Those that can be named without running into the one before."""
    named: list[int] = []
    for length in lengths:
        if not named or length >= ratio * named[-1]:
            named.append(length)
    return named


def _n_text(own: pd.DataFrame) -> str:
    n = own.loc[own["kind"] == "mean", "n"]
    return f"n = {n.max():g}" if n.min() == n.max() else f"n = {n.min():g} to {n.max():g}"

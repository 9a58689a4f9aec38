"""The final metric against training compute.

One dot per run, the mean of each variant with its 95 % t interval. Compute is 6 FLOPs per parameter and token, forward
and backward (Kaplan et al. 2020, Scaling Laws for Neural Language Models, section 2.1), without the quadratic part of
attention. Nothing to show unless runs differ in compute by more than 1 %.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from analysis.plots.base import rows
from analysis.plots.style import legend_below, legend_handle, style_of
from analysis.results import Comparison
from analysis.statistics.intervals import Array, t_interval
from analysis.study import LoadedRun

COLUMNS = ["kind", "order", "label", "seed", "flops", "value", "low", "high", "n", "metric", "direction"]

SAME = 0.01
"""Compute that differs by less is the same: schemes add a few parameters at most."""


def prepare(comparison: Comparison) -> pd.DataFrame:
    """Rows of kind `run` and `mean` (at the geometric mean of the runs' FLOPs); nothing when compute is the same."""
    question = comparison.question
    fixed = {"metric": question.metric, "direction": question.direction}
    found = [
        {"order": comparison.study.places[variant.label], "label": variant.label, **row, **fixed}
        for variant in comparison.study.variants
        for row in _rows(comparison.study.of(variant), question.metric)
    ]
    flops = [row["flops"] for row in found]
    differ = bool(flops) and max(flops) > (1 + SAME) * min(flops)
    return pd.DataFrame(found if differ else [], columns=COLUMNS)


def _rows(runs: Iterable[LoadedRun], metric: str) -> list[dict[str, Any]]:
    """The finished runs of one variant whose compute is known, and their mean."""
    found: list[dict[str, Any]] = [
        {"kind": "run", "seed": run.seed, "flops": flops, "value": value}
        for run in runs
        if (value := run.outcome(metric).value) is not None and (flops := _flops(run)) > 0
    ]
    if not found:
        return []
    values = np.array([row["value"] for row in found], dtype=float)
    low, high = t_interval(values) or (None, None)
    middle = float(np.exp(np.mean(np.log([row["flops"] for row in found]))))
    mean = {"value": float(values.mean()), "low": low, "high": high, "n": values.size}
    return [*found, {"kind": "mean", "flops": middle, **mean}]


def _flops(run: LoadedRun) -> float:
    """Training FLOPs of one run; 0 when its record lacks parameters or tokens."""
    return 6.0 * run.record.parameters * run.record.tokens if run.record is not None else 0.0


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw runs and means over a logarithmic axis of compute."""
    figure.set_size_inches(7.2, 4.2)
    axes = figure.add_subplot()
    means = numbers[numbers["kind"] == "mean"].sort_values("order")
    for one, shift in zip(rows(means), _side_by_side(means), strict=True):
        own = numbers[(numbers["order"] == one["order"]) & (numbers["kind"] == "run")]
        _draw_variant(axes, own, one, shift)
    _compute_axis(axes, means["flops"].to_numpy(dtype=float))
    axes.set_xlabel("training compute in FLOPs: 6 × parameters × tokens")
    axes.set_ylabel(f"{numbers['metric'].iloc[0]} ({numbers['direction'].iloc[0]} is better)")
    axes.set_title("runs, and their mean with its 95 % interval")
    labels = [f"{one['label']} (n = {one['n']:g})" for one in rows(means)]
    legend_below(figure, [legend_handle(int(order)) for order in means["order"]], labels)


def _side_by_side(means: pd.DataFrame) -> list[float]:
    """A factor for the place of each variant, so that those of the same compute do not hide one another."""
    flops = means["flops"].to_numpy(dtype=float)
    step = float(flops.max() / flops.min()) ** 0.012 if flops.size else 1.0
    near = np.abs(np.log(flops[:, None] / flops[None, :])) <= SAME
    place = np.sum(np.tril(near, -1), axis=1) - (near.sum(axis=1) - 1) / 2
    return [float(step**shift) for shift in place]


def _draw_variant(axes: Axes, own: pd.DataFrame, mean: dict[str, Any], shift: float) -> None:
    style = style_of(int(mean["order"]))
    axes.plot(shift * own["flops"], own["value"], ".", color=style.colour, alpha=0.45, markersize=5, linestyle="")
    x = [shift * mean["flops"]]
    if pd.notna(mean["low"]):
        axes.vlines(x, [mean["low"]], [mean["high"]], color=style.colour, linewidth=1.6)
    axes.plot(x, [mean["value"]], style.marker, color=style.colour, markersize=6, zorder=3)


def _compute_axis(axes: Axes, flops: Array) -> None:
    """A logarithmic axis with a few round numbers, over a narrow range too, where powers of ten would be none."""
    span = max(1 + SAME, float(flops.max() / flops.min()))
    axes.set_xscale("log")
    axes.set_xlim(flops.min() / span**0.12, flops.max() * span**0.12)
    powers = LogLocator(subs=(1.0,) if span > 30 else (1.0, 2.0, 5.0))
    axes.xaxis.set_major_locator(powers if span > 4 else MaxNLocator(5))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}".replace("e+0", "e").replace("e+", "e"))

"""Share of runs that score above a threshold, over all tasks.

For every tau the share of a variant's runs, over all tasks, whose score is above tau; a curve above another is better.
A run that failed is above none. The axis holds the usual scores (0 to 1 of declared references, 3 standard deviations
of the baseline either way) and nine tenths of the baseline's and the best variant's runs; a hopeless variant does not
stretch it.
The band is the pointwise 95 % interval over seeds; there is none where leaving out a seed changes nothing.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import formatting as fmt
from analysis.aggregate import Aggregate, VariantScores, profile
from analysis.plots.base import rows
from analysis.plots.style import legend_below, legend_handle, style_of
from analysis.statistics.intervals import Array

COLUMNS = ["order", "label", "tau", "share", "low", "high", "seeds", "runs", "tasks", "iqm", "scale"]

DECLARED, RELATIVE = (0.0, 1.0), (-3.0, 3.0)
"""The scores that the axis has at least: with a declared reference, and relative to the baseline."""

STEPS = 101

CROWDED = 4
"""With more variants than this, bands would hide one another."""


def prepare_aggregate(aggregate: Aggregate) -> pd.DataFrame:
    """One row per variant and tau, from the lowest to the highest score of the axis."""
    taus = np.linspace(*_span(aggregate), STEPS)
    fixed = {"tasks": len(aggregate.tasks), "scale": aggregate.unit}
    found = [{**row, **fixed} for one in aggregate.variants for row in _shares(one, taus)]
    return pd.DataFrame(found, columns=COLUMNS)


def _span(aggregate: Aggregate) -> tuple[float, float]:
    low, high = DECLARED if aggregate.reference is not None else RELATIVE
    finite = {one.label: one.finite for one in aggregate.variants if one.finite.size}
    best = max((float(np.quantile(scores, 0.9)) for scores in finite.values()), default=high)
    base = finite.get(aggregate.baseline)
    return min(low, float(np.quantile(base, 0.1)) if base is not None else low), max(high, best)


def _shares(one: VariantScores, taus: Array) -> list[dict[str, object]]:
    fixed = {"order": one.place, "label": one.label, "runs": one.n_runs, "iqm": one.iqm.value}
    found = []
    for tau, estimate in zip(taus, profile(one, taus), strict=True):
        low, high = estimate.interval or (np.nan, np.nan)
        numbers = {"tau": float(tau), "share": estimate.value, "low": low, "high": high, "seeds": estimate.n}
        found.append({**fixed, **numbers})
    return found


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw one curve per variant, with a marker at every tenth."""
    figure.set_size_inches(7.2, 3.8)
    axes = figure.add_subplot()
    variants = numbers[["order", "label", "iqm", "runs"]].drop_duplicates().sort_values("order")
    for order in variants["order"]:
        _draw_variant(axes, numbers[numbers["order"] == order], int(order), band=len(variants) <= CROWDED)
    axes.set_ylim(-0.03, 1.03)
    axes.margins(x=0.02)
    axes.set_xlabel(f"score τ ({numbers['scale'].iloc[0]})" if len(variants) else "score τ")
    axes.set_ylabel("share of runs above τ")
    if len(variants):
        axes.set_title(f"runs on {numbers['tasks'].iloc[0]} tasks")
        labels = [
            f"{one['label']} (IQM {fmt.number(one['iqm'], 2, apart=(1.0,))}, {one['runs']} runs)"
            for one in rows(variants)
        ]
        legend_below(figure, [legend_handle(int(order)) for order in variants["order"]], labels)


def _draw_variant(axes: Axes, own: pd.DataFrame, order: int, *, band: bool) -> None:
    style = style_of(order)
    tau, share, low, high = (own[name].to_numpy(dtype=float) for name in ("tau", "share", "low", "high"))
    axes.step(
        tau,
        share,
        where="post",
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markevery=10,
        markersize=5,
    )
    if band:
        axes.fill_between(tau, low, high, step="post", color=style.colour, alpha=0.12, linewidth=0)

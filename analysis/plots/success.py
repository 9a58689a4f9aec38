"""Share of runs that have solved the task, against steps.

One minus the Kaplan-Meier curve of the steps to the declared threshold, with its pointwise 95 % band; a tick where runs
that never reached it end. Nothing to show without a threshold or without evaluation curves.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.plots.base import rows
from analysis.plots.style import legend_below, legend_handle, style_of
from analysis.results import Comparison
from analysis.statistics.survival import kaplan_meier
from analysis.steps import ArmTimes, times_to_threshold

COLUMNS = ["order", "label", "step", "share", "low", "high", "censored", "reached", "n", "threshold"]

CROWDED = 4
"""With more variants than this, bands would hide one another."""


def prepare(comparison: Comparison) -> pd.DataFrame:
    """One row per variant and step at which runs reach the threshold or end short of it, and one at step 0."""
    question = comparison.question
    words = f"{question.metric} {question.threshold_text}"
    found = [{**row, "threshold": words} for arm in times_to_threshold(comparison) for row in _steps(arm)]
    return pd.DataFrame(found, columns=COLUMNS)


def _steps(arm: ArmTimes) -> list[dict[str, object]]:
    times, curve = arm.times, kaplan_meier(arm.times)
    fixed = {"order": arm.order, "label": arm.variant.label, "n": times.n, "reached": int(times.reached.size)}
    start: list[dict[str, object]] = [{**fixed, "step": 0.0, "share": 0.0, "censored": 0}] if curve.steps[0] > 0 else []
    # Still on the way is 1 minus solved, so the limits change places.
    points = zip(curve.steps, 1 - curve.share, 1 - curve.high, 1 - curve.low, strict=True)
    return start + [
        {
            **fixed,
            "step": float(step),
            "share": float(share),
            "low": float(low),
            "high": float(high),
            "censored": int(np.sum(times.censored == step)),
        }
        for step, share, low, high in points
    ]


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw one step curve per variant."""
    figure.set_size_inches(7.2, 3.8)
    axes = figure.add_subplot()
    variants = numbers[["order", "label", "n", "reached"]].drop_duplicates().sort_values("order")
    end = float(numbers["step"].max()) if len(numbers) else 1.0
    for order in variants["order"]:
        _draw_variant(axes, numbers[numbers["order"] == order], int(order), end, band=len(variants) <= CROWDED)
    axes.set_ylim(-0.03, 1.03)
    axes.margins(x=0.02)
    axes.set_xlabel("optimiser step")
    axes.set_ylabel("share of runs solved")
    if len(variants):
        axes.set_title(str(numbers["threshold"].iloc[0]))
        labels = [f"{one['label']} ({one['reached']} of {one['n']})" for one in rows(variants)]
        legend_below(figure, [legend_handle(int(order)) for order in variants["order"]], labels)


def _draw_variant(axes: Axes, own: pd.DataFrame, order: int, end: float, *, band: bool) -> None:
    """The curve with a tick where runs end short of the threshold; it ends with the last run on the way."""
    style = style_of(order)
    if own["share"].iloc[-1] == 1:  # all have solved it, and stay so
        own = pd.concat([own, own.tail(1).assign(step=end, censored=0)])
    step, share, low, high = (own[name].to_numpy(dtype=float) for name in ("step", "share", "low", "high"))
    axes.step(step, share, where="post", color=style.colour, linestyle=style.line)
    axes.plot(step[:1], share[:1], style.marker, color=style.colour, markersize=5)
    if band:
        # Written out as a polyline: matplotlib leaves out the last stretch before an undefined limit.
        across, (bottom, top) = np.repeat(step, 2)[1:], (np.repeat(side, 2)[:-1] for side in (low, high))
        axes.fill_between(across, bottom, top, color=style.colour, alpha=0.12, linewidth=0)
    ended = own[own["censored"] > 0]
    axes.plot(ended["step"], ended["share"], "|", color=style.colour, markersize=10, markeredgewidth=1.5)

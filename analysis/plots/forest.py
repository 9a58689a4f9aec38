"""All differences from the baseline.

One row per variant in the order of the plan: the mean difference with its 95 % interval, zero line and margin of
interest, and in words the numbers and the verdict. For studies of more than four variants.
"""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.plots.base import rows
from analysis.plots.style import GREY, style_of
from analysis.results import Against, Comparison
from analysis.streams import only_streams

COLUMNS = [
    "row", "order", "label", "value", "low", "high", "n", "p_holm", "text", "verdict", "metric", "direction", "margin",
    "baseline",
]  # fmt: skip

FEW = 4
"""Up to this many variants, the figure of paired differences shows the same and every seed as well."""


def prepare(comparison: Comparison) -> pd.DataFrame:
    """One row per variant but the baseline; nothing for at most four, or when only random streams differ."""
    if len(comparison.results) <= FEW or only_streams(comparison.study):
        return pd.DataFrame(columns=COLUMNS)
    question = comparison.question
    places = comparison.study.places
    fixed = {
        "metric": question.label,
        "direction": question.direction,
        "margin": question.margin,
        "baseline": question.baseline.label,
    }
    found = [
        {"row": row, "order": places[label], "label": label, **_numbers(comparison, against), **fixed}
        for row, (result, against) in enumerate(comparison.others)
        for label in [result.variant.label]
    ]
    return pd.DataFrame(found, columns=COLUMNS).astype(dict.fromkeys(("value", "low", "high", "margin"), float))


def _numbers(comparison: Comparison, against: Against) -> dict[str, Any]:
    d = against.difference
    low, high = d.interval or (None, None)
    text = "no pair" if d.mean is None else _text(comparison, d.mean, against)
    verdict = str(against.judgement.verdict)
    return {
        "value": d.mean, "low": low, "high": high, "n": d.n, "p_holm": against.p_holm, "text": text, "verdict": verdict,
    }  # fmt: skip


def _text(comparison: Comparison, mean: float, against: Against) -> str:
    middle, bounds = comparison.question.scale.contrast(
        mean, against.difference.interval, against.difference.sd, comparison.question.margin
    )
    return f"{middle} {bounds or '[n/a]'}"


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw one row per variant from the top."""
    longest = int(numbers["label"].str.len().max())
    figure.set_size_inches(8.2 + 0.085 * max(0, longest - 12), 1.5 + 0.34 * len(numbers))
    axes = figure.add_subplot()
    axes.axvline(0, color="black", linewidth=0.9, zorder=1)
    margin = numbers["margin"].iloc[0]
    if pd.notna(margin):
        axes.axvspan(-margin, margin, color=GREY, alpha=0.15, linewidth=0)
    for one in rows(numbers.dropna(subset=["value"])):
        _draw_row(axes, one)
    _finish(axes, numbers)
    _write(axes, numbers)


def _draw_row(axes: Axes, one: dict[str, Any]) -> None:
    """The mean as the variant's marker; an interval that is n/a or infinite has no bar."""
    style = style_of(one["order"])
    if math.isfinite(one["low"]) and math.isfinite(one["high"]):
        axes.plot([one["low"], one["high"]], [one["row"]] * 2, color=style.colour, linewidth=2.2, zorder=2)
    axes.plot([one["value"]], [one["row"]], style.marker, color=style.colour, markersize=7, zorder=3)


def _finish(axes: Axes, numbers: pd.DataFrame) -> None:
    metric, direction, baseline = (str(numbers[name].iloc[0]) for name in ("metric", "direction", "baseline"))
    axes.set_yticks(list(numbers["row"]), list(numbers["label"]))
    axes.set_ylim(len(numbers) - 0.4, -0.6)
    axes.set_xlabel(f"difference in {metric} ({direction} is better)\nfrom {baseline}")
    axes.set_title("mean difference, 95 % interval")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.locator_params(axis="x", nbins=6)


def _write(axes: Axes, numbers: pd.DataFrame) -> None:
    """Numbers, pairs and verdict in columns to the right of each row."""
    widest = int(numbers["text"].str.len().max())
    for one in rows(numbers):
        for shift, text in ((8, one["text"]), (16 + 5.6 * widest, f"{one['verdict']}, n = {one['n']}")):
            axes.annotate(
                text,
                (1.0, one["row"]),
                (shift, 0),
                axes.get_yaxis_transform(),
                "offset points",
                va="center",
                fontsize=9,
                annotation_clip=False,
            )

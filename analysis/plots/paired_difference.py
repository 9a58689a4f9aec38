"""Paired differences.

Left, every run of every variant with the mean and its 95 % interval, thin lines joining runs of the same seed; failed
runs are counted at the edge. Right, the difference from the baseline, seed by seed, with mean, interval, zero line and
margin of interest. One row per variant, so that long names and many variants stay readable.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.design import FAILURES
from analysis.plots.base import rows
from analysis.plots.style import GREY, RED, style_of
from analysis.results import Comparison, VariantResult
from analysis.streams import only_streams

COLUMNS = [
    "kind", "row", "order", "label", "seed", "value", "low", "high", "n", "text", "metric", "direction", "margin",
]  # fmt: skip

JOINED = 6
"""With more variants than this, lines that join seeds would cover the runs."""


def prepare(comparison: Comparison) -> pd.DataFrame:
    """Rows of kind run, mean, failed (n and kind of failure), difference and delta (its mean, with the verdict).

    Nothing when the variants differ in random streams only: comparing those has no meaning.
    """
    if only_streams(comparison.study):
        return pd.DataFrame(columns=COLUMNS)
    question = comparison.question
    places = comparison.study.places
    ordered = [comparison.baseline, *(result for result, _ in comparison.others)]
    found = [
        {"row": row, "order": places[result.variant.label], "label": result.variant.label, **one}
        for row, result in enumerate(ordered)
        for one in [*_arm_rows(result), *_difference_rows(result)]
    ]
    fixed = {"metric": question.label, "direction": question.direction, "margin": question.margin}
    return pd.DataFrame([{**row, **fixed} for row in found], columns=COLUMNS)


def _arm_rows(result: VariantResult) -> list[dict[str, object]]:
    s = result.summary
    low, high = s.interval or (None, None)
    runs = [{"kind": "run", "seed": seed, "value": value} for seed, value in result.arm.values.items()]
    failed = [
        {"kind": "failed", "n": result.counts[kind], "text": kind} for kind in sorted(FAILURES) if result.counts[kind]
    ]
    return [*runs, {"kind": "mean", "value": s.mean, "low": low, "high": high, "n": s.n}, *failed]


def _difference_rows(result: VariantResult) -> list[dict[str, object]]:
    against = result.against
    if against is None:
        return []
    d, pairs = against.difference, against.pairs
    values = zip(pairs.seeds, pairs.variant - pairs.baseline, strict=True) if d.paired else []
    single: list[dict[str, object]] = [
        {"kind": "difference", "seed": seed, "value": float(value)} for seed, value in values
    ]
    low, high = d.interval or (None, None)
    verdict = str(against.judgement.verdict)
    return [*single, {"kind": "delta", "value": d.mean, "low": low, "high": high, "n": d.n, "text": verdict}]


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw both panels, one row per variant from the top."""
    variants = numbers[["row", "order", "label"]].drop_duplicates().sort_values("row")
    longest = max(map(len, variants["label"]))
    figure.set_size_inches(8.2 + 0.085 * max(0, longest - 12), 1.5 + 0.62 * max(2, len(variants)))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1.15, 1])
    if len(variants) <= JOINED:
        _join_seeds(left, numbers)
    for row, order, label in variants.itertuples(index=False):
        own = numbers[numbers["label"] == label]
        _draw_row(left, own, int(row), int(order), ("run", "mean"))
        _draw_row(right, own, int(row), int(order), ("difference", "delta"))
    _finish(left, right, numbers, variants)
    _count_failures(left, numbers)
    _write_verdicts(right, numbers)


def _join_seeds(axes: Axes, numbers: pd.DataFrame) -> None:
    for _, runs in numbers[numbers["kind"] == "run"].groupby("seed", sort=True):
        ordered = runs.sort_values("row")
        axes.plot(ordered["value"], ordered["row"], color=GREY, linewidth=0.5, alpha=0.35, zorder=1)


def _draw_row(axes: Axes, own: pd.DataFrame, row: int, order: int, kinds: tuple[str, str]) -> None:
    """The single values on the row's line, mean and interval just below; an interval that is n/a has no bar."""
    style = style_of(order)
    single = own.loc[own["kind"] == kinds[0], "value"].dropna()
    axes.plot(single, [row] * len(single), style.marker, color=style.colour, markersize=4.5, alpha=0.55, zorder=2)
    for one in own[own["kind"] == kinds[1]].dropna(subset=["value"]).pipe(rows):
        if one["n"] == 1:
            continue  # the one value is its own mean, and has no spread to show
        below = row + 0.24
        if pd.notna(one["low"]) and np.isfinite(one["low"]):
            axes.plot([one["low"], one["high"]], [below, below], color=style.colour, linewidth=2.2, zorder=3)
        axes.plot([one["value"]], [below], "|", color=style.colour, markersize=11, markeredgewidth=2.2, zorder=3)


def _finish(left: Axes, right: Axes, numbers: pd.DataFrame, variants: pd.DataFrame) -> None:
    """Names, units, limits, zero line and margin band."""
    metric, direction = (str(numbers[name].iloc[0]) for name in ("metric", "direction"))
    names = [f"{label}\n{_n_text(numbers, label)}" for label in variants["label"]]
    left.set_yticks(list(variants["row"]), names)
    left.set_ylim(len(variants) - 0.4, -0.5)
    left.set_xlabel(f"{metric} ({direction} is better)")
    left.set_title("every run, mean, 95 % interval")
    right.axvline(0, color="black", linewidth=0.9, zorder=1)
    margin = numbers["margin"].iloc[0]
    if pd.notna(margin):
        right.axvspan(-margin, margin, color=GREY, alpha=0.15, linewidth=0, label="margin")
    right.set_xlabel(f"difference in {metric}\nfrom {variants['label'].iloc[0]}")
    right.set_title("difference by seed, mean, interval")
    for axes, ticks in ((left, 5), (right, 4)):
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.locator_params(axis="x", nbins=ticks)


def _n_text(numbers: pd.DataFrame, label: str) -> str:
    n = numbers.loc[(numbers["label"] == label) & (numbers["kind"] == "mean"), "n"]
    return f"n = {int(n.iloc[0])}"


def _count_failures(axes: Axes, numbers: pd.DataFrame) -> None:
    """Failed and diverged runs as a cross with their count, in a strip of their own at the worse edge."""
    failures = numbers[numbers["kind"] == "failed"]
    if failures.empty:
        return
    lower = bool((numbers["direction"] == "lower").all())
    left, right = axes.get_xlim()
    strip = 0.12 * (right - left)
    axes.set_xlim(left if lower else left - strip, right + strip if lower else right)
    place, edge, side = axes.get_yaxis_transform(), *((0.96, "right") if lower else (0.04, "left"))
    for row in sorted(failures["row"].unique()):
        failed = failures[failures["row"] == row]
        text = ", ".join(f"{int(n)} {kind}" for n, kind in zip(failed["n"], failed["text"], strict=True))
        axes.plot([edge], [row], "x", color=RED, markersize=7, markeredgewidth=1.8, transform=place, zorder=5)
        axes.text(edge + 0.02 * (1 if lower else -1), row - 0.26, text, transform=place, ha=side, fontsize=8, color=RED)


def _write_verdicts(axes: Axes, numbers: pd.DataFrame) -> None:
    """The verdict and the number of pairs, to the right of each row."""
    for one in rows(numbers[numbers["kind"] == "delta"]):
        axes.annotate(
            f"{one['text']}\nn = {int(one['n'])}",
            (1.0, one["row"]),
            (6, 0),
            axes.get_yaxis_transform(),
            "offset points",
            va="center",
            fontsize=9,
            annotation_clip=False,
        )

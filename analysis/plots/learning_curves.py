"""Learning curves.

Every seed as a thin line, the mean of the finished seeds with its pointwise 95 % t band, n stated in the legend. One
seed is a line without a band. A run that failed or diverged ends in a cross; steps below, tokens above.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.design import FAILURES
from analysis.plots.style import legend_below, legend_handle, style_of
from analysis.results import Comparison
from analysis.series import Series, Steps
from analysis.statistics.intervals import t_bands
from analysis.study import LoadedRun

COLUMNS = [
    "kind", "order", "label", "seed", "step", "tokens", "value", "low", "high", "n", "status", "metric", "steps_logged",
]  # fmt: skip

CROWDED = 6
"""With more variants than this, bands would hide one another and single seeds are left out."""

STEPS, FEWEST, POINTS = 400, 50, 200_000
"""Steps that can be told apart in the figure; fewer, but not under 50, where all runs together have more points."""


def prepare(comparison: Comparison) -> pd.DataFrame:
    """Rows of kind `seed` (one run at one step, with its status) and `mean` (finished seeds at one step, n of them).

    Where more steps were logged than can be seen, evenly spaced ones are left, and each run's last; `steps_logged` is
    the number that there were.
    """
    study, metric = comparison.study, comparison.question.metric
    found = [(run, one) for run, one in study.series(metric) if one.step.size]
    if not found:
        return pd.DataFrame(columns=COLUMNS)
    # Most runs have the same steps: looking at each set of steps once spares sorting all of them.
    logged = np.unique(np.concatenate(list({one.step.tobytes(): one.step for _, one in found}.values())))
    shown = thinned(logged, min(STEPS, max(FEWEST, POINTS // len(found))))
    frames = []
    for variant in study.variants:
        own = [(run, _kept(one, shown)) for run, one in found if run.variant is variant]
        if own:
            seeds = _seeds(own, metric).assign(order=study.places[variant.label])
            frames += [seeds, _means(seeds[(seeds["status"] == "ok") & seeds["step"].isin(shown)])]
    return _table(frames).assign(metric=metric, steps_logged=logged.size)[COLUMNS]


def thinned(steps: Steps, most: int) -> Steps:
    """At most so many of the steps, evenly spaced by place, the first and the last among them."""
    places = np.linspace(0, steps.size - 1, min(most, steps.size)).round().astype(int)
    thin: Steps = steps[np.unique(places)]
    return thin


def _kept(series: Series, shown: Steps) -> Series:
    """What is shown of one run, and its last step."""
    kept = np.isin(series.step, shown)
    kept[-1] = True
    return series.at(kept)


def _seeds(own: Sequence[tuple[LoadedRun, Series]], metric: str) -> pd.DataFrame:
    """The rows of one variant's runs."""
    lengths = [one.step.size for _, one in own]
    each = {
        "seed": [run.seed for run, _ in own],
        "status": [run.outcome(metric).kind for run, _ in own],
    }
    columns = {name: np.concatenate([getattr(one, name) for _, one in own]) for name in Series._fields}
    repeated = {name: np.repeat(np.array(values), lengths) for name, values in each.items()}
    return pd.DataFrame({**columns, **repeated}).assign(kind="seed", label=own[0][0].variant.label)


def _means(seeds: pd.DataFrame) -> pd.DataFrame:
    """The mean over finished seeds at each step of one variant."""
    grouped = seeds.groupby("step", sort=True)
    means = grouped.agg(
        order=("order", "first"),
        label=("label", "first"),
        tokens=("tokens", "first"),
        value=("value", "mean"),
        sd=("value", "std"),
        n=("value", "count"),
    ).reset_index()
    mean, sd, n = (means[name].to_numpy(dtype=float) for name in ("value", "sd", "n"))
    low, high = t_bands(mean, sd, n)
    return means.drop(columns="sd").assign(kind="mean", low=low, high=high)


def _table(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All rows; numbers of tokens as whole numbers where all are known."""
    frame = pd.concat([one for one in frames if len(one)], ignore_index=True).reindex(columns=COLUMNS)
    whole = bool(np.isfinite(frame["tokens"]).all())
    return frame.astype({"tokens": "int64"}) if whole else frame


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw the curves of all variants in one pair of axes."""
    figure.set_size_inches(7.2, 4.2)
    axes = figure.add_subplot()
    variants = numbers[["order", "label"]].drop_duplicates().sort_values("order")
    crowded = len(variants) > CROWDED
    for order, label in variants.itertuples(index=False):
        _draw_variant(axes, numbers[numbers["label"] == label], int(order), crowded=crowded)
    _limit_to_finished(axes, numbers)
    for order, label in variants.itertuples(index=False):
        _mark_failures(axes, numbers[numbers["label"] == label], int(order))
    axes.set_xlabel(_step_label(numbers))
    axes.set_ylabel(str(numbers["metric"].iloc[0]) if len(numbers) else "")
    axes.margins(x=0.02)
    _token_axis(axes, numbers)
    if len(variants):
        labels = [f"{label} ({_n_text(numbers[numbers['label'] == label])})" for label in variants["label"]]
        legend_below(figure, [legend_handle(int(order)) for order in variants["order"]], labels)


def _step_label(numbers: pd.DataFrame) -> str:
    """Says how many of the steps are shown when not all are."""
    shown, logged = numbers["step"].nunique(), int(numbers["steps_logged"].max()) if len(numbers) else 0
    return "optimiser step" + (f" ({shown:,} of {logged:,} logged steps shown)" if shown < logged else "")


def _n_text(own: pd.DataFrame) -> str:
    n = own.loc[own["kind"] == "mean", "n"].dropna()
    if n.empty:
        return "n = 0"
    low, high = int(n.min()), int(n.max())
    return f"n = {high}" if low == high else f"n = {low} to {high}"


def _draw_variant(axes: Axes, own: pd.DataFrame, order: int, *, crowded: bool) -> None:
    style = style_of(order)
    seeds, mean = own[own["kind"] == "seed"], own[own["kind"] == "mean"]
    if not crowded or mean.empty:
        for _, run in seeds.groupby("seed", sort=True):
            finished = run["status"].iloc[0] == "ok"
            line = "-" if finished else ":"
            dot = "." if len(run) == 1 else ""  # a line of one point would not be seen
            axes.plot(
                run["step"], run["value"], marker=dot, color=style.colour, linestyle=line, linewidth=0.7, alpha=0.4
            )
    steps = mean["step"].to_numpy(dtype=float)
    shown = max(1, len(steps) // 8)
    axes.plot(
        steps,
        mean["value"].to_numpy(dtype=float),
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markevery=(order % shown, shown),
        markersize=5,
    )
    low, high = (mean[side].to_numpy(dtype=float) for side in ("low", "high"))
    if len(steps) == 1 and np.isfinite(low).all():
        axes.vlines(steps, low, high, color=style.colour)
    elif not crowded and np.isfinite(low).any():
        axes.fill_between(steps, low, high, color=style.colour, alpha=0.15, linewidth=0)


def _limit_to_finished(axes: Axes, numbers: pd.DataFrame) -> None:
    """Choose the range of y by the finished runs, so that one that blew up does not flatten the others."""
    values = numbers.loc[numbers["status"].isna() | (numbers["status"] == "ok"), "value"].dropna()
    if not values.empty:
        room = 0.05 * (values.max() - values.min()) or 0.05 * abs(values.max()) or 0.05
        axes.set_ylim(values.min() - room, values.max() + room)


def _mark_failures(axes: Axes, own: pd.DataFrame, order: int) -> None:
    """A cross where a failed or diverged run ends, at the edge when it ends outside the range."""
    failed = own[(own["kind"] == "seed") & own["status"].isin(FAILURES)].dropna(subset=["value"])
    low, high = axes.get_ylim()
    for _, run in failed.groupby("seed", sort=True):
        last = run.iloc[-1]
        value = float(np.clip(last["value"], low, high))
        axes.plot([last["step"]], [value], "x", color=style_of(order).colour, markersize=8, clip_on=False, zorder=5)


def _token_axis(axes: Axes, numbers: pd.DataFrame) -> None:
    """A second axis in tokens, when all runs see the same number of tokens per step."""
    known = numbers[(numbers["kind"] == "seed") & (numbers["step"] > 0)].dropna(subset=["tokens"])
    ratio = (known["tokens"].astype(float) / known["step"].astype(float)).to_numpy()
    if ratio.size == 0 or not ratio[0] > 0 or np.ptp(ratio) > 1e-6 * ratio[0]:
        return
    scale = float(ratio[0])
    top = axes.secondary_xaxis("top", functions=(partial(np.multiply, scale), partial(np.multiply, 1 / scale)))
    top.set_xlabel("tokens")

"""Learning curves to explore on the page: the numbers of `analysis.plots.learning_curves` as a plotly figure.

Per variant one trace of thin lines (every seed, a gap between two), one of the mean, and one for runs that failed or
diverged, with a cross where each ends. They share a group of the legend, so that one click hides a variant. Colours of
text and ground are the page's and set by its script, as are the logarithmic axis, the axis in tokens and the layout on
a phone.
"""

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from markupsafe import Markup

from analysis import formatting as fmt
from analysis.design import FAILURES
from analysis.plots.style import Style, style_of

POINTS = 200
"""Points drawn of one curve at most."""

SEED_CURVES = 600
"""Seeds drawn at most, over all variants; each variant has the same share."""

MEAN_WIDTH = 2.5

POSITION = "%{xaxis.title.text} %{x:,}<br>%{yaxis.title.text} %{y:.5g}"
"""Where a point is, for what is shown when the pointer is near it."""

SYMBOLS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
    "*": "star",
    "<": "triangle-left",
}
"""Plotly's names for the markers of `analysis.plots.style`."""


class Curves(NamedTuple):
    """An interactive figure: its JSON (safe inside a script element), what was thinned, and which axes it offers."""

    json: Markup
    thinned: str
    log: bool
    tokens: bool


class _Range(NamedTuple):
    """The range of y by the finished runs, with some room; `log` in powers of ten, None where it does not exist."""

    linear: tuple[float, float]
    log: tuple[float, float] | None


def interactive(numbers: pd.DataFrame) -> Curves:
    """The figure for the numbers that `learning_curves.prepare` gave; there must be some.

    The same numbers give the same text, whatever libraries are installed beside plotly.
    """
    span, share = _range(numbers), max(1, SEED_CURVES // numbers["order"].nunique())
    variants = [own for _, own in numbers.groupby("order", sort=True)]
    figure = go.Figure([trace for own in variants for trace in _variant(own, span, share)], _layout(numbers, span))
    tokens = all(_tokens_per_step(own) is not None for own in variants)
    return Curves(Markup(figure.to_json(engine="json")), _thinned(numbers, share), span.log is not None, tokens)


def _variant(own: pd.DataFrame, span: _Range, share: int) -> Iterable[go.Scatter]:
    """The traces of one variant; the first of them stands in the legend."""
    order, style = int(own["order"].iloc[0]), style_of(int(own["order"].iloc[0]))
    seeds = own[own["kind"] == "seed"]
    drawn = seeds[seeds["seed"].isin(seeds["seed"].unique()[:share])]
    ok = drawn["status"] == "ok"
    traces = [
        _mean(own[own["kind"] == "mean"], style),
        _seeds(drawn[ok], style, dash="solid"),
        _seeds(drawn[~ok], style, dash="dot"),
        _crosses(seeds[seeds["status"].isin(FAILURES)], style, span),
    ]
    shared = {
        "name": html.escape(str(own["label"].iloc[0])),
        "legendgroup": str(order),
        "meta": {"tokens": _tokens_per_step(own)},
    }
    shown = [trace for trace in traces if trace is not None]
    return [trace.update(showlegend=index == 0, **shared) for index, trace in enumerate(shown)]


def _mean(means: pd.DataFrame, style: Style) -> go.Scatter | None:
    """The mean of the finished seeds, bold."""
    means = _thin(means.dropna(subset=["value"]))
    if means.empty:
        return None
    counted = means[["n", "low", "high"]].astype(float)
    return go.Scatter(
        x=means["step"].tolist(),
        y=_compact(means["value"]),
        text=[_mean_text(*row) for row in counted.itertuples(index=False)],
        hovertemplate=f"<b>%{{fullData.name}}</b>, mean of %{{text}}<br>{POSITION}<extra></extra>",
        mode="lines+markers",
        line={"color": style.colour, "width": MEAN_WIDTH, "dash": _dash(style.line)},
        marker={"symbol": SYMBOLS[style.marker], "size": 7, "maxdisplayed": 8},
    )


def _mean_text(n: float, low: float, high: float) -> str:
    """The number of seeds and the pointwise interval."""
    if not math.isfinite(low):
        return f"{n:.0f}"
    return f"{n:.0f}, 95 % {fmt.interval((low, high), fmt.decimals((high - low) / 2, high))}"


def _seeds(runs: pd.DataFrame, style: Style, dash: str) -> go.Scatter | None:
    """All these runs as one trace of thin lines."""
    curves = [_thin(run) for _, run in runs.groupby("seed", sort=False)]
    if not curves:
        return None
    joined = pd.concat([part for run in curves for part in (run, run.tail(1).assign(value=np.nan))])
    alone = max(map(len, curves)) == 1  # a line of one point would not be seen
    return go.Scatter(
        x=joined["step"].tolist(),
        y=_compact(joined["value"]),
        customdata=joined["seed"].tolist(),
        hovertemplate=f"%{{fullData.name}}, seed %{{customdata}}<br>{POSITION}<extra></extra>",
        mode="markers" if alone else "lines",
        line={"color": style.colour, "width": 1, "dash": dash},
        opacity=0.6,
    )


def _crosses(failed: pd.DataFrame, style: Style, span: _Range) -> go.Scatter | None:
    """A cross where each of these runs ends, at the edge when it ends outside the range."""
    ends = failed.dropna(subset=["value"]).groupby("seed", sort=False).tail(1)
    if ends.empty:
        return None
    return go.Scatter(
        x=ends["step"].tolist(),
        y=np.clip(ends["value"].to_numpy(dtype=float), *span.linear).tolist(),
        customdata=[
            f"seed {seed}, {status}, last value {value:.5g}"
            for seed, status, value in zip(ends["seed"], ends["status"], ends["value"], strict=True)
        ],
        hovertemplate="%{fullData.name}, %{customdata}<br>%{xaxis.title.text} %{x:,}<extra></extra>",
        mode="markers",
        marker={"symbol": "x-thin", "size": 10, "line": {"width": 2, "color": style.colour}},
        cliponaxis=False,
    )


def _layout(numbers: pd.DataFrame, span: _Range) -> dict[str, Any]:
    return {
        "template": "none",
        "xaxis": {"title": {"text": "optimiser step"}, "zeroline": False},
        "yaxis": {
            "title": {"text": html.escape(str(numbers["metric"].iloc[0]))},
            "range": span.linear,
            "zeroline": False,
        },
        "hovermode": "closest",
        "legend": {"tracegroupgap": 0, "title": {"text": "click hides a variant"}},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "meta": {"range": span._asdict(), "variants": int(numbers["order"].nunique())},
    }


def _range(numbers: pd.DataFrame) -> _Range:
    """The range of the finished runs, so that one that blew up does not flatten the others; of all when none is."""
    finished = numbers[numbers["status"].isna() | (numbers["status"] == "ok")]["value"].dropna()
    values = finished if not finished.empty else numbers["value"].dropna()
    low, high = (float(values.min()), float(values.max())) if not values.empty else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.05
    if low <= 0:
        return _Range((low - room, high + room), None)
    power = 0.05 * math.log10(high / low) or 0.02
    return _Range((low - room, high + room), (math.log10(low) - power, math.log10(high) + power))


def _thin(curve: pd.DataFrame) -> pd.DataFrame:
    """At most POINTS rows, evenly spread, the first and the last among them."""
    if len(curve) <= POINTS:
        return curve
    return curve.iloc[np.linspace(0, len(curve) - 1, POINTS).round().astype(int)]


def _thinned(numbers: pd.DataFrame, share: int) -> str:
    """What is not drawn, in a sentence; empty when everything is."""
    seeds = numbers[numbers["kind"] == "seed"]
    longest = int(seeds.groupby(["order", "seed"]).size().max()) if len(seeds) else 0
    most = int(seeds.groupby("order")["seed"].nunique().max()) if len(seeds) else 0
    texts = [
        f"{POINTS} of up to {longest:,} points of each curve are drawn" if longest > POINTS else "",
        f"the first {share} of up to {most} seeds of each variant are drawn; means and crosses are of all"
        if most > share
        else "",
    ]
    text = "; ".join(text for text in texts if text)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _tokens_per_step(own: pd.DataFrame) -> float | None:
    """Tokens per step of one variant's runs; None when they are not known or not the same throughout."""
    known = own[(own["step"] > 0)].dropna(subset=["tokens"])
    ratio = (known["tokens"].astype(float) / known["step"].astype(float)).to_numpy()
    if ratio.size == 0 or not ratio[0] > 0 or np.ptp(ratio) > 1e-6 * ratio[0]:
        return None
    return float(ratio[0])


def _compact(values: "pd.Series[float]") -> np.ndarray[Any, np.dtype[np.float32]]:
    """Seven digits are more than a screen shows, and take half the bytes."""
    return values.to_numpy(dtype=np.float32)


def _dash(line: str | tuple[float, Sequence[float]]) -> str:
    """A line of matplotlib (in widths of the line) as plotly writes it (in pixels)."""
    return "solid" if isinstance(line, str) else ",".join(f"{part * MEAN_WIDTH:g}px" for part in line[1])

"""What is asked of a study: the metric, its direction and scale, the baseline, margin and threshold; each checked.

What is left out is as the sweep's plan declared it. Arms and pairs are made in `analysis.design`.
"""

import difflib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ablate.directions import direction_of, range_of
from analysis.formatting import factor_value
from analysis.scale import LOG, PLAIN, SCALES, Scale
from analysis.statistics.intervals import Array, Interval
from analysis.study import Study, StudyError, Variant

DEFAULT_METRIC = "eval/loss"


@dataclass(frozen=True)
class Question:
    """One comparison: a metric declared beforehand, its direction, the baseline, the smallest effect of interest.

    Statistics are on `scale`, and so are `margin` and `limits`, the values that the metric can take. `threshold` is in
    the unit of the metric: a run whose final value is at or beyond it has solved the task. `chosen_after` names what
    the sweep's plan declares otherwise, or not at all. `direction_assumed`: neither the user, the plan nor the metric's
    name says which way is better, and lower was taken.
    """

    metric: str
    lower_is_better: bool
    baseline: Variant
    margin: float | None
    limits: Interval
    alpha: float = 0.05
    scale: Scale = PLAIN
    threshold: float | None = None
    chosen_after: tuple[str, ...] = ()
    direction_assumed: bool = False

    @property
    def label(self) -> str:
        """The metric as figures name its axis: eval/loss, or log eval/loss."""
        return f"{self.scale.prefix}{self.metric}"

    def solved(self, value: float) -> bool:
        """Whether a final value of the metric is a success; every finished run is one when there is no threshold."""
        return bool(self.solves(np.array([value]))[0])

    def solves(self, values: Array) -> npt.NDArray[np.bool_]:
        """The same for many values; NaN solves nothing unless there is no threshold."""
        if self.threshold is None:
            return np.ones(values.shape, dtype=bool)
        return values <= self.threshold if self.lower_is_better else values >= self.threshold

    @property
    def threshold_text(self) -> str:
        """What solves the task: ≤ 0.1, or ≥ 0.95; empty without a threshold."""
        if self.threshold is None:
            return ""
        return f"{'≤' if self.lower_is_better else '≥'} {self.threshold:g}"

    @property
    def direction(self) -> str:
        """lower or higher, whichever is better."""
        return "lower" if self.lower_is_better else "higher"

    @property
    def rule(self) -> str:
        """Which way is better as every verdict says it, and where that was assumed, how to say it."""
        if self.direction_assumed:
            return f"direction assumed: {self.direction} is better; --direction lower|higher"
        return f"{self.direction} is better"


def ask(
    study: Study,
    metric: str | None = None,
    *,
    baseline: str | None = None,
    direction: str | None = None,
    margin: float | str | None = None,
    transform: str | None = None,
    threshold: float | str | None = None,
) -> Question:
    """Check what the user asks of a study; what is None is as the study's plan declares it for that metric.

    Raises StudyError: no finished run, unknown metric, baseline, direction, transform; margin or threshold no number.
    """
    declared = study.declared
    metric = metric_of(study, metric)
    given = {"direction": direction, "margin": margin, "transform": transform, "threshold": threshold}
    same = metric == declared.get("metric")
    chosen = {name: declared.get(name) if value is None and same else value for name, value in given.items()}
    if margin is None and chosen["transform"] == LOG.name and not str(chosen["margin"]).endswith("%"):
        chosen["margin"] = None  # an absolute margin was declared for another scale
    question = _ask(study, metric, baseline, chosen, optional=margin is None or study.part is not None)
    return replace(question, chosen_after=_chosen_after(study, question, given) if declared else ())


def _chosen_after(study: Study, question: Question, given: Mapping[str, Any]) -> tuple[str, ...]:
    """What is asked now and was not declared, or declared otherwise; a default that is spelt out is no choice."""
    same = question.metric == study.declared.get("metric")
    defaults = {"direction": direction_of(question.metric), "transform": PLAIN.name}
    before = {name: (study.declared.get(name) if same else None) or defaults.get(name) for name in given}
    changed = [name for name, value in given.items() if value is not None and not _equal(value, before[name])]
    other = question.baseline is not study.variants[0]
    return (*(() if same else ("metric",)), *(("baseline",) if other else ()), *changed)


def _equal(one: Any, other: Any) -> bool:
    """Whether two values that a user can give mean the same: 0.01 and "0.01" do, 2% and "2 %"."""
    try:
        return float(one) == float(other)
    except (TypeError, ValueError):
        return str(one).replace(" ", "") == str(other).replace(" ", "")


def refuse_unknown_direction(study: Study, metric: str | None, direction: str | None) -> None:
    """Raise StudyError where neither the user, the plan nor the metric's name says which way is better."""
    metric = metric_of(study, metric)
    declared = study.declared.get("direction") if metric == study.declared.get("metric") else None
    if metric in study.metrics and not (direction or declared or direction_of(metric)):
        rule = "give --direction lower or --direction higher"
        raise StudyError(f"the name of the metric {metric} does not say which way is better; {rule}")


def metric_of(study: Study, metric: str | None) -> str:
    """The metric that is asked for: the one given, else the one that the study's plan declares."""
    return metric or study.declared.get("metric") or DEFAULT_METRIC


def _ask(study: Study, metric: str, baseline: str | None, asked: Mapping[str, Any], *, optional: bool) -> Question:
    """The question of these values; `optional` as for `parse_margin`."""
    direction, margin, threshold = asked["direction"], asked["margin"], asked["threshold"]
    values = _values_of(study, metric)
    if direction not in (None, "lower", "higher"):
        raise StudyError(f"direction {direction!r} is neither lower nor higher")
    known = direction or direction_of(metric)
    lower = known != "higher"
    chosen = find_baseline(study, baseline) if baseline else study.variants[0]
    scale = parse_transform(asked["transform"] or PLAIN.name, metric, values)
    limits = limits_of(metric, values)
    return Question(
        metric,
        lower,
        chosen,
        parse_margin(margin, _reference(study, chosen, metric), scale, optional=optional),
        Interval(scale.forward(limits.low), scale.forward(limits.high)),
        scale=scale,
        threshold=_best_limit(values, limits, lower=lower) if threshold is None else parse_threshold(threshold),
        direction_assumed=known is None,
    )


def _reference(study: Study, baseline: Variant, metric: str) -> list[float]:
    """The values that a margin in per cent is of: the baseline's finished runs.

    Where seeds are added until decided those of the first block, so that the margin is one number for every look.
    """
    first = study.seeds[: study.until["block"]] if study.until is not None else study.seeds
    runs = [run for run in study.of(baseline) if run.seed in first]
    return [outcome.value for run in runs if (outcome := run.outcome(metric)).value is not None]


def _best_limit(values: Sequence[float], limits: Interval, *, lower: bool) -> float | None:
    """The better limit of a metric that is at a limit in every run: reaching it is what such runs differ in."""
    at_limit = np.isfinite(limits).all() and set(values) <= set(limits)
    return (limits.low if lower else limits.high) if at_limit and len(values) > 1 else None


def parse_transform(transform: str, metric: str, values: Sequence[float]) -> Scale:
    """The scale of that name. Raises StudyError for another name, and for a logarithm of what is not positive."""
    if transform not in SCALES:
        raise StudyError(f"transform {transform!r} is unknown; there are: {', '.join(SCALES)}")
    scale = SCALES[transform]
    if scale.is_log and min(values) <= 0:
        raise StudyError(f"transform {transform} needs positive values, and a run has {metric} = {min(values):g}")
    return scale


def parse_threshold(threshold: float | str | None) -> float | None:
    """The value that solves the task, in the unit of the metric. Raises StudyError unless it is a finite number."""
    if threshold is None:
        return None
    try:
        value = float(threshold)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise StudyError(f"threshold {str(threshold)!r} is not a finite number, such as 0.95")
    return value


def limits_of(metric: str, values: Sequence[float]) -> Interval:
    """What the metric's name says of its limits, unless its values say otherwise."""
    low, high = range_of(metric) or (-math.inf, math.inf)
    return Interval(low, high) if low <= min(values) and max(values) <= high else Interval(-math.inf, math.inf)


def _values_of(study: Study, metric: str) -> list[float]:
    """All values of a metric; an error names the metrics there are."""
    outcomes = [run.outcome(metric) for run in study.loaded]
    values = [o.value for o in outcomes if o.value is not None]
    if values:
        return values
    if not any(run.status == "finished" for run in study.loaded):
        counts = Counter(run.status for run in study.loaded)
        found = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
        raise StudyError(f"study {study.name} has no finished run to compare ({found or 'nothing was planned'})")
    if metric not in study.metrics:
        near = difflib.get_close_matches(metric, study.metrics, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise StudyError(f"no metric {metric!r} in study {study.name}{hint} There are: {', '.join(study.metrics)}")
    raise StudyError(f"no run of study {study.name} finished with a value of {metric}")


def find_baseline(study: Study, name: str, role: str = "baseline") -> Variant:
    """The variant of a label, of factor=value pairs joined by commas, or of a level (`rope`).

    Raises StudyError, which calls it its `role`, listing the labels when none or several match.
    """
    for matches in (_by_label, _by_pairs, _by_level):
        found = [variant for variant in study.variants if matches(variant, name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise StudyError(f"{role} {name!r} names {len(found)} variants; choose one: {_labels(found)}")
    raise StudyError(f"no {role} {name!r} in study {study.name}; the variants are: {_labels(study.variants)}")


def _labels(variants: Sequence[Variant]) -> str:
    return ", ".join(variant.label for variant in variants)


def _by_label(variant: Variant, name: str) -> bool:
    return variant.label == name


def _by_pairs(variant: Variant, name: str) -> bool:
    shown = {_tight(f"{factor}={factor_value(value)}") for factor, value in variant.factors.items()}
    return "=" in name and {_tight(part) for part in _outer_parts(name)} <= shown


def _tight(text: str) -> str:
    """The text without spaces around commas, colons and brackets: `[3, 4]` is `[3,4]`."""
    return re.sub(r"\s*([\[\]{},:])\s*", r"\1", text.strip())


def _outer_parts(text: str) -> list[str]:
    """The text split at its commas, but for those inside brackets, braces or double quotes, which belong to values."""
    parts, depth, quoted, before = [""], 0, False, ""
    for letter in text:
        quoted ^= letter == '"' and before != "\\"
        depth += 0 if quoted else (letter in "[{") - (letter in "]}")
        if letter == "," and not quoted and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
        before = letter
    return parts


def _by_level(variant: Variant, name: str) -> bool:
    return _tight(name) in {_tight(factor_value(value)) for value in variant.factors.values()}


def parse_margin(
    margin: float | str | None, baseline: Sequence[float | None], scale: Scale = PLAIN, *, optional: bool = False
) -> float | None:
    """The margin on the scale of the comparison; "2%" is of the baseline's mean, on the log scale log 1.02.

    Raises StudyError unless it is positive, on the log scale unless it is in per cent, and without a value of the
    baseline to take per cent of. If it is `optional`, as a declared one or on one task of several, the last means that
    there is none.
    """
    if margin is None:
        return None
    text = str(margin).strip()
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise StudyError(f"margin {text!r} is not a positive number (0.01) or per cent of the baseline's mean (2%)")
    if scale.is_log:
        return _relative_margin(text, value)
    if not text.endswith("%"):
        return value
    known = [v for v in baseline if v is not None]
    if not known and optional:
        return None
    if not known:
        raise StudyError("a margin in per cent needs a finished run of the baseline")
    return value / 100 * abs(float(np.mean(known)))


def _relative_margin(text: str, value: float) -> float:
    if not text.endswith("%"):
        raise StudyError(f"margin {text!r} must be in per cent (2%) with transform log, where differences are ratios")
    return math.log1p(value / 100)

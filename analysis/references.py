"""What the scores 0 and 1 of a task mean, which never hangs on which other variants are in the study.

    declared     two values of the metric, for all tasks or by task: the worse is 0, the better 1 (chance and ceiling)
                 two variants: the mean of the first one's finished runs is 0 on each task, the second one's is 1
    otherwise    the mean of the baseline's finished runs is 0, and one standard deviation of them better is 1, so that
                 a score is Glass's delta (Glass 1976): the difference in units of the spread of the control group,

                     score = ± (y - mean of the baseline) / SD of the baseline, SD with n - 1

A ratio to the baseline's mean would hang on where the metric's zero is, and has none where that mean is 0.

`parse` reads what a user declares (`sweep.reference`, `--reference`), `anchors_of` gives the values for one task.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import yaml

from analysis.formatting import factor_value
from analysis.results import Comparison
from analysis.statistics.intervals import MINIMUM, Array, is_constant
from analysis.study import StudyError

FORMS = "two numbers ([0, 1]), two variants ([none, rope]), or two numbers by task ({copy: [0, 1], sort: [0.1, 1]})"


class Anchors(NamedTuple):
    """The values, on the scale on which a task is compared, whose scores are 0 and 1."""

    zero: float
    one: float

    def scores(self, values: Array) -> Array:
        """The scores of values."""
        return (values - self.zero) / (self.one - self.zero)


@dataclass(frozen=True)
class Reference:
    """What was declared: labels of two variants, or two values of the metric by task (None: for every task).

    `after` says that the sweep's plan declared another one, or none.
    """

    variants: tuple[str, str] | None = None
    values: Mapping[str | None, tuple[float, float]] | None = None
    after: bool = False

    @property
    def text(self) -> str:
        """What the scores 0 and 1 are, in words."""
        if self.variants is not None:
            return f"0 at the mean of {self.variants[0]} and 1 at that of {self.variants[1]} on its task"
        assert self.values is not None
        each = [f"{task + ' ' if task else ''}{a:g} and {b:g}" for task, (a, b) in self.values.items()]
        return f"0 at the worse and 1 at the better of two declared values ({'; '.join(each)})"


def parse(given: Any, tasks: Collection[str], label_of: Callable[[str], str]) -> Reference | None:
    """Read a reference; text as YAML, with or without the outer brackets. None for None.

    `label_of` gives the label of a variant that a user names, or raises StudyError. Raises StudyError, in one line, for
    what is none of the forms, an unknown task or variant, equal ends.
    """
    if given is None:
        return None
    read = _from_text(given) if isinstance(given, str) else given
    if isinstance(read, Mapping):
        return Reference(values=_by_task(given, read, tasks))
    numbers = [_number(one) for one in read] if isinstance(read, Sequence) and not isinstance(read, str) else []
    if len(numbers) == 2 and None not in numbers:
        return Reference(values={None: _ends("reference", read)})
    if numbers != [None, None] or any(isinstance(one, Mapping | list | tuple) for one in read):
        raise StudyError(f"reference={_shown(given)}: must be {FORMS}")
    first, second = (label_of(one if isinstance(one, str) else factor_value(one)) for one in read)
    if first == second:
        raise StudyError(f"reference={_shown(given)}: both are {first}; name two variants")
    return Reference(variants=(first, second))


def _shown(given: Any) -> str:
    return given if isinstance(given, str) else str(given).replace("'", "")


def _from_text(text: str) -> Any:
    """The lists and mappings of a text; every value in them stays text, so that `off` may be a variant."""
    try:
        found = yaml.load(text, yaml.BaseLoader)
        return yaml.load(f"[{text}]", yaml.BaseLoader) if isinstance(found, str) else found
    except yaml.YAMLError:
        return text


def _number(value: Any) -> float | None:
    """The number that a value is or spells; None for another."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value) if "_" not in str(value) else None
    except ValueError:
        return None


def _by_task(given: Any, read: Mapping[Any, Any], tasks: Collection[str]) -> dict[str | None, tuple[float, float]]:
    unknown = [str(task) for task in read if str(task) not in tasks]
    if unknown or not read:
        name = f"no task {unknown[0]!r}" if unknown else "no task in it"
        raise StudyError(f"reference={_shown(given)}: {name}; there is: {', '.join(tasks)}")
    return {str(task): _ends(f"reference of task {task}", ends) for task, ends in read.items()}


def _ends(name: str, ends: Any) -> tuple[float, float]:
    """Two different finite numbers. Raises StudyError for others."""
    pair = ends if isinstance(ends, Sequence) and not isinstance(ends, str) else [ends]
    found = [_number(one) for one in pair]
    if len(found) != 2 or any(one is None or not math.isfinite(one) for one in found):
        raise StudyError(f"{name}: {_shown(ends)} is not two finite numbers, such as [0, 1]")
    low, high = (float(one) for one in found if one is not None)
    if is_constant(np.array([low, high]), max(abs(low), abs(high))):
        raise StudyError(f"{name}: both ends are {low:g}; the scores 0 and 1 need two different values")
    return low, high


def anchors_of(comparison: Comparison, task: str, reference: Reference | None) -> Anchors | str:
    """The values that score 0 and 1 on a task, or why there are none."""
    if reference is None:
        return _of_baseline(comparison)
    if reference.variants is not None:
        return _of_variants(comparison, *reference.variants)
    assert reference.values is not None
    ends = reference.values.get(task) or reference.values.get(None)
    if ends is None:
        return "the reference has no values for it"
    low, high = (comparison.question.scale.forward(end) for end in sorted(ends))
    return Anchors(high, low) if comparison.question.lower_is_better else Anchors(low, high)


def _of_baseline(comparison: Comparison) -> Anchors | str:
    sample, label = comparison.baseline.arm.sample, comparison.question.baseline.label
    way = "; declare what 0 and 1 are (--reference, sweep.reference)"
    if sample.size < MINIMUM:
        return f"fewer than {MINIMUM} runs of {label}, the baseline, have finished{way}"
    if is_constant(sample, float(np.abs(sample).max())):
        return f"all runs of {label}, the baseline, have the same value{way}"
    mean, sd = float(sample.mean()), float(sample.std(ddof=1))
    return Anchors(mean, mean - sd if comparison.question.lower_is_better else mean + sd)


def _of_variants(comparison: Comparison, first: str, second: str) -> Anchors | str:
    arms = {result.variant.label: result.arm.sample for result in comparison.results}
    for label in (first, second):
        if label not in arms or not arms[label].size:
            return f"no run of {label}, the reference, has finished"
    zero, one = float(arms[first].mean()), float(arms[second].mean())
    better = one < zero if comparison.question.lower_is_better else one > zero
    if not better or is_constant(np.array([zero, one]), max(abs(zero), abs(one))):
        return f"{second} is not better there than {first}, so they give no scale"
    return Anchors(zero, one)

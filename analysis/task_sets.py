"""A study of one or several tasks: every task's comparison with its own baseline, Holm over all, and the aggregate.

`compare_tasks` is the one entry. Values of different tasks are never compared with one another; what is put together
over tasks are scores, see `analysis.aggregate`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analysis.aggregate import Aggregate, aggregate, labels_of, obstacle
from analysis.evidence import gather
from analysis.load import load_study
from analysis.question import Question, ask, find_baseline, metric_of
from analysis.results import Comparison
from analysis.statistics.aggregate import FEWEST_TASKS
from analysis.study import Study, StudyError
from analysis.tasks import by_task, choose_task
from analysis.verdicts import conclude


@dataclass(frozen=True)
class TaskSet:
    """The comparisons of a study by task, and the tasks that could not be compared, each with the reason.

    `aggregate` is None unless there are at least three common tasks.
    """

    study: Study
    comparisons: Mapping[str, Comparison]
    left_out: Mapping[str, str]
    aggregate: Aggregate | None

    @property
    def several(self) -> bool:
        """Whether the study has more than one task."""
        return len(self.comparisons) + len(self.left_out) > 1

    @property
    def first(self) -> Comparison:
        """The comparison of the first task, which is the only one in a study of one."""
        return next(iter(self.comparisons.values()))

    @property
    def labels(self) -> list[str]:
        """The variants of all tasks, in the order of the plan."""
        return list(labels_of(self.comparisons))

    @property
    def remarks(self) -> list[str]:
        """What a reader must know of the tasks: left out, in no aggregate, too few for one."""
        lines = [f"task {task} is left out: {reason}" for task, reason in self.left_out.items()]
        for task, one in self.comparisons.items():
            if self.several and (reason := obstacle(one, self.labels)):
                lines.append(f"task {task} is in no aggregate: {reason}")
        lines += [f"task {task} has no margin: no run of its baseline has finished" for task in self._without_margin]
        if self.several and self.aggregate is None:
            few = f"it takes {FEWEST_TASKS} with an ended run of every variant and a finished one"
            lines.append(f"no aggregate over tasks: {few}")
        return lines

    @property
    def _without_margin(self) -> list[str]:
        """The tasks without a margin, when others have one."""
        margins = {task: one.question.margin for task, one in self.comparisons.items()}
        return [task for task, margin in margins.items() if margin is None] if any(margins.values()) else []


def compare_tasks(
    study: Study | Path | str,
    metric: str | None = None,
    *,
    baseline: str | None = None,
    direction: str | None = None,
    margin: float | str | None = None,
    transform: str | None = None,
    threshold: float | str | None = None,
    task: str | None = None,
) -> TaskSet:
    """Compare every variant with the baseline, task by task; parameters as for `compare`.

    With a `task` only that is given, corrected over the comparisons of all tasks all the same.

    The baseline of a task is its variant with the factors of the one asked for, named with or without the task. A
    margin in per cent is of each task's own baseline; there is none where that has no finished run. Raises StudyError
    when the question cannot be asked of the study.
    """
    whole = study if isinstance(study, Study) else load_study(study)
    tasks = by_task(whole)
    if task is not None:
        choose_task(whole, task)  # which says what is wrong
    metric = metric_of(whole, metric)
    if not any(_has_value(one, metric) for one in tasks.values()):
        ask(whole, metric)  # which says what is wrong
    label = _baseline(whole, tasks, baseline)
    left_out = {name: reason for name, one in tasks.items() if (reason := _obstacle(one, metric, label))}
    kept = {name: one for name, one in tasks.items() if name not in left_out}
    asked = {"direction": direction, "margin": margin, "transform": transform, "threshold": threshold}
    questions = _questions(kept, metric, label, asked)
    if not questions:
        reasons = "; ".join(f"{name}: {left_out.get(name, 'no run has finished')}" for name in tasks)
        raise StudyError(f"no task of study {whole.name} can be compared ({reasons})")
    found = conclude([gather(kept[name], question) for name, question in questions.items()])
    comparisons = dict(zip(questions, found, strict=True))
    if task is None:
        return TaskSet(whole, comparisons, left_out, aggregate(comparisons))
    if task not in comparisons:
        raise StudyError(f"task {task} cannot be compared: {left_out.get(task, 'no run has finished')}")
    return TaskSet(tasks[task], {task: comparisons[task]}, {}, None)


def _baseline(whole: Study, tasks: Mapping[str, Study], name: str | None) -> str:
    """The label that the baseline has in every task; `name` may also be a label of the whole study."""
    within = [variant for one in tasks.values() for variant in one.variants]
    named = next((v for v in whole.variants if v.label == name), None) if name else whole.variants[0]
    if named is not None:
        return next(variant.label for variant in within if variant.cell == named.cell)
    union = {variant.label: variant for variant in within}
    return find_baseline(replace(whole, variants=tuple(union.values())), str(name)).label


def _obstacle(study: Study, metric: str, label: str) -> str:
    """Why a task cannot be compared; empty when it can, with all of its runs failed too."""
    labels = [variant.label for variant in study.variants]
    if label not in labels:
        return f"it has no {label}, the baseline, only {', '.join(labels)}"
    if study.metrics and metric not in study.metrics:
        return f"its runs have no {metric}, only {', '.join(study.metrics)}"
    return ""


def _questions(tasks: Mapping[str, Study], metric: str, label: str, asked: Mapping[str, Any]) -> dict[str, Question]:
    """The question put to each task; to one without a finished run it is that of another, without a margin."""
    own = {name: ask(one, metric, baseline=label, **asked) for name, one in tasks.items() if _has_value(one, metric)}
    if not own:
        return {}
    other = replace(next(iter(own.values())), margin=None)
    return {name: own.get(name) or replace(other, baseline=one.variant(label)) for name, one in tasks.items()}


def _has_value(study: Study, metric: str) -> bool:
    return any(run.outcome(metric).value is not None for run in study.loaded)

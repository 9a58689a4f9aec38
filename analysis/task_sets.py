"""A study of one or several tasks: every task's comparison with its own baseline, Holm over all, and the aggregate.

`compare_tasks` is the one entry. Values of different tasks are never compared with one another; what is put together
over tasks are scores, see `analysis.aggregate`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ablate.records import SweepPlan
from analysis.aggregate import Aggregate, aggregate, heavy_tasks, labels_of, scales_of
from analysis.evidence import gather
from analysis.load import load_study
from analysis.looks import noted
from analysis.over_tasks import Ranking, common_tasks, rank_tasks
from analysis.question import Question, ask, find_baseline, metric_of
from analysis.references import Reference, parse
from analysis.results import Comparison
from analysis.statistics import ranks
from analysis.statistics.aggregate import FEWEST_TASKS
from analysis.study import Study, StudyError, Variant
from analysis.tasks import TARGET, by_task, choose_task
from analysis.verdicts import conclude


@dataclass(frozen=True)
class TaskSet:
    """The comparisons of a study by task, and the tasks that could not be compared, each with the reason.

    `aggregate` is None unless there are at least three common tasks with a scale (`reference` says what was declared
    of it), `ranking` unless there are at least five common tasks.
    """

    study: Study
    comparisons: Mapping[str, Comparison]
    left_out: Mapping[str, str]
    aggregate: Aggregate | None
    ranking: Ranking | None = None
    reference: Reference | None = None
    reference_problem: str = ""

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
        lines += [f"task {task} has no margin: no run of its baseline has finished" for task in self._without_margin]
        return lines + (self._unaggregated if self.several else [])

    @property
    def _unaggregated(self) -> list[str]:
        """Which tasks are in no aggregate, and what there are too few tasks for."""
        _, reasons = scales_of(self.comparisons, self.reference)
        lines = [self.reference_problem] if self.reference_problem else []
        lines += [f"task {task} is in no aggregate: {reason}" for task, reason in reasons.items()]
        if self.aggregate is not None:
            lines += [
                f"task {task} outweighs the others in the scores: runs of {self.aggregate.baseline}, the baseline, "
                "hardly differ there; declare what 0 and 1 are (--reference, sweep.reference)"
                for task in heavy_tasks(self.aggregate)
            ]
        else:
            few = f"it takes {FEWEST_TASKS} with an ended run of every variant and a finished one"
            lines.append(f"no aggregate over tasks: {few}")
        if self.ranking is None and len(self.labels) > 1:
            there = len(common_tasks(self.comparisons))
            lines.append(f"no verdict over tasks: it takes {ranks.FEWEST_TASKS} such tasks, and there are {there}")
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
    reference: Any = None,
    task: str | None = None,
) -> TaskSet:
    """Compare every variant with the baseline, task by task; parameters as for `compare`.

    With a `task` only that is given, corrected over the comparisons of all tasks all the same.

    The baseline of a task is its variant with the factors of the one asked for, named with or without the task. A
    margin in per cent is of each task's own baseline; there is none where that has no finished run. `reference` says
    which values or variants score 0 and 1 in what goes over all tasks, see `analysis.references`. Raises StudyError
    when the question cannot be asked of the study.
    """
    whole = noted(study if isinstance(study, Study) else load_study(study))
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
    scale, problem = _reference(whole, tasks, reference, questions.values())
    found = conclude([gather(kept[name], question) for name, question in questions.items()])
    comparisons = dict(zip(questions, found, strict=True))
    if task is None:
        return TaskSet(
            whole, comparisons, left_out, aggregate(comparisons, scale), rank_tasks(comparisons), scale, problem
        )
    if task not in comparisons:
        raise StudyError(f"task {task} cannot be compared: {left_out.get(task, 'no run has finished')}")
    return TaskSet(tasks[task], {task: comparisons[task]}, {}, None)


def _reference(
    whole: Study, tasks: Mapping[str, Study], given: Any, questions: Iterable[Question]
) -> tuple[Reference | None, str]:
    """The reference that is given, else the one that the study's plan declares for this metric.

    What was declared for a sweep of other tasks or variants cannot be used, which the second value says.
    """
    question, declared = next(iter(questions)), whole.declared
    planned = declared.get("reference") if question.metric == declared.get("metric", question.metric) else None
    try:
        before, problem = _checked(planned, whole, tasks, log=question.scale.is_log), ""
    except StudyError as error:
        before, problem = None, f"{error}; declared for this study and not used"
    if given is None:
        return before, problem
    found = _checked(given, whole, tasks, log=question.scale.is_log)
    after = bool(declared) and found != before
    return (replace(found, after=after) if found is not None else None), ""


def check_planned(plan: SweepPlan, reference: Any, target: str, *, log: bool) -> None:
    """Raise StudyError for a reference that does not fit the tasks and variants of a plan; `target`: a task's class."""
    variants = tuple(Variant(cell.cell, cell.label, cell.factors) for cell in plan.cells)
    study = Study(plan.study, plan.id, variants, tuple(plan.seeds), (), config={TARGET: target})
    _checked(reference, study, by_task(study), log=log)


def _checked(given: Any, whole: Study, tasks: Mapping[str, Study], *, log: bool) -> Reference | None:
    found = parse(given, tasks, lambda name: _label(whole, tasks, name, "reference"))
    values = (found.values or {}).values() if found is not None else ()
    if log and any(end <= 0 for ends in values for end in ends):
        raise StudyError(f"reference {given}: transform log needs numbers above 0")
    return found


def _baseline(whole: Study, tasks: Mapping[str, Study], name: str | None) -> str:
    """The label that the baseline has in every task."""
    return _label(whole, tasks, name or whole.variants[0].label, "baseline")


def _label(whole: Study, tasks: Mapping[str, Study], name: str, role: str) -> str:
    """The label within the tasks of a variant that a user names; that may also be a label of the whole study."""
    within = [variant for one in tasks.values() for variant in one.variants]
    named = next((v for v in whole.variants if v.label == name), None)
    if named is not None:
        return next(variant.label for variant in within if variant.cell == named.cell)
    union = {variant.label: variant for variant in within}
    return find_baseline(replace(whole, variants=tuple(union.values())), name, role).label


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

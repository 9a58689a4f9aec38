"""A study of several tasks taken apart into one study per task, because values of different tasks cannot be compared.

The factor `task` tells which task a variant was trained on; where factors are config keys (--sweep all), that is
`task._target_`. The other factors tell the variants of one task apart, but for a key `task.*` that takes one value only
within every task: it says what the task is. Variants of two tasks with the same factors are called the same variant and
have the same label. `task.*` keys alone make no tasks: they are factors of one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ablate.jsonfiles import canonical_json
from analysis import configs
from analysis.load import unique_labels
from analysis.study import LoadedRun, Part, Study, StudyError, Variant

TASK, TARGET = "task", "task._target_"
"""The factors that say which task it is; the first one that varies does."""

UNNAMED = "default"
"""The task of a variant that does not say which, and the label of one that has no other factor than the task."""


def by_task(study: Study) -> dict[str, Study]:
    """One study per task by its name, in the order of the plan; a study of one task is given back as it is."""
    selector = next((name for name in (TASK, TARGET) if len(set(_levels(study.variants, name))) > 1), None)
    if selector is None:
        return {_only_task(study): study}
    levels = _levels(study.variants, selector)
    name_of = _class_names(levels) if selector == TARGET else {level: level for level in levels}
    tasks = {variant.cell: name_of[_level(variant, selector)] for variant in study.variants}
    factors = _inner_factors(study, selector, tasks)
    variants = _renamed(study, tasks, factors)
    labels = tuple(dict.fromkeys(variant.label for variant in variants.values()))
    return {task: _part(study, task, tasks, variants, labels) for task in dict.fromkeys(tasks.values())}


def choose_task(study: Study, task: str | None) -> Study:
    """The study of that task; None is enough when there is one. Raises StudyError naming the tasks."""
    tasks = by_task(study)
    if task is None and len(tasks) == 1:
        return study
    if task is None:
        raise StudyError(
            f"study {study.name} has {len(tasks)} tasks, whose values cannot be compared with one another: choose one "
            f"(--task, in Python task=...) of {', '.join(tasks)}, or report on all (analysis.report, compare_tasks)"
        )
    if task not in tasks:
        raise StudyError(f"no task {task!r} in study {study.name}; there is: {', '.join(tasks)}")
    return tasks[task]


def _level(variant: Variant, name: str) -> str:
    value = variant.factors.get(name)
    return UNNAMED if value is None else str(value)


def _levels(variants: Iterable[Variant], name: str) -> list[str]:
    return [_level(variant, name) for variant in variants]


def _class_names(targets: Iterable[str]) -> dict[str, str]:
    """A short name per class: the module's last word, as a study is named after it, unless two share it."""
    short = {target: ["", *target.split(".")][-2] or target for target in targets}
    taken = Counter(short.values())
    return {target: name if taken[name] == 1 else target for target, name in short.items()}


def _only_task(study: Study) -> str:
    """The name of the one task of a study, as far as the study says."""
    if study.part is not None:
        return study.part.task
    named = next(iter(_levels(study.variants, TASK)), UNNAMED)
    target = str(study.config.get(TARGET, study.name))
    return named if named != UNNAMED else _class_names([target])[target]


def _inner_factors(study: Study, selector: str, tasks: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """For each cell the factors that tell it from others of its task."""

    def varies(name: str) -> bool:
        values = {
            (tasks[v.cell], canonical_json(v.factors[name]) if name in v.factors else None) for v in study.variants
        }
        return len(values) > len(set(tasks.values()))

    kept = [
        name for name in study.factor_names if name != selector and (not name.startswith(f"{TASK}.") or varies(name))
    ]
    return {
        variant.cell: {name: variant.factors[name] for name in kept if name in variant.factors}
        for variant in study.variants
    }


def _renamed(study: Study, tasks: Mapping[str, str], factors: Mapping[str, dict[str, Any]]) -> dict[str, Variant]:
    """Each cell's variant within its task; the same variant has the same label in every task."""
    first = _first_cells(tasks, factors)
    own = {first[variant.cell]: _own_label(variant, tasks[variant.cell]) for variant in reversed(study.variants)}
    ordered = [(cell, own[cell]) for cell in dict.fromkeys(first.values())]
    labels = unique_labels(ordered, factors)
    return {cell: Variant(cell, labels[first[cell]], factors[cell]) for cell in tasks}


def _first_cells(tasks: Mapping[str, str], factors: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """For each cell the first one of the same factors; itself when its task has one of these factors already."""
    known: dict[str, str] = {}
    taken: set[tuple[str, str]] = set()
    found = {}
    for cell, task in tasks.items():
        first = known.setdefault(canonical_json(factors[cell]), cell)
        found[cell] = cell if (task, first) in taken else first
        taken.add((task, first))
    return found


def _own_label(variant: Variant, task: str) -> str:
    """The label without the task's word, and without what had to be added to tell it from those of other tasks."""
    label = variant.label.removesuffix(f" [{variant.cell[:8]}]")
    label = label.removesuffix(f" ({configs.short_description(variant.factors)})")
    words = label.split(" ")
    if task in words and label not in {value for name, value in variant.factors.items() if name != TASK}:
        words.remove(task)
    return " ".join(words) or UNNAMED


def _part(
    study: Study, task: str, tasks: Mapping[str, str], variants: Mapping[str, Variant], labels: tuple[str, ...]
) -> Study:
    """The runs of one task, with its variants renamed."""
    runs = [replace(run, variant=variants[run.variant.cell]) for run in study.loaded if tasks[run.variant.cell] == task]
    renamed = {v.label: variants[v.cell].label for v in study.variants if tasks[v.cell] == task}
    seeds = {run.seed for run in runs}
    return replace(
        study,
        variants=tuple(variants[cell] for cell, own in tasks.items() if own == task),
        seeds=tuple(seed for seed in study.seeds if seed in seeds),
        loaded=tuple(runs),
        problems=_problems(study, runs),
        replaced=tuple(replace(one, label=renamed[one.label]) for one in study.replaced if one.label in renamed),
        config=configs.first_readable([run.folder.path for run in runs if run.folder]),
        part=Part(task, labels),
        at_step=study.at_steps.get(task, study.at_step),
    )


def _problems(study: Study, runs: Sequence[LoadedRun]) -> tuple[str, ...]:
    """What is wrong with these runs, and what is wrong with no run."""
    elsewhere = {run.damage for run in study.loaded} - {run.damage for run in runs}
    return tuple(problem for problem in study.problems if problem not in elsewhere)

"""A study from a plain table: a column of variants, one of seeds, one per metric. Every row is one run.

Without a column of seeds the runs of each variant are numbered and not paired. A column of tasks (data sets, folds)
makes a study of several tasks. A column of steps makes each row a record of a run; runs are compared at their end, or
at the last step that all have. Other columns are ignored, unless they tell rows of one variant and seed apart: then the
table is refused, as nothing says what these rows are. Columns are found in `table_columns`, repeats in `table_repeats`.
"""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ablate.jsonfiles import canonical_json
from ablate.records import RunRecord, Status
from analysis.file_formats import plain_name
from analysis.foreign_logs import ReadLog
from analysis.load import unique_labels
from analysis.reading import number
from analysis.series import Series, series_of
from analysis.study import EARLIER_ROW, LoadedRun, Replaced, Study, Variant
from analysis.table_columns import PlainTable, Roles, find_roles, read_table, unpaired_remark
from analysis.table_repeats import refuse_repeats, refuse_unnumbered, unused_remarks
from analysis.tasks import TASK

LARGEST_STEP = 2**62


class RunKey(NamedTuple):
    """What a run is known by: its variant's name, its task (empty where there is one only), and its seed."""

    variant: str
    task: str
    seed: int


class Entry(NamedTuple):
    """One row: its run, its step (0 where there are none), and the metric, None for a blank."""

    run: RunKey
    step: int
    value: float | None


def load_csv(
    path: Path | str,
    *,
    metric: str,
    seed_column: str | None = None,
    variant_column: str | None = None,
    task_column: str | None = None,
    step_column: str | None = None,
    shared_seeds: bool = True,
) -> Study:
    """Read the table; the columns `variant` and `seed` are used unless others are named.

    An empty or non-finite value is a run that diverged; of two rows of one variant and seed the later is used.
    `task_column` may be several, separated by commas. `shared_seeds=False` when equal numbers of two variants mean
    nothing. Raises StudyError, one line, for what is no table, lacks a column or has it twice, has a row that is longer
    than the header, without a variant, with a seed that is no whole number or a value that is none, and for rows of one
    variant and seed that another column tells apart.
    """
    table = read_table(Path(path))
    if not table.size:
        raise table.wrong("the table has no rows")
    roles = find_roles(table, metric, variant=variant_column, seed=seed_column, task=task_column, step=step_column)
    entries = _entries(table, roles)
    places = [(entry.run, entry.step) for entry in entries]
    refuse_unnumbered(table, roles, places)
    refuse_repeats(table, roles, places)
    runs = _series(entries)
    steps = _common_steps(table, roles, runs) if roles.step else {}
    remarks = [_step_remark(roles, runs, task, step) for task, step in steps.items()]
    if roles.step and (twice := len(places) - len(set(places))):
        remarks.append(f"{twice} rows repeat the run and {roles.step} of a later row, which is used instead")
    if roles.seed is None and shared_seeds:
        remarks.append(unpaired_remark(table, roles))
    remarks += unused_remarks(table, roles)
    variants, name = _variants(runs), plain_name(Path(path))
    return Study(
        name=name,
        sweep="",
        variants=tuple(variants.values()),
        seeds=tuple(dict.fromkeys(run.seed for run in runs)),
        loaded=tuple(
            _loaded(
                variants[run[:2]],
                run.seed,
                found,
                steps.get(run.task),
                metric=metric,
                step_column=roles.step,
                study=name,
            )
            for run, found in runs.items()
        ),
        replaced=() if roles.step else tuple(_replaced(entries, variants)),
        shared_seeds=shared_seeds and roles.seed is not None,
        remarks=tuple(remarks),
        at_step=next(iter(steps.values())) if len({run.task for run in runs}) == 1 and steps else None,
        at_steps=steps,
    )


def _entries(table: PlainTable, roles: Roles) -> list[Entry]:
    names = table.texts(roles.variant, "variant")
    tasks = _tasks(table, roles.tasks)
    steps = table.wholes(roles.step, LARGEST_STEP) if roles.step else [0] * table.size
    seeds = (
        table.wholes(roles.seed) if roles.seed else _numbered(zip(names, tasks, strict=True), stepped=bool(roles.step))
    )
    values = table.values(roles.metric)
    blank = [not cell.strip() for cell in table.columns[roles.metric]]
    return [
        Entry(RunKey(name, task, seed), step, None if empty else value)
        for name, task, seed, step, value, empty in zip(names, tasks, seeds, steps, values, blank, strict=True)
    ]


def _tasks(table: PlainTable, columns: Sequence[str]) -> list[str]:
    """The task of each row, empty where no column says it: the cells, with the column where they are numbers."""
    cells = [[_task_name(name, cell) for cell in table.texts(name, name)] for name in columns]
    return [" ".join(parts) for parts in zip(*cells, strict=True)] if cells else [""] * table.size


def _task_name(column: str, cell: str) -> str:
    return cell if number(cell) is None else f"{column}={cell}"


def _numbered(rows: Iterable[tuple[str, str]], *, stepped: bool) -> list[int]:
    """Each row's number among those of its variant and task, from 0; with steps all of these are one run."""
    seen: Counter[tuple[str, str]] = Counter()
    numbers = []
    for row in rows:
        numbers.append(0 if stepped else seen[row])
        seen[row] += 1
    return numbers


def _series(entries: Sequence[Entry]) -> dict[RunKey, Series]:
    """The values of each run along its steps; of two rows of one step the later is used.

    A step at which no run of the task has a value was not meant for the metric. Where others have one, a blank is what
    a run that diverged leaves.
    """
    logged = {(entry.run.task, entry.step) for entry in entries if entry.value is not None}
    kept: dict[RunKey, list[Entry]] = {entry.run: [] for entry in entries}
    for entry in entries:
        if (entry.run.task, entry.step) in logged:
            kept[entry.run].append(entry)
    last = {entry.run: entry for entry in entries}
    found = {run: rows or [last[run]] for run, rows in kept.items()}
    return {
        run: series_of([row.step for row in rows], [None] * len(rows), [row.value for row in rows])
        for run, rows in found.items()
    }


def _last_steps(runs: Mapping[RunKey, Series], task: str) -> dict[RunKey, int]:
    """The last step of each run of a task whose last value is one to compute with."""
    finite = {run: one for run, one in runs.items() if run.task == task and math.isfinite(one.value[-1])}
    return {run: int(one.step[-1]) for run, one in finite.items()}


def _common_steps(table: PlainTable, roles: Roles, runs: Mapping[RunKey, Series]) -> dict[str, int]:
    """For each task whose runs ended at different steps, the largest that all of its runs with a final value have."""
    found = {}
    for task in dict.fromkeys(run.task for run in runs):
        ends = _last_steps(runs, task)
        if len(set(ends.values())) < 2:
            continue
        common = functools.reduce(np.intersect1d, [runs[run].step for run in ends])
        if not common.size:
            first, last = min(ends.values()), max(ends.values())
            apart = f"runs{_of(task)} ended at different steps ({roles.step} {first} to {last}) and have none in common"
            raise table.wrong(f"{apart} at which {roles.metric} could be compared; keep rows of the same {roles.step}")
        found[task] = int(common[-1])
    return found


def _step_remark(roles: Roles, runs: Mapping[RunKey, Series], task: str, step: int) -> str:
    ends = _last_steps(runs, task)
    first = min(ends, key=lambda run: ends[run])
    seed = f", {roles.seed} {first.seed}" if roles.seed else ""
    span = f"runs{_of(task)} ended at {roles.step} {ends[first]} to {max(ends.values())}"
    shared = f"all are compared at {roles.step} {step}, the largest that all have"
    return f"different step budgets: {span}; {shared}; the first to end is {first.variant}{seed}"


def _of(task: str) -> str:
    return f" of task {task}" if task else ""


def _variants(runs: Iterable[RunKey]) -> dict[tuple[str, str], Variant]:
    """The variant of each name and task."""
    pairs = list(dict.fromkeys((run.variant, run.task) for run in runs))
    factors = {pair: {TASK: pair[1], "variant": pair[0]} if pair[1] else {"variant": pair[0]} for pair in pairs}
    cells = {pair: _cell(pair, factors[pair]) for pair in pairs}
    labels = unique_labels([(cells[pair], pair[0]) for pair in pairs], {cells[pair]: factors[pair] for pair in pairs})
    return {pair: Variant(cells[pair], labels[cells[pair]], factors[pair]) for pair in pairs}


def _cell(pair: tuple[str, str], factors: Mapping[str, str]) -> str:
    return sha256(canonical_json(factors).encode()).hexdigest() if pair[1] else pair[0]


def _loaded(
    variant: Variant, seed: int, found: Series, step: int | None, *, metric: str, step_column: str | None, study: str
) -> LoadedRun:
    """One run with its value at the step that all are compared at, else at its end."""
    earlier = step is not None and math.isfinite(found.value[-1])
    place = int(np.flatnonzero(found.step == step)[0]) if earlier else -1
    value, last = float(found.value[place]), int(found.step[-1])
    finite = math.isfinite(value)
    where = f" at {step_column} {found.step[place]}" if step_column else ""
    record = RunRecord(
        status=Status.finished if finite else Status.diverged,
        study=study,
        cell=variant.cell,
        label=variant.label,
        factors=dict(variant.factors),
        seed=seed,
        steps_planned=last,
        steps_done=last,
        metrics={metric: value if finite else None},
        error=None if finite else {"type": "not finite", "message": f"{metric} is {value}{where}"},
    )
    return LoadedRun(variant, seed, record, log=ReadLog(metric, found) if step_column else None)


def _replaced(entries: Sequence[Entry], variants: Mapping[tuple[str, str], Variant]) -> Iterable[Replaced]:
    """Each row whose run and step a later row has too, and whether that has another value."""
    later = {(entry.run, entry.step): entry for entry in entries}
    for entry in entries:
        used = later[entry.run, entry.step]
        if used is not entry:
            status = Status.finished if _known(entry.value) else Status.diverged
            differs = entry.value != used.value and (_known(entry.value) or _known(used.value))
            yield Replaced(variants[entry.run[:2]].label, entry.run.seed, status, EARLIER_ROW, differs)


def _known(value: Any) -> bool:
    return value is not None and math.isfinite(value)

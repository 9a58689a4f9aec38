"""Studies that another program trained: any tree whose run folders hold `.hydra/` and a file of metrics.

    runs       folders that hold `.hydra/`, found by `run_folders`
    variants   combinations of the overrides, and of the other config keys, that differ between runs (`foreign_cells`);
               the seed's key is none of them
    seeds      `seed`, else a key whose last part is seed, such as trainer.seed or random_seed; without one the runs are
               numbered and not paired
    value      the last record of the column; not finite there: diverged; no file or no such column: failed. Runs that
               ended at different steps are compared at the largest step that all finished ones have
    twice      of two runs of one variant and seed the one whose file was written last stands; so does the last written
               of several files of one run

How files of metrics are read is in `foreign_logs`.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ablate.records import RunFolder, RunRecord, Status
from analysis import configs
from analysis.cache import Cache
from analysis.foreign_cells import find_cells
from analysis.foreign_logs import MetricLog, ReadLog, Wanted, read_metric
from analysis.foreign_runs import ForeignRun, check_column, find_runs
from analysis.foreign_steps import ROWS, Steps, choose_steps
from analysis.load import existing, unique_labels
from analysis.progress import tracked
from analysis.run_folders import find_run_folders
from analysis.seed_key import find_seed_key, seed_of
from analysis.series import EMPTY, Series, series_of
from analysis.study import LoadedRun, Replaced, Study, StudyError, Variant


def load_runs(
    path: Path | str,
    metrics: str,
    seed_key: str | None = None,
    variant_key: str | None = None,
    step_key: str | None = None,
) -> Study:
    """Read the runs under a folder; `metrics` is FILE:COLUMN, the column being the metric, FILE a glob if need be.

    `variant_key` is the one setting that tells the variants apart, where several differ between runs; `step_key` the
    column of the files that tells the steps, where it has no usual name.
    Raises StudyError, one line with the way out: no run folders, no file that matches, no such column or key.
    """
    root, wanted = existing(Path(path)), Wanted.parse(metrics)
    folders = find_run_folders(root)
    runs = find_runs(folders, wanted)
    runs = [
        replace(run, log=read_metric(run.file, wanted.column, step_key) if run.file else None)
        for run in tracked(runs, "reading logs of runs")
    ]
    check_column(runs, wanted)
    what = f"{wanted.column} of {wanted.pattern}"
    steps = choose_steps({run.place: run.log for run in runs if run.log}, what, step_key)
    runs = [replace(run, series=_series(run.log, steps)) for run in runs]
    key = find_seed_key(runs, seed_key)
    cells = find_cells(runs, key, variant_key)
    runs = [replace(run, factors=cells.factors[run.place]) for run in runs]
    kept, lost = _newest(_with_seeds(runs, key))
    remarks = [*folders.remarks(), *cells.remarks, *_log_remarks(runs, steps, wanted)]
    return _study(root, kept, lost, wanted, remarks, paired=key is not None)


def _series(log: MetricLog | None, steps: Steps) -> Series:
    if log is None or not log.rows:
        return EMPTY
    return series_of(steps.of(log), [None] * len(log.values), log.values)


def _with_seeds(runs: Sequence[ForeignRun], seed_key: str | None) -> list[ForeignRun]:
    """Each run with its seed, or its number among the runs of its variant."""
    if seed_key is not None:
        return [replace(run, seed=seed_of(run, seed_key)) for run in runs]
    seen: Counter[str] = Counter()
    numbered = []
    for run in runs:
        numbered.append(replace(run, seed=seen[run.cell]))
        seen[run.cell] += 1
    return numbered


def _newest(runs: Sequence[ForeignRun]) -> tuple[list[ForeignRun], list[tuple[ForeignRun, ForeignRun]]]:
    """One run for each variant and seed, in order of appearance; and each of the others beside the one that stands.

    A run with values stands before one without, then the one written last.
    """
    groups: dict[tuple[str, int], list[ForeignRun]] = {}
    for run in runs:
        groups.setdefault((run.cell, run.seed), []).append(run)
    ordered = [sorted(group, key=lambda run: (run.series.step.size > 0, run.written)) for group in groups.values()]
    lost = [(run, group[-1]) for group in ordered for run in group[:-1] if run.series.step.size]
    return [group[-1] for group in ordered], lost


def _study(
    root: Path,
    runs: Sequence[ForeignRun],
    lost: Sequence[tuple[ForeignRun, ForeignRun]],
    wanted: Wanted,
    remarks: Sequence[str],
    *,
    paired: bool,
) -> Study:
    name = root.resolve().name
    cells = {run.cell: run.factors for run in runs}
    labels = unique_labels([(cell, configs.short_description(f) or name) for cell, f in cells.items()], cells)
    variants = {cell: Variant(cell, labels[cell], factors) for cell, factors in cells.items()}
    step = _common_step(name, runs, wanted)
    ordered = sorted(runs, key=lambda run: (list(cells).index(run.cell), run.seed))
    return Study(
        name=name,
        sweep="",
        variants=tuple(variants.values()),
        seeds=tuple(sorted({run.seed for run in runs})),
        loaded=tuple(_loaded(run, variants[run.cell], wanted, name, step) for run in ordered),
        replaced=tuple(_replaced(run, winner, labels[run.cell]) for run, winner in lost),
        shared_seeds=paired,
        remarks=(*remarks, *_remarks(runs, wanted, step)),
        at_step=step,
        cache=Cache(root),
    )


def _common_step(name: str, runs: Sequence[ForeignRun], wanted: Wanted) -> int | None:
    """The largest step that all runs with a final value have, when they ended at different ones; else None."""
    finite = [run.series.step for run in runs if run.finite]
    ends = sorted({int(step[-1]) for step in finite})
    if len(ends) < 2:
        return None
    common = functools.reduce(np.intersect1d, finite)
    if not common.size:
        told = f"runs of {name} ended at different steps ({ends[0]} to {ends[-1]}) and have no step in common"
        raise StudyError(f"{told} at which {wanted.column} could be compared; log it at the same steps in all runs")
    return int(common[-1])


def _loaded(run: ForeignRun, variant: Variant, wanted: Wanted, study: str, step: int | None) -> LoadedRun:
    last = int(run.series.step[-1]) if run.series.step.size else 0
    record = RunRecord(
        status=Status.failed,
        study=study,
        cell=variant.cell,
        label=variant.label,
        factors=dict(variant.factors),
        seed=run.seed,
        steps_planned=last,
        steps_done=last,
    )
    ended = _ended(run, wanted, step)
    log = ReadLog(wanted.column, run.series)
    return LoadedRun(variant, run.seed, replace(record, **ended), RunFolder(run.path), place=run.place, log=log)


def _ended(run: ForeignRun, wanted: Wanted, step: int | None) -> dict[str, Any]:
    """How the run ended: its status, and its value or what went wrong."""
    if run.file is None:
        return {"error": {"type": "no metrics", "message": f"no file matches {wanted.pattern}"}}
    if not run.series.step.size:
        columns = ", ".join(run.log.columns) if run.log else ""
        there = (
            f"no {wanted.column} in %s; there are: {columns}"
            if columns
            else "there are no records that can be read in %s"
        )
        where = run.file.relative_to(run.path).as_posix()
        return {"error": {"type": "no value", "message": there % where}}
    place = -1 if step is None or not run.finite else int(np.searchsorted(run.series.step, step))
    value, at = float(run.series.value[place]), int(run.series.step[place])
    if not np.isfinite(value):
        error = {"type": "not finite", "message": f"{wanted.column} is {value} at step {at}"}
        return {"status": Status.diverged, "metrics": {wanted.column: None}, "error": error}
    return {"status": Status.finished, "metrics": {wanted.column: value}}


def _replaced(run: ForeignRun, winner: ForeignRun, label: str) -> Replaced:
    status = Status.finished if run.finite else Status.diverged
    ended = datetime.fromtimestamp(run.written // 10**9, UTC).isoformat()
    differs = not np.array_equal(run.series.value[-1:], winner.series.value[-1:], equal_nan=True)
    return Replaced(label, run.seed, status, f"{ended} in {run.place}", differs)


def _remarks(runs: Sequence[ForeignRun], wanted: Wanted, step: int | None) -> Iterable[str]:
    if step is not None:
        ends = {int(run.series.step[-1]): run.place for run in reversed(runs) if run.finite}
        shared = f"all are compared at step {step}, the largest that all have"
        shortest = f"the first to end is {ends[min(ends)]}"
        yield f"different step budgets: runs ended at steps {min(ends)} to {max(ends)}; {shared}; {shortest}"


def _log_remarks(runs: Sequence[ForeignRun], steps: Steps, wanted: Wanted) -> Iterable[str]:
    """What a reader must know of how the files were read."""
    several = sum(run.files > 1 for run in runs)
    if several:
        yield f"several files match {wanted.pattern} in {several} of {len(runs)} runs; the one written last was read"
    if steps.key == ROWS:
        yield f"{wanted.pattern} has no known column of steps for {wanted.column}: steps are row numbers"
    elif steps.key != "step":
        yield f"steps are the column {steps.shown} of {wanted.pattern}"
    wrong = [(run.log.wrong, run.place) for run in runs if run.log and run.log.wrong]
    if wrong:
        (first, *_), place = wrong[0]
        count = sum(len(cells) for cells, _ in wrong)
        cells = "1 cell" if count == 1 else f"{count} cells"
        yield f"left out: {cells} of {wanted.column} without a number, such as {first!r} in {place}"
    back = [run for run in runs if run.log and run.log.rows and steps.of(run.log)[-1] < run.series.step[-1]]
    if back:
        last, most = steps.of(back[0].log)[-1], back[0].series.step[-1]  # type: ignore[arg-type]
        kept = f"such as {back[0].place}, at {last} after {most}; its value at {most} is from before it went back"
        yield f"{len(back)} of {len(runs)} runs went back and did not reach their highest step again, {kept}"

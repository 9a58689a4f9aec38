"""Studies written through `ablate.records`, as a sweep would leave them, for the tests of the analysis."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ablate.records import PlannedCell, RunFolder, RunRecord, Status, StudyFolder, SweepPlan
from analysis.study import LoadedRun, Study, Variant

Change = Callable[[RunRecord], RunRecord | None]
FIRST_SWEEP = "20260101T000000-aaaa"
METRIC = "eval/loss"

CONFIG = """\
seed: {seed}
study: copy_repeat
rope_percentage: 1.0
model:
  attention:
    _target_: ablate.models.attention.{label}
task:
  seq_len: 64
training:
  steps: 100
evaluation:
  sequences: 2048
seeds:
  init: null
  data: null
  dropout: null
runtime:
  device: cpu
sweep:
  dry_run: false
"""


def planned(label: str, factors: Mapping[str, Any] | None = None) -> PlannedCell:
    """A cell whose folder's name says nothing, so that nothing can be parsed from it."""
    chosen = dict(factors) if factors is not None else {"attention": label}
    cell = sha256(f"{label}{sorted(chosen)}".encode()).hexdigest()
    return PlannedCell(cell=cell, label=label, factors=chosen, folder=f"x-{cell[:8]}", overrides=[])


def record(cell: PlannedCell, seed: int, value: float | None, metric: str = METRIC) -> RunRecord:
    """A finished run with one metric; None for a value that was not a finite number."""
    return RunRecord(
        status=Status.finished,
        study="copy_repeat",
        cell=cell.cell,
        label=cell.label,
        factors=cell.factors,
        seed=seed,
        metrics={metric: value},
        steps_planned=100,
        steps_done=100,
        tokens=6400,
        seconds=25.0,
        device="cpu",
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:00:25+00:00",
        source="a" * 16,
    )


def ending(status: Status, message: str = "boom") -> Change:
    """A run that ended (or not) otherwise than finished."""
    error = {"type": "RuntimeError", "message": message}
    return lambda run: replace(run, status=status, metrics={}, error=error, steps_done=50)


def changed(**values: Any) -> Change:
    """A run with other values in its record."""
    return lambda run: replace(run, **values)


def measured(lengths: Sequence[int], parameters: int = 1000) -> Change:
    """A run that was evaluated at other lengths too, 0.001 per token beyond its value, with that many parameters."""

    def change(run: RunRecord) -> RunRecord:
        value = run.metrics[METRIC]
        more = {f"eval/loss@{n}": None if value is None else value + 0.001 * n for n in lengths}
        return replace(run, metrics={**run.metrics, **more}, parameters=parameters)

    return change


def never_started(_: RunRecord) -> None:
    """A planned run that has no folder."""


def curve(value: float, steps: Sequence[int] = range(0, 101, 20)) -> list[dict[str, Any]]:
    """Evaluations along the way, falling to about `value`."""
    return [
        {"step": s, "tokens": s * 64, "seconds": s / 4, "split": "eval", "loss": value + float(np.exp(-s / 25))}
        for s in steps
    ]


def write_study(
    path: Path,
    values: Mapping[str, Sequence[float | None]],
    *,
    seeds: Sequence[int] | None = None,
    changes: Mapping[tuple[str, int], Change] | None = None,
    factors: Mapping[str, Mapping[str, Any]] | None = None,
    looks: Sequence[int] = (),
    metric: str = METRIC,
    sweep: str = FIRST_SWEEP,
    curves: bool = False,
) -> StudyFolder:
    """Write a study with one more sweep: label to one value per seed (the first ones when there are fewer values)."""
    folder = StudyFolder(path)
    chosen = list(seeds if seeds is not None else range(max(map(len, values.values()))))
    cells = [planned(label, (factors or {}).get(label)) for label in values]
    for cell in cells:
        for seed, value in zip(chosen, values[cell.label], strict=False):
            change = (changes or {}).get((cell.label, seed), lambda run: run)
            write_run(folder.run(cell.folder, seed), change(record(cell, seed, value, metric)), curves=curves)
    each = [{cell.cell: chosen[: -(-n // len(cells))] for cell in cells} for n in looks]
    looked = [{"time": "2026-01-01T01:00:00+00:00", "seeds": seeds} for seeds in each]
    folder.write_sweep(
        SweepPlan(
            id=sweep,
            created="2026-01-01T00:00:00+00:00",
            command="python -m ablate.run -m attention=rope,roper",
            study="copy_repeat",
            cells=cells,
            seeds=chosen,
            looks=looked,
        )
    )
    return folder


def write_run(run: RunFolder, result: RunRecord | None, *, curves: bool = False, config: str = CONFIG) -> None:
    """The files of one run; nothing for None."""
    if result is None:
        return
    run.path.mkdir(parents=True, exist_ok=True)
    run.config.write_text(config.format(seed=result.seed, label=result.label), encoding="utf-8")
    if curves:
        value = next(iter(result.metrics.values()), None)
        run.append_metrics(curve(0.5 if value is None else value))
    run.write(result)


def study_of(values: Mapping[str, Sequence[float | None]], **changes: Any) -> Study:
    """The same study without files: label to one value per seed."""
    variants = {label: Variant(label, label, {"attention": label}) for label in values}
    runs = [
        LoadedRun(variants[label], seed, record(planned(label), seed, value))
        for label, arm in values.items()
        for seed, value in enumerate(arm)
    ]
    seeds = tuple(range(max(map(len, values.values()))))
    return Study("copy_repeat", "memory", tuple(variants.values()), seeds, tuple(runs), **changes)


def damage(folder: StudyFolder, label: str, seed: int) -> None:
    """Cut a run's record short, as a full disk would."""
    path = folder.run(planned(label).folder, seed).record
    path.write_bytes(path.read_bytes()[:40])


def noise(seed: int, n: int, *, mean: float = 0.45, sd: float = 0.02) -> list[float]:
    """Normal values that look like final losses."""
    return [float(value) for value in np.random.default_rng(seed).normal(mean, sd, n)]


def shift_source(folder: StudyFolder) -> None:
    """Give the first run the source fingerprint of other code."""
    run = folder.runs()[0]
    found = run.read()
    assert found is not None
    run.write(replace(found, source="b" * 16))


def suite(
    path: Path,
    arms: Mapping[str, Sequence[float | None]],
    *,
    shifts: Mapping[str, float],
    leave_out: Collection[tuple[str, str]] = (),
    values: Mapping[tuple[str, str], Sequence[float | None]] | None = None,
    changes: Mapping[tuple[str, str, int], Change] | None = None,
    **more: Any,
) -> StudyFolder:
    """A study of several tasks: on each task every arm with its values shifted, but for the pairs (task, arm) left out.

    `values` gives a pair other values; `changes` are by task, arm and seed. Labels are the task's name and the arm's.
    """
    pairs = [(task, arm) for task in shifts for arm in arms if (task, arm) not in leave_out]
    shifted = {
        (task, arm): (values or {}).get((task, arm), [None if v is None else v + shifts[task] for v in arms[arm]])
        for task, arm in pairs
    }
    return write_study(
        path,
        {f"{task} {arm}": shifted[task, arm] for task, arm in pairs},
        factors={f"{task} {arm}": {"task": task, "attention": arm} for task, arm in pairs},
        changes={(f"{task} {arm}", seed): change for (task, arm, seed), change in (changes or {}).items()},
        **more,
    )

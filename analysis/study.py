"""A study in memory: its variants, every planned run with its outcome, and the tidy tables made from them.

`load` fills it from a folder or a CSV file; nothing here reads run.json or a plan. A run is one row whatever became of
it: what is missing, damaged or failed is counted, never dropped.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from ablate.records import RunFolder, RunRecord, Status, StudyFolder
from analysis import formatting
from analysis.cache import Cache
from analysis.curves import INDEX, Log, read_all
from analysis.mixture import mixed_arithmetic, mixed_code
from analysis.series import Series

FIXED_COLUMNS = ("label", "cell", "seed", "status", "reason")
COST_COLUMNS = ("steps_done", "steps_planned", "tokens", "seconds", "tokens_per_second", "parameters", "device")

ENDED = ("finished", "diverged", "failed", "pruned")
"""Statuses of a run that ended."""

EARLIER_ROW = "in an earlier row"
"""When a result of a plain table ended that a later row replaces."""

MACHINE_ERRORS = ("ProcessDied", "MemoryError", "OutOfMemoryError", "OSError")
"""Types of errors that speak of the machine: killed, out of memory, a disk that is full, a node that was lost."""

TOO_LARGE = 1e100
"""A value beyond this is that of a run that diverged; its square would overflow."""


class StudyError(ValueError):
    """A study that cannot be read or compared as asked; the message is one line for the user, with the way out."""


@dataclass(frozen=True)
class Variant:
    """One cell as the sweep calls it. `cell` is its identity; factors that it lacks are absent."""

    cell: str
    label: str
    factors: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What one run says about one metric.

    `kind` is "ok", "diverged" or "failed" (both count against the variant) or a status that is no outcome yet or ever:
    "missing", "running", "interrupted", "damaged", "pruned". `machine` says that a run failed for want of memory, disk
    or a living process, which speaks of the machine and not of the variant.
    """

    kind: str
    value: float | None = None
    reason: str = ""
    machine: bool = False


@dataclass(frozen=True)
class LoadedRun:
    """One planned run: `record` is None when there is none that can be read, and `damage` then says why.

    `log` is what it logged along the way, None when there is nothing to read; `place` is its folder in the study.
    """

    variant: Variant
    seed: int
    record: RunRecord | None = None
    folder: RunFolder | None = None
    damage: str = ""
    log: Log | None = None
    place: str = ""

    @property
    def status(self) -> str:
        """The record's status, or "damaged" or "missing"."""
        if self.record is not None:
            return str(self.record.status)
        return "damaged" if self.damage else "missing"

    @property
    def is_result(self) -> bool:
        """Whether training the run again would only repeat what is known."""
        return self.record is not None and self.record.status.is_result

    def outcome(self, metric: str) -> Outcome:
        """What this run says about a metric; a finished run that lacks it, or stopped early, has failed."""
        if self.record is None:
            return Outcome(self.status, reason=self.damage)
        if self.record.status is not Status.finished:
            return Outcome(self.status, reason=self._error, machine=self._is_machines)
        if self.record.steps_done < self.record.steps_planned:
            reason = f"incomplete: {self.record.steps_done} of {self.record.steps_planned} steps"
            return Outcome("failed", reason=reason)
        return self._final(self.record.metrics, metric)

    @staticmethod
    def _final(metrics: Mapping[str, float | None], metric: str) -> Outcome:
        """What the metrics of a finished run say."""
        if metric not in metrics:
            return Outcome("failed", reason=f"finished without {metric}")
        value = metrics[metric]
        if value is None or not math.isfinite(value):
            return Outcome("diverged", reason=f"{metric} is not a finite number")
        if abs(value) > TOO_LARGE:
            return Outcome("diverged", reason=f"{metric} is {value:.2g}, too large to compute with")
        return Outcome("ok", float(value))

    @property
    def _is_machines(self) -> bool:
        error = (self.record.error if self.record is not None else None) or {}
        return error.get("type") in MACHINE_ERRORS or "out of memory" in str(error.get("message", "")).lower()

    @property
    def _error(self) -> str:
        error = self.record.error if self.record is not None else None
        lines = str(error.get("message", "")).splitlines() if error else []
        return f"{error.get('type', 'error')}: {lines[0]}" if error and lines else str((error or {}).get("type", ""))


class Blocks(NamedTuple):
    """A sweep adds seeds in blocks until decided: the size of a block, and the most seeds there may be."""

    size: int
    most: int

    @property
    def looks(self) -> tuple[int, ...]:
        """The numbers of seeds at which results are looked at, if none is decided before."""
        return (*range(self.size, self.most, self.size), self.most)


@dataclass(frozen=True)
class Look:
    """Results were looked at when the runs of these seeds of each of these cells had ended, well or badly.

    `planned` are all seeds of each cell that the sweeps until then had asked for; None when their number hung on
    results.
    """

    seeds: Mapping[str, frozenset[int]]
    planned: Mapping[str, frozenset[int]] | None = None


@dataclass(frozen=True)
class Stopped:
    """A sweep that adds seeds until decided stopped this cell at so many seeds, and why."""

    seeds: int
    why: str


@dataclass(frozen=True)
class Replaced:
    """An earlier result that a rerun replaced, and whether any of their shared final metrics differ."""

    label: str
    seed: int
    status: str
    ended: str
    differs: bool


@dataclass(frozen=True)
class Part:
    """Which task of a study of several this is; `labels` are those of the variants of all tasks, in order."""

    task: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """All that an analysis needs. `seeds` are the planned ones, in order; the first variant is the plan's baseline.

    `shared_seeds` is False when equal seed numbers of two variants have nothing in common, so pairing would be wrong.
    `declared` is the question of the sweep's plan. `until` is how its sweep adds seeds until decided (None for planned
    seeds), `stopped` the cells that were decided, `open_ended` all cells whose number of seeds hung on results: how
    they were added, None when that was changed on the way. `part` is set when this is one task of a study of several.
    `remarks` are what else a reader must know, one line each. `at_step` is where all runs are compared when that is not
    the end of each, `at_steps` the same by task. `cache` keeps what was read of the logs. `folder` is where looks at
    these results are noted, None for results of another program.
    """

    name: str
    sweep: str
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    loaded: tuple[LoadedRun, ...]
    looks: tuple[Look, ...] = ()
    problems: tuple[str, ...] = ()
    replaced: tuple[Replaced, ...] = ()
    shared_seeds: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    declared: Mapping[str, Any] = field(default_factory=dict)
    until: Mapping[str, Any] | None = None
    stopped: Mapping[str, Stopped] = field(default_factory=dict)
    open_ended: Mapping[str, Blocks | None] = field(default_factory=dict)
    part: Part | None = None
    remarks: tuple[str, ...] = ()
    at_step: int | None = None
    at_steps: Mapping[str, int] = field(default_factory=dict)
    cache: Cache = field(default_factory=Cache)
    folder: StudyFolder | None = None

    @functools.cached_property
    def ended(self) -> dict[str, frozenset[int]]:
        """The seeds of each cell whose runs have ended, well or badly: what a look at these results sees."""
        found: dict[str, set[int]] = {variant.cell: set() for variant in self.variants}
        for run in self.loaded:
            if run.status in ENDED:
                found[run.variant.cell].add(run.seed)
        return {cell: frozenset(seeds) for cell, seeds in found.items()}

    @functools.cached_property
    def planned(self) -> dict[str, frozenset[int]]:
        """The seeds of each cell that this study holds, with or without a result."""
        found: dict[str, set[int]] = {variant.cell: set() for variant in self.variants}
        for run in self.loaded:
            found[run.variant.cell].add(run.seed)
        return {cell: frozenset(seeds) for cell, seeds in found.items()}

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """The place of each variant by its label, which decides its style; the same in every task of a study."""
        labels = self.part.labels if self.part else [variant.label for variant in self.variants]
        return {label: place for place, label in enumerate(labels)}

    @functools.cached_property
    def metrics(self) -> list[str]:
        """The names of all final metrics that any run holds."""
        return sorted({name for run in self.records for name in run.metrics})

    @property
    def records(self) -> list[RunRecord]:
        """The records that could be read."""
        return [run.record for run in self.loaded if run.record is not None]

    @functools.cached_property
    def factor_names(self) -> list[str]:
        """The factors in the order in which the variants name them."""
        return list(dict.fromkeys(name for variant in self.variants for name in variant.factors))

    @property
    def mixed_code(self) -> bool:
        """Whether runs that ended come from more than one state of the source code."""
        return mixed_code(self.records)

    @property
    def mixed_arithmetic(self) -> list[str]:
        """What runs that ended differ in of threads, device and torch, with the values; empty where in nothing."""
        return mixed_arithmetic(self.records)

    def of(self, variant: Variant) -> list[LoadedRun]:
        """The runs of one variant, in the order of the plan."""
        return [run for run in self.loaded if run.variant is variant]

    def variant(self, label: str) -> Variant:
        """The variant of that label. Raises StudyError listing the labels there are."""
        for variant in self.variants:
            if variant.label == label:
                return variant
        labels = ", ".join(variant.label for variant in self.variants)
        raise StudyError(f"no variant {label!r} in study {self.name}; there are: {labels}")

    @functools.cached_property
    def runs(self) -> pd.DataFrame:
        """One row per planned run: label, cell, seed, status, reason, factors, final metrics, cost.

        Factors keep their type (lists and dicts as canonical JSON text, so that rows can be grouped); one that the cell
        lacks is None. Metrics are float64, NaN where a run has none.
        """
        columns = [*FIXED_COLUMNS, *map(self.factor_column, self.factor_names), *self.metrics, *COST_COLUMNS]
        frame = pd.DataFrame([self._row(run) for run in self.loaded], columns=columns)
        assert len(frame) == len(self.loaded), "a run was lost on the way into the table"
        whole = dict.fromkeys(("steps_done", "steps_planned", "tokens", "parameters"), "Int64")
        return frame.astype({**dict.fromkeys(self.metrics, "float64"), **whole})

    @functools.cached_property
    def curves(self) -> pd.DataFrame:
        """All that was logged, long: label, seed, split, step, tokens, seconds, name, value.

        A step logged twice (by a resumed run) counts once, as it was logged last.
        """
        columns = ["label", "seed", *INDEX, "name", "value"]
        rows = [
            {"label": run.variant.label, "seed": run.seed, **row}
            for run in self.loaded
            if run.log is not None
            for row in run.log.rows()
        ]
        return pd.DataFrame(rows, columns=columns).astype({"step": "int64", "value": "float64"})

    @functools.cached_property
    def _series(self) -> dict[str, list[Series]]:
        return {}

    def series(self, metric: str) -> list[tuple[LoadedRun, Series]]:
        """One metric along every run, in the order of `loaded`; empty series where nothing was logged."""
        if metric not in self._series:
            self._series[metric] = read_all([run.log for run in self.loaded], metric, self.cache)
        return list(zip(self.loaded, self._series[metric], strict=True))

    def factor_column(self, name: str) -> str:
        """The column of a factor: its name, or factor.<name> where a fixed column or a metric has that name."""
        taken = {*FIXED_COLUMNS, *COST_COLUMNS, *self.metrics}
        return f"factor.{name}" if name in taken else name

    def _row(self, run: LoadedRun) -> dict[str, Any]:
        fixed = (run.variant.label, run.variant.cell, run.seed, run.status, _first_reason(run))
        factors = {self.factor_column(name): _plain(value) for name, value in run.variant.factors.items()}
        row: dict[str, Any] = dict(zip(FIXED_COLUMNS, fixed, strict=True)) | factors
        if run.record is not None:
            row |= {name: run.record.metrics.get(name) for name in self.metrics}
            row |= {name: getattr(run.record, name) for name in COST_COLUMNS}
        return row


def _first_reason(run: LoadedRun) -> str:
    return run.outcome("").reason if run.status != "finished" else ""


def _plain(value: Any) -> Any:
    """A factor's value as one cell of a table can hold it."""
    return formatting.factor_value(value) if isinstance(value, list | tuple | dict) else value

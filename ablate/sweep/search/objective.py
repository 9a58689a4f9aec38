"""What a trial is worth: the mean over its seeds of what its runs recorded, or the reason why it has no value.

Read from the runs' records; what a launcher returns is not used.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ablate.config.errors import ConfigError, nearest
from ablate.config.schema import Direction, SweepConfig
from ablate.directions import direction_of
from ablate.records import RunRecord, Status
from ablate.sweep.search.settings import Settings, as_list

COSTS = ("seconds", "train_seconds", "tokens_per_second", "peak_memory_bytes", "parameters")
"""What a run records beside its metrics."""


class Objective(NamedTuple):
    """One number to make small or large."""

    metric: str
    direction: str


class Measured(NamedTuple):
    """What came of a trial: its values, or why it has none; `pruned` when a run was stopped early on purpose."""

    values: list[float] | None
    reason: str = ""
    pruned: bool = False


def final_metrics(metrics: Sequence[str]) -> list[str]:
    """Return what an objective or a constraint may name."""
    return [*metrics, *COSTS]


def objectives_of(settings: Settings, sweep: SweepConfig, metrics: Sequence[str]) -> list[Objective]:
    """Return the objectives; raises ConfigError for one that no run records."""
    named = as_list(settings.metric) or [sweep.metric]
    for metric in named:
        if metric not in final_metrics(metrics):
            known = nearest(metric, final_metrics(metrics))
            raise ConfigError(f"hydra.sweeper.metric={metric}: no final metric of these runs; {known}")
    if len(set(named)) < len(named):
        raise ConfigError(f"hydra.sweeper.metric={settings.metric}: names one metric twice")
    directions = as_list(settings.direction) or [_usual(metric, sweep) for metric in named]
    return [Objective(*pair) for pair in zip(named, directions, strict=True)]


def _usual(metric: str, sweep: SweepConfig) -> str:
    if metric == sweep.metric and sweep.direction is not None:
        return "minimize" if sweep.direction is Direction.lower else "maximize"
    known = direction_of(metric)
    if known is None:
        rule = "give hydra.sweeper.direction=minimize or hydra.sweeper.direction=maximize (a list for several metrics)"
        raise ConfigError(f"hydra.sweeper.metric={metric}: the name does not say which way is better; {rule}")
    return "minimize" if known == "lower" else "maximize"


def measure(objectives: Sequence[Objective], runs: Sequence[tuple[int, RunRecord | None]]) -> Measured:
    """Return what a trial is worth from the records of its runs, pairs of seed and record."""
    for seed, record in runs:
        if record is not None and record.status is Status.pruned:
            return Measured(None, f"seed {seed} was stopped at step {record.steps_done}", pruned=True)
    for seed, record in runs:
        if fault := _fault(record, objectives):
            return Measured(None, f"seed {seed}: {fault}")
    per_seed = [[value_of(record, one.metric) for one in objectives] for _, record in runs if record is not None]
    return Measured([math.fsum(values) / len(values) for values in zip(*per_seed, strict=True)])


def mean_of(metric: str, runs: Sequence[tuple[int, RunRecord | None]]) -> float | None:
    """Return the mean of a metric over the runs that have it as a finite number; None for none."""
    found = [value_of(record, metric) for _, record in runs if record is not None]
    values = [float(value) for value in found if isinstance(value, int | float) and math.isfinite(value)]
    return math.fsum(values) / len(values) if values else None


def _fault(record: RunRecord | None, objectives: Sequence[Objective]) -> str:
    if record is None:
        return "was not trained"
    if record.status is not Status.finished:
        error = record.error or {}
        return ": ".join([record.status.value, *filter(None, (error.get("type"), error.get("message")))])
    for one in objectives:
        value = value_of(record, one.metric)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return f"{one.metric} is {'missing' if value is None else value}, not a finite number"
    return ""


def value_of(record: RunRecord, metric: str) -> Any:
    """Return what a run recorded under this name, None for nothing."""
    return getattr(record, metric) if metric in COSTS else record.metrics.get(metric)

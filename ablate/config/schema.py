"""The typed root of every run's config: plain dataclasses, registered first in the defaults list.

A misspelt key or a wrong type in these sections fails while the config is composed. The swappable leaves (model, task,
optimizer, schedule) are YAML with `_target_`; their schema is the constructor's signature and `preflight` checks it.
Imports the standard library only, so that training and tests can use the sections without Hydra.
"""

from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any


class Precision(StrEnum):
    """Arithmetic of the forward and backward pass; parameters and optimiser state stay float32."""

    float32 = "float32"
    bf16 = "bf16"


class Device(StrEnum):
    """Where a run trains: `auto` is CUDA when there is a usable device, else the CPU."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Rerun(StrEnum):
    """Which runs that already have a record are trained again (interrupted ones continue, except with `none`)."""

    none = "none"
    failed = "failed"
    stale = "stale"
    finished = "finished"


class Until(StrEnum):
    """When a sweep is done: after its planned seeds, or when every comparison with the baseline is decided."""

    planned = "planned"
    decided = "decided"


class Direction(Enum):
    """Which values of a metric are better (not a StrEnum: text has a method `lower`)."""

    lower = "lower"
    higher = "higher"


class Transform(StrEnum):
    """The scale on which a metric is compared: as it is, or its logarithm."""

    none = "none"
    log = "log"


class Progress(StrEnum):
    """How progress is shown: `auto` is `rich` on a terminal and `plain` lines elsewhere."""

    auto = "auto"
    rich = "rich"
    plain = "plain"
    off = "off"


@dataclass(kw_only=True)
class TrainingConfig:
    """How a run trains. `log_every` is the window, in steps, over which the logged training loss is averaged."""

    steps: int = 1000
    batch_size: int = 16
    eval_every: int = 250
    log_every: int = 10
    grad_clip: float | None = 1.0
    precision: Precision = Precision.float32


@dataclass(kw_only=True)
class EvaluationConfig:
    """The fixed evaluation set: `sequences` at the end of a run, the first `curve_sequences` of them along the way.

    `lengths` are other lengths, in positions, at which the task is evaluated too, each on as many sequences. `problems`
    and `curve_problems` are likewise the held-out problems answered by generation, for tasks that can be scored so.
    """

    sequences: int = 2048
    curve_sequences: int = 256
    lengths: list[int] = field(default_factory=list)
    problems: int = 128
    curve_problems: int = 32
    batch_size: int = 64
    seed: int = 20220627


@dataclass(kw_only=True)
class SeedsConfig:
    """The named random streams; null means the run's `seed`."""

    init: int | None = None
    data: int | None = None
    dropout: int | None = None


@dataclass(kw_only=True)
class RuntimeConfig:
    """Everything that cannot change a result but for its last digits; not part of a run's identity.

    `device` and `threads` change the order in which numbers are added: they are recorded with each run, and tables say
    where runs of several are averaged (`analysis.mixture`).
    On a machine with GPUs the local pool trains `runs_per_device` runs at once on each visible one.
    `threads` are torch's threads per run. `checkpoint_every` is in steps, 0 for a checkpoint at the end only. `note` is
    free text kept with the sweep. `sweep_id` is set by the sweeper.
    """

    output_dir: str = "multirun"
    device: Device = Device.auto
    runs_per_device: int = 1
    threads: int = 1
    checkpoint_every: int = 250
    progress: Progress = Progress.auto
    note: str = ""
    sweep_id: str | None = None


@dataclass(kw_only=True)
class SweepConfig:
    """What a sweep (`-m`) asks, what it does with runs that are there already, and when it stops.

    `metric` to `reference` declare, before there is a result, what will be compared: the final metric, which values are
    better (null: by its name), its scale, the value that solves the task, and the smallest difference of interest
    (0.01, or "2%" of the baseline's mean). `reference` says what scores 0 and 1 over several tasks: two values of the
    metric ([0, 1]), by task ({copy: [0, 1]}), or two variants ([none, rope]); null: relative to the baseline. They are
    kept with the plan and are the report's defaults.
    With `until=decided` seeds are added in blocks of `block`, at most `max_seeds` (null: 40, or the seeds given).
    """

    metric: str = "eval/loss"
    direction: Direction | None = None
    transform: Transform = Transform.none
    threshold: float | None = None
    margin: int | float | str | None = None
    reference: Any = None
    until: Until = Until.planned
    block: int | None = None
    max_seeds: int | None = None
    rerun: Rerun = Rerun.failed
    dry_run: bool = False
    fail_fast: bool = False


@dataclass(kw_only=True)
class RunConfig:
    """One run: a cell (everything but `seed`, `study`, `runtime` and `sweep`) with one seed."""

    seed: int = 0
    study: str = "study"
    rope_percentage: float = 1.0
    model: Any = None
    task: Any = None
    optimizer: Any = None
    schedule: Any = None
    training: TrainingConfig = field(default_factory=TrainingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seeds: SeedsConfig = field(default_factory=SeedsConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    sweep: SweepConfig = field(default_factory=SweepConfig)

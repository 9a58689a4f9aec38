"""The options of the launchers (`hydra.launcher`), checked before anything is written, and what they say of where.

One table for each of conf/hydra/launcher; what a key means stands there. Other people's launchers are left alone.
"""

import importlib
import importlib.util
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from omegaconf import DictConfig, OmegaConf
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ablate.config.errors import ConfigError, nearest


def _true(holds: bool) -> None:
    if not holds:
        raise ValueError


def _whole_above_one(value: float) -> float:
    _true(value <= 1 or value == int(value))
    return value


def _not_zero(value: int) -> int:
    _true(value >= 1 or value == -1)
    return value


def _of_jobs(value: int | str) -> int | str:
    _true(re.fullmatch(r"all|([1-9]\d*\s*\*\s*)?n_jobs|[1-9]\d*", str(value)) is not None)
    return value


def _of_batch(value: int | str) -> int | str:
    _true(re.fullmatch(r"auto|[1-9]\d*", str(value)) is not None)
    return value


COUNT, COUNT_OR_NONE = "a whole number of at least 1", "a whole number of at least 1, or null"
FROM_ZERO = "a whole number of at least 0"
TEXT = "text, or null"
Count = Annotated[int, Field(ge=1, description=COUNT)]
FromZero = Annotated[int, Field(ge=0, description=FROM_ZERO)]
Seconds = Annotated[float, Field(gt=0, le=3600, description="a number of seconds above 0 and up to 3600")]
Text = Annotated[str | int | None, Field(description=TEXT)]
Name = Annotated[str, Field(pattern=r"^[^\s/]+$", description="a name without spaces and slashes")]
Folder = Annotated[str, Field(min_length=1, description="a folder")]
Share = AfterValidator(_whole_above_one)


class Options(BaseModel):
    """Options of one launcher; a field's description says what its value must be."""

    model_config = ConfigDict(strict=True, extra="allow")
    more: ClassVar[frozenset[str]] = frozenset()
    """Keys that what is behind the launcher takes as well, and judges itself."""


class Joblib(Options):
    """conf/hydra/launcher/local.yaml."""

    n_jobs: Annotated[int, AfterValidator(_not_zero), Field(description=f"{COUNT}, or -1 for one per core")]
    batch_size: Annotated[int | str, AfterValidator(_of_batch), Field(description=f"{COUNT}, or auto")]
    pre_dispatch: Annotated[
        int | str, AfterValidator(_of_jobs), Field(description="a number of runs, n_jobs, 2*n_jobs or the like, or all")
    ]
    backend: Annotated[Literal["loky"], Field(description="loky: runs need processes of their own")] = "loky"
    prefer: Annotated[Literal["processes"] | None, Field(description="processes, or null")] = None
    require: Annotated[None, Field(description="null: runs need processes of their own")] = None
    more: ClassVar[frozenset[str]] = frozenset(["verbose", "timeout", "temp_folder", "max_nbytes", "mmap_mode"])


class _Submitit(Options):
    submitit_folder: Folder
    poll_s: Seconds
    timeout_min: Count
    max_num_timeout: FromZero = 0
    name: Name = "ablate"
    setup: Annotated[list[str] | None, Field(description="a list of commands, or null")] = None


class SubmititLocal(_Submitit):
    """conf/hydra/launcher/submitit_local.yaml."""

    n_jobs: Count
    signal_delay_s: FromZero = 30
    more: ClassVar[frozenset[str]] = frozenset(["stderr_to_stdout"])


class SubmititSlurm(_Submitit):
    """conf/hydra/launcher/submitit_slurm.yaml."""

    signal_delay_s: FromZero
    partition: Text = None
    account: Text = None
    qos: Text = None
    constraint: Text = None
    exclude: Text = None
    gres: Text = None
    cpus_per_task: Annotated[int | None, Field(ge=1, description=COUNT_OR_NONE)] = None
    mem_gb: Annotated[float | None, Field(gt=0, description="a number of GB above 0, or null")] = None
    gpus_per_node: Annotated[int | None, Field(ge=0, description=f"{FROM_ZERO}, or null")] = None
    array_parallelism: Count = 256
    max_submitted: Annotated[int | None, Field(ge=1, description=COUNT_OR_NONE)] = None
    additional_parameters: Annotated[
        dict[str, str | int | float | bool | None] | None, Field(description="a mapping such as {mail-type: END}")
    ] = None


class Ray(Options):
    """conf/hydra/launcher/ray.yaml."""

    address: Annotated[str, Field(description="local, auto, HOST:PORT or ray://HOST:PORT")]
    n_jobs: Count
    cpus_per_run: Annotated[float, Field(gt=0), Share, Field(description="above 0; above 1 a whole number")]
    gpus_per_run: Annotated[float, Field(ge=0), Share, Field(description="0 or more; above 1 a whole number")]


OWN = "hydra_plugins.ablate_launchers"
LAUNCHERS: dict[str, type[Options]] = {
    "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher": Joblib,
    f"{OWN}.SubmititLocalLauncher": SubmititLocal,
    f"{OWN}.SubmititSlurmLauncher": SubmititSlurm,
    f"{OWN}.RayLauncher": Ray,
}


def check(launcher: Mapping[str, Any]) -> None:
    """Raise ConfigError with a line for each option of a resolved `hydra.launcher` that no launch could use."""
    kind = LAUNCHERS.get(str(launcher.get("_target_")))
    if kind is None:
        return
    given = {key: value for key, value in launcher.items() if not key.startswith("_")}
    known = {*kind.model_fields, *kind.more, *(_of_submitit() if kind is SubmititSlurm else ())}
    faults = [f"{_key(key)}: no such key; {nearest(_key(key), map(_key, known))}" for key in given if key not in known]
    try:
        kind.model_validate(given)
    except ValidationError as error:
        wrong = dict.fromkeys(str(one["loc"][0]) for one in error.errors())
        faults += [_fault(key, given, kind) for key in wrong]
    if faults:
        raise ConfigError("\n".join(faults))


def _fault(key: str, given: Mapping[str, Any], kind: type[Options]) -> str:
    value = f"={given[key]}" if key in given else ""
    return f"{_key(key)}{value}: must be {kind.model_fields[key].description}"


def _key(key: str) -> str:
    return f"hydra.launcher.{key}"


def _of_submitit() -> Iterable[str]:
    """Return what submitit takes for Slurm beside the options of ours; these have names of its own in our files."""
    if importlib.util.find_spec("submitit") is None:  # which the launcher says
        return ()
    taken = importlib.import_module("submitit.slurm.slurm").SlurmExecutor._valid_parameters()
    ours = {"job_name", "time", "mem", "map_count", "num_gpus", "ntasks_per_node"}
    return (set(taken) - ours) | {"nodes", "tasks_per_node"}


def resolved(config: DictConfig) -> dict[str, Any]:
    """Return `hydra.launcher` of a composed config as plain values."""
    values = OmegaConf.to_container(config.hydra.launcher, resolve=True)
    return {str(key): value for key, value in values.items()} if isinstance(values, dict) else {}


def trains_elsewhere(launcher: Mapping[str, Any]) -> bool:
    """Whether the runs are trained on other machines, whose devices cannot be seen from here."""
    kind = LAUNCHERS.get(str(launcher.get("_target_")))
    return kind is SubmititSlurm or (kind is Ray and launcher.get("address") != "local")

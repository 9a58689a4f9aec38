"""The thin adapters through which Hydra 1.3 finds ablate's launchers; it accepts plugins from this namespace only.

They check at once, before a plan is written, that what they need is there. Hydra imports this module at every start, so
submitit and Ray are imported when asked for.
"""

import importlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf


class ClusterLauncher(Launcher):
    """Keeps what Hydra supplies; `stop_file` is set by the sweep, and once it is there nothing new is begun."""

    stop_file: Any = None

    @property
    def at_once(self) -> int | None:
        """How many runs are trained at a time; None where the cluster decides."""
        return None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra supplies."""
        self.hydra_context, self.task_function, self.config = hydra_context, task_function, config


class SubmititLauncher(ClusterLauncher):
    """Hands jobs to `ablate.sweep.cluster`; options are those of conf/hydra/launcher/submitit_*.yaml."""

    cluster: str
    keeps: tuple[str, ...] = ()
    """Variables of the environment that a job has from the sweep, whatever submitit makes of them."""

    def __init__(self, *, submitit_folder: str, poll_s: float, **options: Any) -> None:
        self.folder, self.poll_s, self.has_submitted = submitit_folder, poll_s, False
        self.options: dict[str, Any] = {
            key: OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
            for key, value in options.items()
        }

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra supplies, and look for submitit."""
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)
        needed("submitit", "slurm")

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Submit, wait, and return what each job returned."""
        from ablate.sweep import cluster  # noqa: PLC0415
        from ablate.sweep.handover import Carrier  # noqa: PLC0415

        environment = {name: os.environ.get(name) for name in self.keeps}
        carrier = Carrier(self.hydra_context, self.task_function, self.config, environment)
        where = getattr(cluster, self.cluster)(carrier, self.folder, self.options)
        returned = cluster.carry_out(
            where, job_overrides, initial_job_idx, self.stop_file, self.poll_s, patient=self.has_submitted
        )
        self.has_submitted = True
        return returned


class SubmititLocalLauncher(SubmititLauncher):
    """Processes of this machine, as submitit starts them."""

    cluster = "Local"
    keeps = ("CUDA_VISIBLE_DEVICES",)  # submitit hides the GPUs it was not asked for; `ablate.devices` spreads runs

    @property
    def at_once(self) -> int:
        """Its own option."""
        return int(self.options["n_jobs"])

    @at_once.setter
    def at_once(self, number: int) -> None:
        self.options["n_jobs"] = number


class SubmititSlurmLauncher(SubmititLauncher):
    """Jobs of Slurm."""

    cluster = "Slurm"

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra supplies, look for submitit and Slurm, and refuse a limit with a warning before the run."""
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)
        check_warning(self.options["timeout_min"], self.options["signal_delay_s"])
        if not config.sweep.dry_run:
            check_slurm()


@dataclass
class RayLauncher(ClusterLauncher):
    """Hands jobs to `ablate.sweep.on_ray`; its fields are the keys of conf/hydra/launcher/ray.yaml."""

    address: str
    n_jobs: int
    cpus_per_run: float
    gpus_per_run: float

    @property
    def at_once(self) -> int | None:
        """Its own option, where it is not a cluster's."""
        return self.n_jobs if self.address == "local" else None

    @at_once.setter
    def at_once(self, number: int) -> None:
        self.n_jobs = number

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra supplies, look for Ray, and refuse an address where no cluster answers."""
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)
        ray_environment(self.address)
        needed("ray", "ray")
        on_ray = importlib.import_module("ablate.sweep.on_ray")
        on_ray.check(self.address, on_ray.Needs(self.cpus_per_run, self.gpus_per_run))

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs and return what each returned."""
        from ablate.sweep import on_ray  # noqa: PLC0415
        from ablate.sweep.handover import Carrier  # noqa: PLC0415

        carrier = Carrier(self.hydra_context, self.task_function, self.config)
        cpus = 1 if self.address == "local" else self.cpus_per_run  # here n_jobs says how many run at once
        needs = on_ray.Needs(cpus, self.gpus_per_run)
        jobs = list(enumerate(job_overrides, start=initial_job_idx))
        on_ray.connect(self.address, self.n_jobs)
        try:
            return on_ray.carry_out(carrier, jobs, needs, self.stop_file)
        finally:
            on_ray.disconnect()


class OwnFiles(SearchPathPlugin):
    """Has conf/hydra/launcher count where other launchers are installed as well.

    hydra-submitit-launcher and hydra-ray-launcher keep options of their own under the same names, which Hydra would
    take for a schema of our files. It calls this when all plugins are known and nothing is composed yet.
    """

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Leave the path as it is, and drop the others' options."""
        stored = ConfigStore.instance().repo.get("hydra", {}).get("launcher", {})
        for name in ("submitit_local", "submitit_slurm", "ray"):
            stored.pop(f"{name}.yaml", None)


EARLIER = 60
"""Seconds by which Slurm's warning may come earlier than asked for, as its documentation of --signal says."""


def check_warning(timeout_min: int, signal_delay_s: int) -> None:
    """Raise ConfigError when a job may be warned before it has begun, which would end it."""
    from ablate.config.errors import ConfigError  # noqa: PLC0415

    if 60 * timeout_min <= signal_delay_s + EARLIER:
        raise ConfigError(
            f"hydra.launcher.timeout_min={timeout_min}: Slurm warns a job signal_delay_s={signal_delay_s} seconds "
            f"before its limit and up to {EARLIER} earlier, so this one may be warned before it begins; allow at least "
            f"{(signal_delay_s + EARLIER) // 60 + 1} minutes"
        )


def check_slurm() -> None:
    """Raise ConfigError where Slurm's commands are not installed."""
    from ablate.config.errors import ConfigError  # noqa: PLC0415

    if missing := [name for name in ("sbatch", "squeue", "scancel") if shutil.which(name) is None]:
        raise ConfigError(
            f"hydra/launcher=submitit_slurm: {', '.join(missing)} not found; start the sweep where Slurm's commands "
            "are, or train here with hydra/launcher=local"
        )


def ray_environment(address: str) -> None:
    """Set what Ray reads when it is imported."""
    # Ray's own handler ends the process, with a trace of the stack, on a SIGTERM that arrives while Ray starts or ends.
    os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")
    if address == "local":  # otherwise Ray takes the machine's address for 127.0.0.1, and listens to all
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")


def needed(module: str, extra: str) -> ModuleType:
    """Import what an extra of this package installs; raises ConfigError with the command when it is not there."""
    from ablate.config.errors import ConfigError  # noqa: PLC0415

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(f"hydra/launcher: {error.name} is not installed: pip install 'ablate[{extra}]'") from error

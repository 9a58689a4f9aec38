"""What the launchers for clusters share: how a job runs wherever it arrives, and what stands for one that is lost.

Nothing of a scheduler here: `cluster` knows submitit and Slurm, `on_ray` Ray.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydra.core.singleton import Singleton
from hydra.core.utils import JobReturn, JobStatus, run_job, setup_globals
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict


@dataclass(frozen=True)
class Carrier:
    """A job that can be pickled: composes its config where it arrives, exactly as it was composed here, and runs it.

    `environment` are variables that get these values where it arrives; None removes one.
    """

    context: HydraContext
    task: TaskFunction
    config: DictConfig
    environment: Mapping[str, str | None] = field(default_factory=dict)
    singletons: Mapping[type, Singleton] = field(default_factory=Singleton.get_state)

    def __call__(self, overrides: Sequence[str], number: int) -> JobReturn:
        """Run one job; an exception of the job is in what is returned."""
        for name, value in self.environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        Singleton.set_state(dict(self.singletons))
        setup_globals()
        config = self.context.config_loader.load_sweep_config(self.config, list(overrides))
        with open_dict(config):
            config.hydra.job.id = f"{config.hydra.job.name}_{number}"
            config.hydra.job.num = number
        return run_job(
            hydra_context=self.context,
            task_function=self.task,
            config=config,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )

    def checkpoint(self, overrides: Sequence[str], number: int) -> Any:
        """Return what submitit is to queue anew for a job that was warned: the same job, which finds its run begun."""
        from submitit.helpers import DelayedSubmission  # noqa: PLC0415  (only a job of submitit calls this)

        return DelayedSubmission(self, overrides, number)


def without_result(why: str) -> JobReturn:
    """Return what stands for a job that came back with nothing; its run's folder says what it did, if it began."""
    lost = JobReturn(status=JobStatus.FAILED)
    lost.return_value = RuntimeError(why)
    return lost


def never_begun() -> JobReturn:
    """Return what stands for a job that was taken back when the sweep was stopped."""
    return JobReturn(status=JobStatus.UNKNOWN)

"""How many runs a launcher trains at a time on this machine: never more than are left, nor than memory allows.

Launchers are told apart by what they have: Hydra executes the modules of plugins anew when it looks for them, so that a
class imported before that, by a script of the user's for one, is not the class of the launcher that runs.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import joblib
from hydra.plugins.launcher import Launcher
from joblib._parallel_backends import LokyBackend
from joblib.executor import get_memmapping_executor

from ablate import capacity, worker
from ablate.config.register import local_workers
from ablate.sweep import told

N_JOBS = "hydra.launcher.n_jobs"


class Workers:
    """The processes that a launcher starts here; `say` prints a line. Other people's launchers are left alone."""

    def __init__(self, launcher: Launcher, threads: int, say: Callable[[str], None]) -> None:
        self.launcher: Any = launcher
        self.asked = _at_once(launcher, threads)
        self.say, self._said = say, set[str]()
        self.at_work = self._kept = 0
        self._free: int | None = None

    def at_once(self, runs: int, peaks: Sequence[int]) -> int | None:
        """Return how many of so many runs are trained at a time; None where a cluster decides."""
        if self.asked is None:
            return None
        fits = self._fitting(peaks)
        return min(self.asked, max(runs, self._kept), *([] if fits is None else [fits]))

    def fit(self, runs: int, peaks: Sequence[int]) -> None:
        """Have the launcher start no more processes than so many runs, with such peaks of memory, need and can have."""
        now = self.at_once(runs, peaks)
        if now is None or not self._is_pool():
            return
        self._explain(now, runs, peaks)
        self.at_work = now
        if hasattr(self.launcher, "joblib"):
            joblib.register_parallel_backend("loky", Pool)
            self.launcher.joblib["n_jobs"] = self._kept = now
        else:
            self.launcher.at_once = now

    def broke(self) -> None:
        """Note that the processes of the pool are gone."""
        self._kept = 0

    def advice(self) -> str:
        """Return what to do about a process that the kernel killed."""
        if self.at_work > 1:
            return f"{N_JOBS}={self.at_work // 2} trains fewer at a time, in less memory"
        return "it was the only one at the time, so it needs more memory than there is"

    def _is_pool(self) -> bool:
        return hasattr(self.launcher, "joblib") or hasattr(self.launcher, "at_once")

    def _fitting(self, peaks: Sequence[int]) -> int | None:
        if not self._is_pool():
            return None
        if not self._kept:  # later, workers that wait for a run hold some of the memory they will need
            self._free = capacity.free_memory()
        return capacity.fitting(self._free, peaks)

    def _explain(self, now: int, runs: int, peaks: Sequence[int]) -> None:
        """Say once why fewer are trained at a time than was asked for."""
        assert self.asked is not None
        given = f"{N_JOBS}={self.asked}: " if self._is_given() else ""
        if now < min(self.asked, runs) and self._free is not None:
            free, each = self._free / 2**30, capacity.of_a_run(peaks) / 2**30
            known = "takes" if peaks else "is taken to need"
            memory = f"{free:.1f} GiB of memory are free and a run {known} up to {each:.2f} GiB"
            self._say_once("memory", f"{given}{now} at a time, since {memory}")
        elif now < self.asked and given:
            left = f"{told.many(runs, 'run')} {'is' if runs == 1 else 'are'} left"
            self._say_once("runs", f"{given}{now} at a time, since {left} to train")

    def _say_once(self, about: str, line: str) -> None:
        if about not in self._said:
            self._said.add(about)
            self.say(line)

    def _is_given(self) -> bool:
        """Whether the number was asked for on the command line."""
        return any(str(one).lstrip("+").startswith(f"{N_JOBS}=") for one in self.launcher.config.hydra.overrides.hydra)


class Pool(LokyBackend):  # type: ignore[misc]  # joblib has no types
    """joblib's pool, in which a single run has a process of its own as well: joblib would train it in this one.

    So a run that is killed never takes the sweep with it. Nor do the processes hang on how many they are.
    """

    def configure(self, n_jobs: int = 1, parallel: Any = None, **options: Any) -> int:
        """Make the processes; return how many joblib is to think there are, of which it takes 1 for none."""
        if n_jobs != 1:
            return int(super().configure(n_jobs, parallel, **options))
        given = {"timeout": 300, **self.backend_kwargs, **options}
        self._workers = get_memmapping_executor(1, env=self._prepare_worker_env(1), context_id=parallel._id, **given)
        self.parallel = parallel
        return 2

    def _prepare_worker_env(self, n_jobs: int) -> dict[str, str]:  # another number would start all processes anew
        return dict(super()._prepare_worker_env(joblib.cpu_count()))


def prepare(launcher: Any, stop_file: Path) -> None:
    """Have the launcher see the stop file, and the workers of a pool end when this process does."""
    if hasattr(launcher, "stop_file"):
        launcher.stop_file = stop_file
    elif hasattr(launcher, "joblib"):
        launcher.joblib |= {"initializer": worker.end_with, "initargs": (os.getpid(),)}
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")  # `worker.leave_pool`


def _at_once(launcher: Any, threads: int) -> int | None:
    """Return how many runs the launcher was asked to train at a time; None where a cluster decides."""
    if hasattr(launcher, "joblib"):
        jobs = int(launcher.joblib["n_jobs"])
        return jobs if jobs > 0 else local_workers("cpu", threads=threads)
    known: int | None = getattr(launcher, "at_once", 1)
    return known

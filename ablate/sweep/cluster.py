"""Runs handed to submitit, as jobs of Slurm or as processes of this machine: submitted, watched, taken back.

submitit's own waiting asks Slurm's accounting, which many clusters do not keep, and gives all up when one job failed.
Here the queue says which jobs are over, one that ended without a result is that job's affair only, and what a run came
to is read from its folder by the sweep. Signals, time limits and queueing anew are submitit's (`checkpoint`): a run
that is warned saves, then its job is queued anew and goes on in the same folder.
"""

import contextlib
import logging
import pickle
import re
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn
from submitit import AutoExecutor, Job
from submitit.core.utils import FailedJobError

from ablate import locks
from ablate.sweep.handover import Carrier, never_begun, without_result

LOG = logging.getLogger("ablate")

LARGEST_ARRAY = 1000
"""Jobs in one array; Slurm's MaxArraySize is 1001 unless the site says otherwise."""

GENERAL = frozenset(
    ["timeout_min", "cpus_per_task", "gpus_per_node", "tasks_per_node", "mem_gb", "nodes", "name", "stderr_to_stdout"]
)
"""Options that submitit knows for every cluster; the others carry the cluster's name in front."""


NO_JOBS = re.compile(r"[0-9a-f]{32}\.pkl|\.submission_file_[0-9a-f]{32}\.sh")
"""The files of a submission before it has the name of a job."""

AGAIN = 60.0
"""Seconds after which jobs that were refused are submitted again, unless one of ours is over before."""


class RefusedError(RuntimeError):
    """Jobs that the scheduler does not take, now or ever: a limit, a wrong option, a controller that is down."""


class Cluster(ABC):
    """Where jobs go; `carrier` is what a job calls."""

    name: str

    def __init__(self, carrier: Carrier, folder: str, options: Mapping[str, Any]) -> None:
        self.carrier, self.folder = carrier, Path(folder)
        known = {key if key in GENERAL else f"{self.name}_{key}": value for key, value in options.items()}
        first = {key: known.pop(key) for key in [f"{self.name}_max_num_timeout"] if key in known}
        self.executor = AutoExecutor(folder=folder, cluster=self.name, **first)
        self.executor.update_parameters(**{key: value for key, value in known.items() if value is not None})

    @abstractmethod
    def room(self, active: int) -> int:
        """Return how many jobs to submit now, with `active` in the queue."""

    @abstractmethod
    def queue(self, jobs: Sequence[Job[JobReturn]]) -> Mapping[str, str] | None:
        """Return the state of those of `jobs` that are not over, by job id; None when the scheduler does not answer."""

    @abstractmethod
    def take_back(self, jobs: Sequence[Job[JobReturn]]) -> None:
        """Remove jobs that wait in the queue."""

    @abstractmethod
    def end(self, jobs: Sequence[Job[JobReturn]]) -> None:
        """Tell all jobs to end, running ones too; they save first."""

    def submit(self, jobs: Sequence[tuple[int, Sequence[str]]]) -> list[Job[JobReturn]]:
        """Submit jobs, each a number and its overrides; raises RefusedError, nothing left behind, when refused."""
        overrides, numbers = [list(job) for _, job in jobs], [number for number, _ in jobs]
        with locks.turn(self.folder / ".turn"):  # so that what is new in the folder is of this sweep
            before = set(self.folder.iterdir())
            try:
                return list(self.executor.map_array(self.carrier, overrides, numbers))
            except FailedJobError as error:  # what submitit raises when sbatch fails
                for path in set(self.folder.iterdir()) - before:  # among them files of jobs that run meanwhile
                    if NO_JOBS.fullmatch(path.name):
                        path.unlink(missing_ok=True)
                raise RefusedError(" ".join(str(error).split())) from error


class Slurm(Cluster):
    """Arrays of sbatch; states from squeue, which needs no accounting."""

    name = "slurm"

    def __init__(self, carrier: Carrier, folder: str, options: Mapping[str, Any]) -> None:
        super().__init__(carrier, folder, {key: value for key, value in options.items() if key != "max_submitted"})
        self.max_submitted = options.get("max_submitted")

    def room(self, active: int) -> int:
        """Return the size of an array: Slurm does the queueing, of `max_submitted` jobs at a time."""
        return LARGEST_ARRAY if self.max_submitted is None else min(LARGEST_ARRAY, self.max_submitted - active)

    def queue(self, jobs: Sequence[Job[JobReturn]]) -> Mapping[str, str] | None:
        """Ask squeue for this user's jobs."""
        command = ["squeue", "--noheader", "--array", "--me", "--format=%i|%T"]
        try:
            told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        except (OSError, subprocess.SubprocessError) as error:
            LOG.warning("squeue does not answer: %s", error)
            return None
        found = dict(line.strip().split("|", 1) for line in told.splitlines() if "|" in line)
        return {job.job_id: found[job.job_id] for job in jobs if job.job_id in found}

    def take_back(self, jobs: Sequence[Job[JobReturn]]) -> None:
        """Cancel those that are pending at the moment of cancelling."""
        self._scancel(jobs, "--state=PENDING")

    def end(self, jobs: Sequence[Job[JobReturn]]) -> None:
        """Cancel all: Slurm sends SIGTERM, and SIGKILL after its KillWait."""
        self._scancel(jobs)

    @staticmethod
    def _scancel(jobs: Sequence[Job[JobReturn]], *options: str) -> None:
        for start in range(0, len(jobs), LARGEST_ARRAY):
            some = [job.job_id for job in jobs[start : start + LARGEST_ARRAY]]
            try:
                subprocess.run(["scancel", *options, *some], check=False, capture_output=True, timeout=60)
            except (OSError, subprocess.SubprocessError) as error:
                LOG.warning("scancel does not answer: %s", error)


class Local(Cluster):
    """Processes of this machine, `n_jobs` at a time."""

    name = "local"

    def __init__(self, carrier: Carrier, folder: str, options: Mapping[str, Any]) -> None:
        super().__init__(carrier, folder, {key: value for key, value in options.items() if key != "n_jobs"})
        self.n_jobs = int(options["n_jobs"])

    def room(self, active: int) -> int:
        """Return how many processes fewer than n_jobs run."""
        return self.n_jobs - active

    def queue(self, jobs: Sequence[Job[JobReturn]]) -> Mapping[str, str] | None:
        """Ask the processes."""
        return {job.job_id: "RUNNING" for job in jobs if job.state == "RUNNING"}

    def take_back(self, jobs: Sequence[Job[JobReturn]]) -> None:
        """Do nothing: what was submitted runs already."""

    def end(self, jobs: Sequence[Job[JobReturn]]) -> None:
        """Send SIGTERM, which submitit's controller hands on to the run."""
        for job in jobs:
            if job._process is not None:  # type: ignore[attr-defined]  # submitit's cancel() would be Ctrl-C
                job._process.send_signal(signal.SIGTERM)  # type: ignore[attr-defined]

    def submit(self, jobs: Sequence[tuple[int, Sequence[str]]]) -> list[Job[JobReturn]]:
        """Start processes; a Ctrl-C on the terminal reaches the sweep only, which stops them by its stop file."""
        with _ignoring_ctrl_c():
            return super().submit(jobs)


@contextlib.contextmanager
def _ignoring_ctrl_c() -> Iterator[None]:
    """Have processes that are started in the block ignore Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def carry_out(
    cluster: Cluster,
    jobs: Sequence[Sequence[str]],
    first: int,
    stop_file: Path | None,
    poll_s: float,
    *,
    patient: bool = False,
) -> list[JobReturn]:
    """Submit jobs numbered from `first`, wait until all are over, and return what each returned, in their order.

    When the stop file appears, jobs that wait are taken back and those that run are waited for: they see the file
    too, save and end. An exception (a second Ctrl-C) ends them all. Raises RefusedError when the scheduler takes none,
    unless `patient`: it took others before, so it is asked again later.
    """
    queue = _Queue(cluster, deque(enumerate(jobs, start=first)), patient=patient)
    try:
        while queue.waiting or queue.active:
            stopping = stop_file is not None and stop_file.exists()
            if stopping:
                queue.waiting.clear()
            queue.submit_some()
            time.sleep(poll_s)
            queue.look(stopping=stopping)
    except BaseException:
        cluster.end(list(queue.active.values()))
        raise
    stopped = stop_file is not None and stop_file.exists()
    return [_returned(queue.submitted.get(number), stopped) for number in range(first, first + len(jobs))]


@dataclass
class _Queue:
    """The jobs of one sweep by their numbers: those that wait to be submitted, all that were, those not over."""

    cluster: Cluster
    waiting: deque[tuple[int, Sequence[str]]]
    submitted: dict[int, Job[JobReturn]] = field(default_factory=dict)
    active: dict[int, Job[JobReturn]] = field(default_factory=dict)
    largest: int = LARGEST_ARRAY
    patient: bool = False
    again: float = 0.0
    """Before this time (monotonic) nothing is submitted, since it was refused."""

    def submit_some(self) -> None:
        """Submit as many as there is room for, and as the scheduler takes."""
        while time.monotonic() >= self.again and (size := self._size()) > 0:
            some = [self.waiting.popleft() for _ in range(size)]
            try:
                jobs = self.cluster.submit(some)
            except RefusedError as error:
                self.waiting.extendleft(reversed(some))
                self._refused(size, error)
                continue
            new = dict(zip((number for number, _ in some), jobs, strict=True))
            self.submitted.update(new)
            self.active.update(new)
            self.largest = min(LARGEST_ARRAY, 2 * self.largest)

    def _size(self) -> int:
        return min(len(self.waiting), self.largest, self.cluster.room(len(self.active)))

    def _refused(self, size: int, error: RefusedError) -> None:
        """Try half as many; a single one again later, if others were taken before."""
        self.largest = max(1, size // 2)
        if size > 1:
            return
        if not (self.submitted or self.patient):
            raise error
        self.again = time.monotonic() + AGAIN
        LOG.warning("%d jobs are submitted later, the scheduler takes none now: %s", len(self.waiting), error)

    def look(self, *, stopping: bool) -> None:
        """Ask which jobs are over; when stopping, take back those that do not run yet."""
        states = self.cluster.queue(list(self.active.values()))
        if states is None:
            return
        left = {number: job for number, job in self.active.items() if job.job_id in states}
        if len(left) < len(self.active):
            self.again = 0.0  # there is room for another
        self.active = left
        if stopping:
            self.cluster.take_back([job for job in left.values() if states[job.job_id] != "RUNNING"])


def _returned(job: Job[JobReturn] | None, stopped: bool) -> JobReturn:
    """Return what a job that is over returned; how its run ended stands in the run's folder."""
    if job is None:
        return never_begun()
    try:
        outcome, result = pickle.loads(job.paths.result_pickle.read_bytes())
    except FileNotFoundError:
        told = f"job {job.job_id} ended without a result: killed, cancelled or lost; its output: {job.paths.stderr}"
        return never_begun() if stopped else without_result(told)
    except Exception as error:  # cut short, or of a class that cannot be made again here
        told = f"job {job.job_id}: its result cannot be read ({error!r}); its output: {job.paths.stderr}"
        return without_result(told)
    if outcome == "success" and isinstance(result, JobReturn):
        return result
    last = str(result).strip().splitlines()[-1:] or ["?"]
    return without_result(f"job {job.job_id}: {last[0]}; its output: {job.paths.stderr}")

"""The runs of a sweep handed to its launcher, round by round, until each has a result or was tried.

The launcher (a pool, a cluster, this process) only carries jobs; what became of them is read from the run folders. A
process that dies takes down nothing but its own run: a pool breaks as a whole when one of its processes dies, so the
runs that may have killed it are tried again one by one, and the others go on together.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher

from ablate import locks
from ablate.config.errors import ConfigError
from ablate.records import RunFolder, RunRecord, Status
from ablate.resume import Action, decide, read_or_none
from ablate.sweep import workers
from ablate.sweep.plan import Plan
from ablate.sweep.runs import PlannedRun, Watcher, planned_runs
from ablate.sweep.workers import Workers

MOST_ATTEMPTS = 3
"""How often a job is handed over that comes back without having begun (another process had the run, and died), and how
many jobs a launcher may lose, each handed over alone, before any run began."""

LOST = "the process ended without a record: killed, or out of memory"
KILLED = "the process was killed (SIGKILL), as the kernel does when memory runs out"

AT_ONCE = 32
"""Records of dead processes that are closed at a time: each may have to watch a lock of another machine."""

Owners = Mapping[RunFolder, locks.Owner | None]


class Rounds:
    """What was tried and what came of it; `stopped` is set by a signal, after which nothing new is begun."""

    def __init__(self, plan: Plan, launcher: Launcher, say: Callable[[str], None]) -> None:
        self.plan, self.launcher, self.say = plan, launcher, say
        self.workers = Workers(launcher, plan.config.runtime.threads, say)
        self.watcher = Watcher()
        self.stop_file = plan.study.stop_file(plan.sweep.id)
        workers.prepare(launcher, self.stop_file)
        self.tried: set[RunFolder] = set()
        self.errors: dict[RunFolder, str] = {}
        self.stopped = self.any_began = False
        self._why_dead: dict[RunFolder, str] = {}
        self._attempts: Counter[RunFolder] = Counter()
        self._found: dict[RunFolder, RunRecord | None] = {}  # of what was handed over, the record before
        self._number = self._lost_alone = 0
        self._most_lost = MOST_ATTEMPTS

    @property
    def is_stopped(self) -> bool:
        """Whether nothing new is to be begun: by a signal, or by a run that failed under `sweep.fail_fast`."""
        return self.stopped or self.stop_file.exists()

    def record(self, run: PlannedRun) -> RunRecord | None:
        """Return the run's record as it is now."""
        return self.watcher.state(run.folder).record

    def is_left(self, run: PlannedRun) -> bool:
        """Whether the run is to be trained, and was not tried yet."""
        return run.folder not in self.tried and self._action(run) is not Action.keep

    def _action(self, run: PlannedRun) -> Action:
        plan = self.plan
        return decide(self.record(run), plan.config.sweep.rerun, plan.sources[run.cell.cell], plan.sweep.id)

    def carry_out(self, todo: Sequence[PlannedRun]) -> None:
        """Launch until every run has a result or was tried; raises ConfigError when the launcher can begin none."""
        self._launch_all(todo)
        # the lock of a process that died on another machine looked alive for a while
        self._close_all([run for run in todo if run.folder in self.tried and self._is_dead(run)])

    def _launch_all(self, todo: Sequence[PlannedRun]) -> None:
        parts: list[list[PlannedRun]] = []
        self._most_lost = min(MOST_ATTEMPTS, len(todo))
        while not self.is_stopped:
            batch = [run for run in (parts[0] if parts else todo) if self._is_open(run)]
            if not batch and not parts:
                return
            parts = parts[1:]
            here = [run for run in batch if self.watcher.state(run.folder).status != "running"]
            if here:
                parts = self._launch(here) + parts
            elif batch and not parts:  # others are at them
                time.sleep(1.0)

    def _is_open(self, run: PlannedRun) -> bool:
        """Whether the run is still to be trained, here or by whoever is at it."""
        state = self.watcher.state(run.folder)
        if state.status == "running":
            return True
        if run.folder in self.tried:
            return False
        made_here = self._began(run) and state.record is not None and state.record.status is not Status.running
        return not made_here and self._action(run) is not Action.keep

    def _began(self, run: PlannedRun) -> bool:
        """Whether the run was handed over and began: a sweep that is continued under its id finds its own records."""
        if run.folder not in self._found:
            return False
        record = self.record(run)
        return record is not None and record.sweep == self.plan.sweep.id and record != self._found[run.folder]

    def _launch(self, batch: Sequence[PlannedRun]) -> list[list[PlannedRun]]:
        """Hand runs to the launcher; returns what to try next, part by part, because a process died while they ran."""
        jobs, owners = [self._job(run) for run in batch], _owners(batch)
        for run in batch:
            self._found.setdefault(run.folder, self.record(run))
        broken = None
        self.workers.fit(len(batch), self.peaks())
        try:
            returned = self.launcher.launch(jobs, initial_job_idx=self._number)
            self._note_errors(batch, returned)
        except KeyboardInterrupt:
            self.stopped = True
        except Exception as error:  # a pool that broke; the run folders say what became of its jobs
            broken = error
        self._number += len(batch)
        return self._after(batch, broken, owners)

    def _job(self, run: PlannedRun) -> list[str]:
        """Return a run's overrides; the study's absolute path, since a worker may work in another folder."""
        job = [*run.cell.overrides, f"seed={run.seed}", f"runtime.sweep_id={self.plan.sweep.id}"]
        study = str(self.plan.study.path.absolute()).replace("\\", "\\\\").replace('"', '\\"')
        return job if "$" in study else [*job, f'hydra.sweep.dir="{study}"']  # Hydra would take $ for a reference

    def _note_errors(self, batch: Sequence[PlannedRun], returned: Sequence[JobReturn]) -> None:
        """Keep the exceptions of jobs that could not even write a record; the others' errors are in their records."""
        for run, job in zip(batch, returned, strict=True):
            if job.status is JobStatus.FAILED:
                self.errors[run.folder] = f"{type(job._return_value).__name__}: {job._return_value}"

    # what became of them ----------------------------------------------------------------------------------------------

    def _after(self, batch: Sequence[PlannedRun], broken: Exception | None, owners: Owners) -> list[list[PlannedRun]]:
        dead = [run for run in batch if self._died(run, owners[run.folder])]
        self._note_deaths(dead, broken)
        self.any_began = self.any_began or bool(dead) or any(map(self._began, batch))
        suspects = dead if broken is not None and len(batch) > 1 else []
        self._close_all([run for run in dead if run not in suspects])
        for run in batch:
            if run not in suspects:
                self._count(run, handed_over=broken is None)
        if broken is None or suspects:
            return [[run] for run in suspects]
        return self._without_a_trace(batch, broken)

    def _note_deaths(self, dead: Sequence[PlannedRun], broken: Exception | None) -> None:
        """Keep which processes were killed; say what to do about it when several may have wanted too much memory."""
        if broken is not None:
            self.workers.broke()
        by_kernel, advice = "SIGKILL" in str(broken), self.workers.advice()
        for run in dead:
            self._why_dead[run.folder] = f"{KILLED}; {advice}" if by_kernel else LOST
            if not by_kernel and self.workers.at_work > 1:
                self._why_dead[run.folder] += f"; if it was memory, {advice}"
        if by_kernel and len(dead) > 1 and not self.stopped:
            self.say(
                f"a worker process was killed (SIGKILL), as the kernel does when memory runs out; the {len(dead)} runs "
                f"in progress are tried again, one at a time ({advice})"
            )

    def peaks(self) -> list[int]:
        """Return the peak memory of those runs of this sweep that were trained on a CPU, as far as it is known."""
        known = (self.record(run) for run in planned_runs(self.plan.study, self.plan.sweep))
        return [one.peak_memory_bytes for one in known if one and one.peak_memory_bytes and one.device == "cpu"]

    def _died(self, run: PlannedRun, owner_before: locks.Owner | None) -> bool:
        """Whether a process began the run for this sweep and is gone, before its record or with one that says running.

        Before its record it leaves a lock that names it.
        """
        state = self.watcher.state(run.folder)
        if state.status == "running":
            return False
        if self._began(run):
            return self._is_dead(run)
        owner = locks.read_owner(run.folder.lock)
        return owner is not None and owner != owner_before

    def _is_dead(self, run: PlannedRun) -> bool:
        """Whether the run began for this sweep, and its record says running while nobody is at it."""
        state = self.watcher.state(run.folder)
        says_running = state.record is not None and state.record.status is Status.running
        return says_running and state.status != "running" and self._began(run)

    def _count(self, run: PlannedRun, *, handed_over: bool) -> None:
        """Note that the run was tried, if it ended, failed without a record, or did not begin for the last time."""
        self._attempts[run.folder] += handed_over
        # where it runs, somebody is at it, or died a moment ago elsewhere
        ended = self._began(run) and self.watcher.state(run.folder).status != "running"
        if ended or run.folder in self.errors or self._attempts[run.folder] >= MOST_ATTEMPTS:
            self.tried.add(run.folder)

    def _without_a_trace(self, batch: Sequence[PlannedRun], broken: Exception) -> list[list[PlannedRun]]:
        """The launcher broke, and no run of the batch shows why: halve those that are left until one stands alone.

        A run that is alone is tried, with the launcher's error for its own. Raises ConfigError when it is the launcher.
        """
        left = [run for run in batch if self._is_open(run)]
        if len(batch) > 1 or not left:
            half = (len(left) + 1) // 2
            return [part for part in (left[:half], left[half:]) if part]
        told = f"{type(broken).__name__}: {broken}"
        self._lost_alone += 1
        if not (self.any_began or isinstance(broken, OSError)) and self._lost_alone >= self._most_lost:
            raise ConfigError(f"no run began, the launcher failed: {told}") from broken
        self.errors[left[0].folder] = told
        self.tried.add(left[0].folder)
        return []

    def _close_all(self, dead: Sequence[PlannedRun]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._close, dead))

    def _close(self, run: PlannedRun) -> None:
        """Write the record that a dead process could not write, unless another process has the run by now."""
        try:
            with locks.hold(run.folder.lock) as mine:
                record = (read_or_none(run.folder) or self._first_record(run)) if mine else None
                if record is not None and record.sweep == self.plan.sweep.id and record.status is Status.running:
                    self._write_closed(run, record)
        except OSError as error:
            self.errors.setdefault(run.folder, str(error))

    def _first_record(self, run: PlannedRun) -> RunRecord:
        """Return the record of a run whose process died before it had written one."""
        plan, cell = self.plan.sweep, run.cell
        started = datetime.now(UTC).isoformat(timespec="microseconds")
        return RunRecord(
            status=Status.running,
            study=plan.study,
            cell=cell.cell,
            label=cell.label,
            factors=cell.factors,
            seed=run.seed,
            sweep=plan.id,
            source=self.plan.sources[cell.cell],
            command=plan.command,
            started=started,
        )

    def _write_closed(self, run: PlannedRun, record: RunRecord) -> None:
        record.status = Status.interrupted if self.stopped else Status.failed
        why = self._why_dead.get(run.folder, LOST)
        record.error = None if self.stopped else {"type": "ProcessDied", "message": why}
        record.ended = datetime.now(UTC).isoformat(timespec="microseconds")
        record.take_cost(run.folder.last_metrics())
        run.folder.write(record)
        if not self.stopped:
            if self.plan.config.sweep.fail_fast:
                self.stop_file.touch()
            with run.folder.log.open("a", encoding="utf-8") as log:
                log.write(f"{record.ended} ProcessDied: {why}\n")


def _owners(runs: Sequence[PlannedRun]) -> Owners:
    return {run.folder: locks.read_owner(run.folder.lock) for run in runs}

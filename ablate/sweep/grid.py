"""A sweep from its plan to its table: leaves out what is finished, launches the rest, isolates failures, sums up.

The launcher (a pool, a cluster, this process) only carries jobs; what became of them is read from the run folders.
"""

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig
from rich.console import Console

from ablate import worker
from ablate.config.errors import ConfigError, refuse
from ablate.records import RunFolder, RunRecord, Status
from ablate.resume import Action, decide
from ablate.stop import SIGNALS
from ablate.sweep import told
from ablate.sweep.plan import Plan, make_plan
from ablate.sweep.progress import Display
from ablate.sweep.runs import PlannedRun, Watcher, duration, planned_runs
from ablate.sweep.until import Blocks

FAILED, INTERRUPTED = 1, 130
ENDED = ("finished", "diverged", "failed")

MOST_ATTEMPTS = 3
"""How often a job is handed over that comes back without having begun (another process had the run, and died)."""

LOST = {"type": "ProcessDied", "message": "the process ended without a record: killed, or out of memory"}


def run_grid(loader: ConfigLoader, launcher: Launcher, config: DictConfig, arguments: Sequence[str]) -> None:
    """Plan, train and sum up; ends the process with the exit code unless all planned runs finished."""
    try:
        plan = make_plan(loader, config, arguments)
    except ConfigError as error:
        refuse(str(error))
    console = Console()
    sweep = Sweep(plan, launcher, console)
    sweep.announce()
    if plan.config.sweep.dry_run:
        return
    code = sweep.run()
    if code:
        sys.exit(code)


class Sweep:
    """One sweep in progress."""

    def __init__(self, plan: Plan, launcher: Launcher, console: Console) -> None:
        self.plan, self.launcher, self.console = plan, launcher, console
        self.rerun = plan.config.sweep.rerun
        self.blocks = Blocks(plan) if plan.sweep.until is not None else None
        self.watcher = Watcher()
        self.stop_file = plan.study.stop_file(plan.sweep.id)
        _prepare(launcher, self.stop_file)
        self.tried: set[RunFolder] = set()
        self.attempts: Counter[RunFolder] = Counter()
        self.errors: dict[RunFolder, str] = {}
        self.stopped = self.unwritten = False
        self.number = 0
        self._take_in_plan()

    def _take_in_plan(self) -> None:
        self.take_in(planned_runs(self.plan.study, self.plan.sweep))

    def take_in(self, runs: Sequence[PlannedRun]) -> None:
        """Set the runs to see to, and list what is left to train of them."""
        self.runs = list(runs)
        self.todo = [run for run in self.runs if self._is_left(run)]

    def _is_left(self, run: PlannedRun) -> bool:
        return run.folder not in self.tried and self._action(run) is not Action.keep

    def _record(self, run: PlannedRun) -> RunRecord | None:
        return self.watcher.state(run.folder).record

    def _action(self, run: PlannedRun) -> Action:
        return decide(self._record(run), self.rerun, self.plan.sources[run.cell.cell])

    # what will be done ------------------------------------------------------------------------------------------------

    def announce(self) -> None:
        """Print the plan: cells, seeds, what is there, what is left and how long that may take."""
        plan, left = self.plan.sweep, len(self.todo)
        grid = told.grid_in_words(plan, len(self.runs))
        if self.blocks is not None:
            grid = f"{self.blocks.headline()}; first block: {told.many(len(self.runs), 'run')}"
        known = [record.seconds for run in self.runs if (record := self._record(run)) and record.seconds]
        estimate = told.estimate(known, left, _at_once(self.launcher))
        told.announce(
            self.console, plan, told.headline(self.plan.study, grid, len(self.runs), left, estimate), self.todo
        )

    # doing it ---------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Train what is left, print table and failures, and return the exit code."""
        self._write_plan()
        started, trains = time.monotonic(), bool(self.todo)
        if trains:
            threading.Thread(target=_load_analysis, daemon=True, name="load the analysis").start()
        with self.interruptible():
            self._train()
            while self._another_block():
                trains = trains or bool(self.todo)
                self._train()
        if trains:
            self.console.print(f"trained for {duration(time.monotonic() - started)}", highlight=False)
        if self.stop_file.exists() and not self.stopped:
            self.console.print("stopped at the first failure (sweep.fail_fast)", style="yellow")
        self.stop_file.unlink(missing_ok=True)
        return self._sum_up()

    def _write_plan(self) -> None:
        try:
            self.plan.study.write_sweep(self.plan.sweep)
        except OSError as error:
            raise ConfigError(
                f"{self.plan.study.path}: the plan cannot be written ({error}); nothing was run"
            ) from error

    def train_left(self) -> None:
        """Train what is left, shown while it goes on."""
        if self.todo:
            mode = self.plan.config.runtime.progress
            with Display(self.todo, len(self.runs), self.console, mode):
                self._rounds()

    def _train(self) -> None:
        """Train what is left; note the look at the results that follows."""
        self.train_left()
        ended = [run for run in self.runs if self.watcher.state(run.folder).status in ENDED]
        cells = [cell.cell for cell in self.plan.sweep.cells]
        seeds = {cell: [run.seed for run in ended if run.cell.cell == cell] for cell in cells}
        try:
            self.plan.study.note_look(self.plan.sweep.id, seeds, datetime.now(UTC).isoformat(timespec="seconds"))
        except OSError as error:
            self.console.print(f"this look at the results could not be noted: {error}", style="red", markup=False)
            self.unwritten = True

    def _another_block(self) -> bool:
        """Whether seeds were added; says what is decided so far."""
        if self.blocks is None or self.stopped or self.stop_file.exists():
            return False
        for line in self.blocks.advance():
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._take_in_plan()
        return not self.blocks.until["ended"]

    def _rounds(self) -> None:
        """Launch until every run has a result or was tried; a process that died takes down nothing but its own run."""
        alone: list[PlannedRun] = []
        while not self.stopped and not self.stop_file.exists():
            batch = alone[:1] or [run for run in self.todo if self._is_open(run)]
            alone = alone[1:]
            elsewhere = [run for run in batch if self.watcher.state(run.folder).status == "running"]
            batch = [run for run in batch if run not in elsewhere]
            if batch:
                alone += self._launch(batch)
            elif elsewhere:
                time.sleep(1.0)
            elif not alone:
                return

    def _is_open(self, run: PlannedRun) -> bool:
        """Whether the run is still to be trained, here or by whoever is at it."""
        state = self.watcher.state(run.folder)
        if state.status == "running":
            return True
        if run.folder in self.tried:
            return False
        record = state.record
        made_here = record is not None and record.sweep == self.plan.sweep.id and record.status is not Status.running
        return not made_here and self._action(run) is not Action.keep

    def _launch(self, batch: Sequence[PlannedRun]) -> list[PlannedRun]:
        """Hand runs to the launcher; returns those to try again alone because a process died while they ran."""
        jobs = [self._job(run) for run in batch]
        broken = None
        try:
            returned = self.launcher.launch(jobs, initial_job_idx=self.number)
            self._note_errors(batch, returned)
        except KeyboardInterrupt:
            self.stopped = True
        except Exception as error:  # a pool that broke; the run folders say what became of its jobs
            broken = error
        self.number += len(batch)
        return self._after(batch, broken)

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

    def _after(self, batch: Sequence[PlannedRun], broken: Exception | None) -> list[PlannedRun]:
        suspects = []
        for run in batch:
            state = self.watcher.state(run.folder)
            record = state.record
            begun = record is not None and record.sweep == self.plan.sweep.id
            if begun and record is not None and record.status is Status.running and state.status != "running":
                if broken is not None and len(batch) > 1:
                    suspects.append(run)
                    continue
                try:
                    self._close(run, record)
                except OSError as error:
                    self.errors.setdefault(run.folder, str(error))
            self.attempts[run.folder] += broken is None
            ended = (
                begun and state.status != "running"
            )  # where it runs, somebody is at it, or died a moment ago elsewhere
            if ended or run.folder in self.errors or self.attempts[run.folder] >= MOST_ATTEMPTS:
                self.tried.add(run.folder)
        if isinstance(broken, OSError):  # a run's folder could not be made: the others go on, each alone
            suspects = self._without_folder(batch, broken) or suspects
        elif broken is not None and not suspects and not any(run.folder in self.tried for run in batch):
            raise ConfigError(f"no run began, the launcher failed: {type(broken).__name__}: {broken}") from broken
        return suspects

    def _without_folder(self, batch: Sequence[PlannedRun], broken: OSError) -> list[PlannedRun]:
        """Note the error of a run that was alone; of several return those to try alone, to see whose it is."""
        if len(batch) > 1:
            return [run for run in batch if self._is_open(run)]
        if batch[0].folder not in self.tried:
            self.errors[batch[0].folder] = f"{type(broken).__name__}: {broken}"
            self.tried.add(batch[0].folder)
        return []

    def _close(self, run: PlannedRun, record: RunRecord) -> None:
        """Write the record that a dead process could not write."""
        record.status = Status.interrupted if self.stopped else Status.failed
        record.error = None if self.stopped else dict(LOST)
        record.ended = datetime.now(UTC).isoformat(timespec="microseconds")
        record.take_cost(run.folder.last_metrics())
        run.folder.write(record)
        if not self.stopped:
            if self.plan.config.sweep.fail_fast:
                self.stop_file.touch()
            with run.folder.log.open("a", encoding="utf-8") as log:
                log.write(f"{record.ended} {LOST['type']}: {LOST['message']}\n")

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """First Ctrl-C: runs save and stop. Second: everything stops at once."""
        if (
            threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        ):
            yield
            return
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True
        with contextlib.suppress(OSError):  # a full disk: the runs have had the signal too, or finish
            self.stop_file.touch()
        self.console.print(
            "stopping: the runs in progress save a checkpoint; the same command continues", style="yellow"
        )

    # what came of it --------------------------------------------------------------------------------------------------

    def _sum_up(self) -> int:
        from analysis.summary import print_summary  # noqa: PLC0415  (a second of start-up, needed only here)

        states = [(run, self.watcher.state(run.folder)) for run in self.runs]
        if any(state.status in ENDED for _, state in states):
            print_summary(self.plan.study.path, self.plan.sweep.id, self.console)
        told.failures(self.console, states, self.errors, stopped=self.stopped)
        counts = Counter(state.status for _, state in states)
        if self.stopped:
            self.console.print(f"interrupted: {told.in_words(counts)}; the same command continues", highlight=False)
            return INTERRUPTED
        return 0 if counts["finished"] == len(self.runs) and not self.unwritten else FAILED


def _load_analysis() -> None:
    """Import what the table at the end needs while the runs train: a second that nobody then waits for."""
    with contextlib.suppress(ImportError):
        importlib.import_module("analysis.comparison")


# Launchers are told apart by what they have: Hydra executes the modules of plugins anew when it looks for them, so that
# a class imported before that, by a script of the user's for one, is not the class of the launcher that runs.
def _prepare(launcher: Any, stop_file: Path) -> None:
    """Have the launcher see the stop file, and the workers of a pool end when this process does."""
    if hasattr(launcher, "stop_file"):
        launcher.stop_file = stop_file
    elif hasattr(launcher, "joblib"):
        launcher.joblib |= {"initializer": worker.end_with, "initargs": (os.getpid(),)}


def _at_once(launcher: Any) -> int | None:
    """How many runs the launcher trains at a time; None where a cluster decides."""
    if hasattr(launcher, "joblib"):
        return max(1, int(launcher.joblib["n_jobs"]))
    at_once: int | None = getattr(launcher, "at_once", 1)
    return at_once

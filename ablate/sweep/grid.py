"""A sweep from its plan to its table: leaves out what is finished, has the rest trained (`rounds`), sums up."""

import contextlib
import importlib
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from types import FrameType

from hydra.core.config_loader import ConfigLoader
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig
from rich.console import Console

from ablate import locks
from ablate.config.errors import ConfigError, refuse
from ablate.stop import handled_by, heard
from ablate.sweep import told
from ablate.sweep.plan import Plan, make_plan
from ablate.sweep.progress import Display
from ablate.sweep.rounds import Rounds
from ablate.sweep.runs import PlannedRun, duration, planned_runs
from ablate.sweep.until import Blocks

FAILED, INTERRUPTED = 1, 130
ENDED = ("finished", "diverged", "failed")


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
        self.blocks = Blocks(plan) if plan.sweep.until is not None else None
        self.rounds = Rounds(plan, launcher, self._say)
        self.watcher, self.stop_file, self.errors = self.rounds.watcher, self.rounds.stop_file, self.rounds.errors
        self.unwritten = False
        self._take_in_plan()

    @property
    def stopped(self) -> bool:
        """Whether a signal asked for the end."""
        return self.rounds.stopped

    def _say(self, line: str) -> None:
        self.console.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)

    def _take_in_plan(self) -> None:
        self.take_in(planned_runs(self.plan.study, self.plan.sweep))

    def take_in(self, runs: Sequence[PlannedRun]) -> None:
        """Set the runs to see to, and list what is left to train of them."""
        self.runs = list(runs)
        self.todo = [run for run in self.runs if self.rounds.is_left(run)]

    # what will be done ------------------------------------------------------------------------------------------------

    def announce(self) -> None:
        """Print the plan: cells, seeds, what is there, what is left and how long that may take."""
        plan, left = self.plan.sweep, len(self.todo)
        grid = told.grid_in_words(plan, len(self.runs))
        if self.blocks is not None:
            grid = f"{self.blocks.headline()}; first block: {told.many(len(self.runs), 'run')}"
        known = [record.seconds for run in self.runs if (record := self.rounds.record(run)) and record.seconds]
        estimate = told.estimate(known, left, self.rounds.workers.at_once(left, self.rounds.peaks()))
        told.announce(
            self.console, plan, told.headline(self.plan.study, grid, len(self.runs), left, estimate), self.todo
        )

    # doing it ---------------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Train what is left, print table and failures, and return the exit code."""
        with self._kept_plan():
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
            if self.plan.config.sweep.fail_fast and self.stop_file.exists() and not self.stopped:
                self.console.print("stopped at the first failure (sweep.fail_fast)", style="yellow")
        return self._sum_up()

    @contextlib.contextmanager
    def _kept_plan(self) -> Iterator[None]:
        """Write the plan, and hold the sweep's lock while the block runs; a new plan goes again if no run could begin.

        The lock tells others that somebody is at the sweep, nothing more: a sweep whose lock is held goes on as well.
        """
        study, sweep = self.plan.study, self.plan.sweep.id
        is_new = not study.sweep_file(sweep).exists()
        with contextlib.ExitStack() as held:
            try:
                study.sweeps_path.mkdir(parents=True, exist_ok=True)
                if held.enter_context(locks.hold(study.sweep_lock(sweep))):
                    self.stop_file.unlink(missing_ok=True)  # of a process that was killed as it stopped
                    held.callback(self.stop_file.unlink, missing_ok=True)
                study.write_sweep(self.plan.sweep)
            except OSError as error:
                raise ConfigError(f"{study.path}: the plan cannot be written ({error}); nothing was run") from error
            try:
                yield
            except ConfigError:
                if is_new and not self.rounds.any_began:
                    study.forget_sweep(sweep)
                raise

    def train_left(self) -> None:
        """Train what is left, shown while it goes on."""
        if self.todo:
            mode = self.plan.config.runtime.progress
            with Display(self.todo, len(self.runs), self.console, mode):
                self.rounds.carry_out(self.todo)

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
        if self.blocks is None or self.rounds.is_stopped:
            return False
        for line in self.blocks.advance():
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._take_in_plan()
        return not self.blocks.until["ended"]

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """The first signal: runs save and stop. Another Ctrl-C: everything stops at once."""
        with handled_by(self._on_signal, heard()):
            yield

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.stopped:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return  # clusters send several
        self.rounds.stopped = True
        with contextlib.suppress(OSError):  # a full disk: the runs have had the signal too, or finish
            self.stop_file.touch()
        self.console.print(
            f"stopping: the runs in progress save a checkpoint; {self._continues}",
            style="yellow",
            highlight=False,
            soft_wrap=True,
        )

    @property
    def _continues(self) -> str:
        return told.continues(self.plan.config.sweep.rerun)

    # what came of it --------------------------------------------------------------------------------------------------

    def _sum_up(self) -> int:
        from analysis.summary import print_summary  # noqa: PLC0415  (a second of start-up, needed only here)

        states = [(run, self.watcher.state(run.folder)) for run in self.runs]
        if any(state.status in ENDED for _, state in states):
            print_summary(self.plan.study.path, self.plan.sweep.id, self.console)
        told.failures(self.console, states, self.errors, stopped=self.stopped)
        counts = Counter(state.status for _, state in states)
        if self.stopped:
            self.console.print(
                f"interrupted: {told.in_words(counts)}; {self._continues}", highlight=False, soft_wrap=True
            )
            return INTERRUPTED
        return 0 if counts["finished"] == len(self.runs) and not self.unwritten else FAILED


def _load_analysis() -> None:
    """Import what the table at the end needs while the runs train: a second that nobody then waits for."""
    with contextlib.suppress(ImportError):
        importlib.import_module("analysis.comparison")

"""A search from its first trial to its best: asks Optuna, trains through the launcher, tells what the run folders say.

Trials are asked for and trained `n_jobs` at a time. Every run is a run as in any sweep: found by its identity, trained
once, locked, resumed. Only `ablate.sweep.grid.Sweep` deals with the launcher.
"""

import contextlib
import math
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import optuna
from hydra.core.config_loader import ConfigLoader
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console

from ablate import locks
from ablate.config.errors import ConfigError, refuse
from ablate.config.schema import Rerun
from ablate.jsonfiles import RecordError
from ablate.records import PlannedCell, RunFolder, RunRecord, Status
from ablate.resume import read_or_none
from ablate.sweep import told
from ablate.sweep.grid import FAILED, INTERRUPTED, Sweep
from ablate.sweep.plan import Plan, new_sweep
from ablate.sweep.runs import PlannedRun
from ablate.sweep.search import report, trials
from ablate.sweep.search.export import write_trials
from ablate.sweep.search.objective import mean_of, measure, value_of
from ablate.sweep.search.prepare import Prepared, prepare
from ablate.sweep.search.samplers import ask, make_pruner
from ablate.sweep.search.storage import FAULTS, close_storage, open_storage, open_study, shown

UNWRITTEN = "OSError: "
"""How the error of a run begins that could not be recorded, on a full disk for example."""

LOOK_AT_OTHERS = 0.5
"""Seconds between looks at trials of other processes."""


def run_search(loader: ConfigLoader, launcher: Launcher, config: DictConfig, arguments: Sequence[str]) -> None:
    """Prepare, search and sum up; ends the process with the exit code unless all is well."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    console = Console()
    try:
        prepared = prepare(loader, config, arguments)
        if prepared.first.config.sweep.dry_run:
            report.announce(console, prepared, launcher, 0)
            return
        search = Search(prepared, launcher, console, arguments)
    except ConfigError as error:
        refuse(str(error))
    try:
        code = search.run()
    finally:
        search.close()
    if code:
        sys.exit(code)


class Search:
    """One search in progress."""

    def __init__(self, prepared: Prepared, launcher: Launcher, console: Console, arguments: Sequence[str]) -> None:
        """Open the storage and the study in it; raises ConfigError when that cannot be."""
        self.prepared, self.launcher, self.console = prepared, launcher, console
        self.folder = prepared.folder
        self.storage = open_storage(prepared.place)
        self.study = self._open_study()
        self.study.pruner = make_pruner(prepared.pruner or {"_target_": "optuna.pruners.NopPruner"})
        first, self.trained = prepared.first, dict[str, int]()
        self.plan = new_sweep([], prepared.seeds, [first], arguments)
        self.plan.search = {
            "storage": prepared.place,
            "study_name": prepared.settings.study_name,
            "metric": prepared.objectives[0].metric,
            "pruner": prepared.pruner,
            "by_seed": prepared.by_seed,
            "trials": {},
            "trained": self.trained,
        }
        plan = Plan(self.plan, self.folder, first.config, {}, prepared.seeds)
        self.sweep = Sweep(plan, launcher, console)
        self.sources = plan.sources
        self.worse: dict[int, str] = {}
        self.broken = False

    def _open_study(self) -> optuna.Study:
        """Make or load the study, one process at a time."""
        prepared, directions = self.prepared, [one.direction for one in self.prepared.objectives]
        try:
            with self._turn():
                return open_study(self.storage, prepared.settings.study_name, directions, prepared.identity())
        except ConfigError:
            self.close()
            raise
        except FAULTS as error:
            self.close()
            reason = next(iter(str(error.__cause__ or error).splitlines()), type(error).__name__)
            raise ConfigError(f"{shown(prepared.place)}: cannot be written ({reason}); nothing was run") from error

    def run(self) -> int:
        """Search until enough trials count, print what was found, and return the exit code.

        A storage that fails on the way ends the search in one line; what the runs came to is in their folders.
        """
        try:
            return self._to_its_end()
        except FAULTS as error:
            self.broken = True
            reason = (str(error).splitlines() or [""])[0]
            self.console.print(
                f"the search cannot go on: {type(error).__name__}: {reason} ({shown(self.prepared.place)}); runs that "
                f"finished are kept, and {self._continues}",
                style="red",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
            return FAILED

    def close(self) -> None:
        """Close the connections to the storage."""
        close_storage(self.storage)

    def _to_its_end(self) -> int:
        self.folder.search_path.mkdir(parents=True, exist_ok=True)
        self.folder.sweeps_path.mkdir(exist_ok=True)
        with locks.hold(self.folder.sweep_lock(self.plan.id)), self.sweep.interruptible():
            self._take_over()
            self.folder.write_sweep(self.plan)
            report.announce(self.console, self.prepared, self.launcher, len(trials.counted(self.study)))
            try:
                ended = self._search()
            except ConfigError:
                if not self.sweep.rounds.any_began:
                    self.folder.forget_sweep(self.plan.id)
                raise
        self.folder.write_sweep(self.plan)
        self.folder.cells_file(self.plan.id).unlink(missing_ok=True)
        self.sweep.stop_file.unlink(missing_ok=True)
        if ended:
            self.console.print(ended, style="yellow", highlight=False, soft_wrap=True)
        write_trials(self.study, self.prepared)
        report.sum_up(self.console, self.study, self.prepared)
        if self.sweep.stopped:
            return INTERRUPTED
        return FAILED if trials.failed(trials.all_trials(self.study)) or not report.best_trials(self.study) else 0

    def _take_over(self) -> None:
        """Say which trials were lost, and put the cells of the earlier ones into the plan."""
        self._reclaim()
        for one in trials.counted(self.study):
            if (cell := trials.cell_of(one)) is not None:
                self._plan_cell(cell)
                if one.state in (TrialState.PRUNED, TrialState.FAIL):
                    self.trained[cell.cell] = sum(
                        record is not None for _, record in self._records(cell, self.plan.seeds)
                    )

    def _reclaim(self) -> list[int]:
        """Lose the trials whose process is gone, and say which."""
        with self._turn():
            gone = trials.reclaim(self.study, self.folder)
        for number in gone:
            self.console.print(f"trial {number}: its process is gone; tried again, not counted", style="yellow")
        return gone

    def _turn(self) -> AbstractContextManager[None]:
        """One's turn to count, ask and tie, so that processes that share a search never ask for too many trials."""
        return locks.turn(self.folder.search_turn(self.prepared.settings.study_name))

    def _search(self) -> str:
        """Ask, train, tell; returns why the search ended before n_trials, in words."""
        until = time.monotonic() + (self.prepared.settings.timeout or math.inf)
        while True:
            with self._turn():
                known = trials.counted(self.study)
                ended = self._why_end(known, until)
                asked = [] if ended is not None else self._ask_some(len(known))
            if ended is None:
                self._carry_out(asked)
            elif ended or not self._others_go_on():
                return ended

    def _why_end(self, known: Sequence[FrozenTrial], until: float) -> str | None:
        """Return why no trial is to be begun, "" for being through; None when there is more to do."""
        settings, n_trials = self.prepared.settings, self.prepared.n_trials
        if self._is_stopped():
            return f"stopped; {self._continues}"
        failed = len(trials.failed(known))
        if failed > settings.max_failure_rate * n_trials:
            return f"stopped: {failed} trials failed (hydra.sweeper.max_failure_rate={settings.max_failure_rate})"
        if len(known) >= n_trials:
            return ""
        if time.monotonic() > until:
            return f"stopped: hydra.sweeper.timeout={settings.timeout} seconds are over; {self._continues}"
        return None

    def _others_go_on(self) -> bool:
        """Whether trials of other processes are still going on, or one was lost and is to be tried again."""
        going = any(one.state is TrialState.RUNNING for one in trials.counted(self.study))
        if going and not self._reclaim():
            time.sleep(LOOK_AT_OTHERS)
        return going

    def _ask_some(self, index: int) -> list[tuple[optuna.Trial, PlannedCell | None]]:
        """Ask for as many trials as are trained at a time, or are left; `index` is the place of the first of them."""
        size = min(self.prepared.settings.n_jobs, self.prepared.n_trials - index)
        return [self._ask(index + number) for number in range(size)]

    def _carry_out(self, asked: Sequence[tuple[optuna.Trial, PlannedCell | None]]) -> None:
        """Train what was asked for, and tell, in order."""
        cells = {trial: cell for trial, cell in asked if cell is not None}
        self._train(cells)
        for trial, cell in cells.items():
            told = self._stored(trial) if self._is_lost(trial) else self._tell(trial, cell)
            report.trial_line(self.console, self.prepared, told)

    def _stored(self, trial: optuna.Trial) -> FrozenTrial:
        return self.study.get_trials(deepcopy=False)[trial.number]

    def _is_lost(self, trial: optuna.Trial) -> bool:
        """Whether another process took the trial for lost, as when this machine slept, and has it tried again."""
        return self._stored(trial).state.is_finished()

    def _is_stopped(self) -> bool:
        return self.sweep.rounds.is_stopped

    @property
    def _continues(self) -> str:
        return told.continues(self.prepared.first.config.sweep.rerun)

    # one trial --------------------------------------------------------------------------------------------------------

    def _ask(self, index: int) -> tuple[optuna.Trial, PlannedCell | None]:
        """Ask for a trial and tie it to its cell; None for values that cannot be combined, which is told at once."""
        prepared = self.prepared
        self.study.sampler = prepared.samplers.at(index)
        trial = ask(self.study, prepared.space)
        try:
            overrides = prepared.space.overrides(trial.params)
            cell, source = prepared.composer.unchecked(overrides, prepared.factors)
        except ConfigError as error:
            ended = trials.end(self.study, trial, TrialState.FAIL, str(error))
            report.trial_line(self.console, self.prepared, ended)
            return trial, None
        trials.tie(trial, self.plan.id, cell)
        self.sources[cell.cell] = source
        self._plan_cell(cell)
        assert self.plan.search is not None
        self.plan.search["trials"][cell.cell] = trial.number
        self.folder.add_cell(self.plan.id, cell, trial.number)
        return trial, cell

    def _plan_cell(self, cell: PlannedCell) -> None:
        if all(planned.cell != cell.cell for planned in self.plan.cells):
            self.plan.cells.append(cell)

    def _train(self, cells: dict[optuna.Trial, PlannedCell]) -> None:
        """Train the runs of these trials, in as many parts as the pruner judges them by."""
        going, done = dict(cells), 0
        for some in self._parts():
            runs = [PlannedRun(cell, seed, self._run(cell, seed)) for seed in some for cell in going.values()]
            if runs and not self._is_stopped():
                self._reopen(runs)
                self.sweep.take_in(list({run.folder: run for run in runs}.values()))
                self.sweep.train_left()
            done += len(some)
            self.trained.update({cell.cell: done for cell in going.values()})
            going = {trial: cell for trial, cell in going.items() if self._goes_on(trial, cell, some)}

    def _reopen(self, runs: Sequence[PlannedRun]) -> None:
        """Have runs go on that the pruner of another search stopped: it judged them beside other trials."""
        if self.prepared.first.config.sweep.rerun is Rerun.none:
            return
        for run in runs:
            record = read_or_none(run.folder)
            if record is None or record.status is not Status.pruned or self._is_own(record.sweep):
                continue
            with locks.hold(run.folder.lock) as mine:
                if mine:
                    run.folder.write(replace(record, status=Status.interrupted))

    def _is_own(self, sweep: str | None) -> bool:
        """Whether a sweep was a call of this very search."""
        with contextlib.suppress(OSError, RecordError):
            search = self.folder.read_sweep(sweep or "none").search or {}
            mine = (self.prepared.place, self.prepared.settings.study_name)
            return (search.get("storage"), search.get("study_name")) == mine
        return False

    def _parts(self) -> list[list[int]]:
        """The seeds of a trial in the parts that are trained one after the other: what can be stopped in between."""
        seeds = self.prepared.seeds
        if self.prepared.by_seed:
            return [[seed] for seed in seeds]
        return [seeds[:1], seeds[1:]] if self.prepared.pruner else [seeds]

    def _run(self, cell: PlannedCell, seed: int) -> RunFolder:
        return self.folder.run(cell.folder, seed)

    def _goes_on(self, trial: optuna.Trial, cell: PlannedCell, seeds: Sequence[int]) -> bool:
        """Whether the runs of these seeds leave the trial a value, and the pruner the trial."""
        records = self._records(cell, seeds)
        if not all(record is not None and record.status is Status.finished for _, record in records):
            return False
        if self._is_lost(trial):
            return False
        return not self.prepared.by_seed or not self._is_worse(trial, records)

    def _is_worse(self, trial: optuna.Trial, records: Sequence[tuple[int, RunRecord | None]]) -> bool:
        """Report the final values by seed, and ask the pruner, which compares them with the best trial's."""
        for seed, record in records:
            value = value_of(record, self.prepared.objectives[0].metric) if record else None
            if isinstance(value, int | float) and math.isfinite(value):
                trial.report(float(value), seed)
        if records[-1][0] == self.prepared.seeds[-1] or not trial.should_prune():
            return False
        self.worse[trial.number] = f"worse than the best trial on its seeds up to {records[-1][0]}"
        return True

    def _records(self, cell: PlannedCell, seeds: Sequence[int]) -> list[tuple[int, RunRecord | None]]:
        return [(seed, read_or_none(self._run(cell, seed))) for seed in seeds]

    def _tell(self, trial: optuna.Trial, cell: PlannedCell) -> FrozenTrial:
        """Tell Optuna what became of a trial's runs."""
        records = self._records(cell, self.prepared.seeds)
        found = measure(self.prepared.objectives, records)
        if self.prepared.pruner and not self.prepared.by_seed:
            self._report_curve(trial, cell)
        if trial.number in self.worse:
            return trials.end(self.study, trial, TrialState.PRUNED, self.worse[trial.number])
        if found.values is not None:
            self._note_constraints(trial, records)
            return self.study.tell(trial, found.values)
        if found.pruned:
            return trials.end(self.study, trial, TrialState.PRUNED, found.reason)
        if self._is_stopped() and any(record is None or not _ended(record) for _, record in records):
            return trials.lose(self.study, self._stored(trial), "the search was stopped")
        errors = [self.sweep.errors.get(self._run(cell, seed), "") for seed in self.prepared.seeds]
        if unwritten := next((error for error in errors if error.startswith(UNWRITTEN)), None):
            raise OSError(
                unwritten.removeprefix(UNWRITTEN)
            )  # more trials would be lost to it too; this one is not told
        return trials.end(self.study, trial, TrialState.FAIL, ": ".join([found.reason, *filter(None, errors)]))

    def _note_constraints(self, trial: optuna.Trial, records: Sequence[tuple[int, RunRecord | None]]) -> None:
        for one in self.prepared.constraints:
            value = mean_of(one.metric, records)
            trial.set_constraint(str(one), one.excess(value) if value is not None else math.inf)

    def _report_curve(self, trial: optuna.Trial, cell: PlannedCell) -> None:
        """Report the evaluations of a first seed that was trained before, so that others are judged against it."""
        known = self._stored(trial).intermediate_values
        name = self.prepared.objectives[0].metric.removeprefix("eval/")
        for record in self._run(cell, self.prepared.seeds[0]).read_metrics():
            value, step = record.get(name), int(record.get("step", 0))
            if record.get("split") == "eval" and step not in known and value is not None:
                trial.report(float(value), step)


def _ended(record: RunRecord) -> bool:
    return record.status.is_result or record.status is Status.failed

"""What a search costs beside its runs: `python -m benchmarks.search_overhead [--trials 1000] [--storage NAME ...]`.

Every trial's run is one call of an objective that sleeps 1 ms and writes the record of a run; everything else is the
search's own: asking, composing the cell, adding it to the plan, launching, reading the record back, telling.
"""

import argparse
import io
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import RunMode
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from ablate.config.register import config_dir
from ablate.records import PlannedCell, RunRecord, Status, StudyFolder
from ablate.sweep.search.prepare import prepare
from ablate.sweep.search.search import Search

STORAGES = {"journal": "null", "sqlite": "sqlite:///{folder}/search.db"}
SPACE = ("optimizer.lr=tag(log,interval(1e-4,1e-2))", "model.width=choice(32,64)")
SECONDS = 0.001


class InstantLauncher(Launcher):
    """Instead of training: sleeps a millisecond and writes a record, its loss a function of the learning rate."""

    def __init__(self, study: StudyFolder) -> None:
        self.study = study
        self.cells: list[PlannedCell] = []
        self.seconds = 0.0

    def setup(self, **_: Any) -> None:
        """Need nothing."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Write one record for each job, all of the newest cell."""
        began = time.perf_counter()
        for job in job_overrides:
            time.sleep(SECONDS)
            record = self._record(self.cells[-1], dict(override.split("=", maxsplit=1) for override in job))
            self.study.run(self.cells[-1].folder, record.seed).write(record)
        self.seconds += time.perf_counter() - began
        return [JobReturn(status=JobStatus.COMPLETED) for _ in job_overrides]

    def _record(self, cell: PlannedCell, values: dict[str, str]) -> RunRecord:
        return RunRecord(
            status=Status.finished,
            study=self.study.path.name,
            cell=cell.cell,
            label=cell.label,
            factors=cell.factors,
            seed=int(values["seed"]),
            sweep=values["runtime.sweep_id"],
            metrics={"eval/loss": abs(float(values["optimizer.lr"]) - 1e-3)},
        )


def seconds_per_trial(folder: Path, storage: str, trials: int) -> tuple[float, float]:
    """Return the mean seconds of a trial, its objective left out, and the mean processor seconds."""
    place = STORAGES[storage].format(folder=folder)
    options = ["hydra/sweeper=optuna", f"hydra.sweeper.n_trials={trials}", f"hydra.sweeper.storage={place}"]
    runs = [f"runtime.output_dir={folder}", "runtime.progress=off"]
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        master = loader.load_configuration("config", options, RunMode.MULTIRUN)
        prepared = prepare(loader, master, [*runs, *SPACE])
        console = Console(file=io.StringIO())
        launcher = InstantLauncher(prepared.folder)
        search = Search(prepared, launcher, console, [])
        launcher.cells = search.plan.cells
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        began, busy = time.perf_counter(), time.process_time()
        search.run()
    wall = time.perf_counter() - began - launcher.seconds
    return wall / trials, (time.process_time() - busy) / trials


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_overhead", description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--storage", choices=list(STORAGES), nargs="+", default=list(STORAGES))
    given = parser.parse_args(argv)
    table = Table("storage", "trials", "ms per trial", "of the processor", box=MARKDOWN)
    for storage in given.storage:
        with tempfile.TemporaryDirectory() as folder:
            seconds, busy = seconds_per_trial(Path(folder), storage, given.trials)
        table.add_row(storage, str(given.trials), f"{1000 * seconds:.1f}", f"{1000 * busy:.1f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

"""What pruning saves: `python -m benchmarks.search_pruning [--trials 30] [--seeds 2] [--jobs 2] [OVERRIDE ...]`.

One search over learning rate and width at the default size, by the same sampler with the same seed, with pruning and
without; then the default config with the same seeds. Steps and seconds are added up from the run folders.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from ablate.records import Status, StudyFolder

SPACE = ("optimizer.lr=tag(log,interval(1e-4,1e-2))", "model.width=choice(32,64)")
PRUNERS = {"none": (), "median": ("hydra/sweeper/pruner=median",)}


class Measured(NamedTuple):
    """What a search came to; `wall` and `training` in seconds, `best` its best mean loss."""

    runs: int
    pruned: int
    steps: int
    training: float
    wall: float
    best: float


def command(study: str, *arguments: str) -> float:
    """Run one `ablate.run` and return its seconds."""
    began = time.perf_counter()
    whole = [sys.executable, "-m", "ablate.run", "-m", f"study={study}", "runtime.progress=off", *arguments]
    subprocess.run(whole, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def measured(folder: Path, study: str, wall: float) -> Measured:
    """Add up a study's runs; the best cell is the one with the lowest mean loss of its finished runs."""
    records = [record for run in StudyFolder(folder / study).runs() if (record := run.read())]
    losses: dict[str, list[float]] = {}
    for record in records:
        if record.status is Status.finished and (loss := record.metrics["eval/loss"]) is not None:
            losses.setdefault(record.cell, []).append(loss)
    most = max(map(len, losses.values()))
    return Measured(
        runs=len(records),
        pruned=sum(record.status is Status.pruned for record in records),
        steps=sum(record.steps_done for record in records),
        training=sum(record.seconds or 0.0 for record in records),
        wall=wall,
        best=min(sum(values) / len(values) for values in losses.values() if len(values) == most),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search_pruning", description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    given, overrides = parser.parse_known_args(argv)
    table = Table("search", "runs", "pruned", "steps", "training, s", "wall, s", "best eval/loss", box=MARKDOWN)
    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), {}
        shared = [f"runtime.output_dir={folder}", *overrides]
        options = [
            f"hydra.sweeper.n_trials={given.trials}",
            f"hydra.sweeper.seeds={given.seeds}",
            f"hydra.sweeper.n_jobs={given.jobs}",
        ]
        for pruner, chosen in PRUNERS.items():
            wall = command(pruner, "hydra/sweeper=optuna", *SPACE, *options, *chosen, *shared)
            found[f"pruner {pruner}"] = measured(folder, pruner, wall)
        wall = command("default", f"seed=range({given.seeds})", *shared)
        found["default config"] = measured(folder, "default", wall)
    for label, one in found.items():
        numbers = f"{one.training:.0f}", f"{one.wall:.0f}", f"{one.best:.4f}"
        table.add_row(label, str(one.runs), str(one.pruned), str(one.steps), *numbers)
    console = Console(width=120)
    console.print(table)
    saved = 1 - found["pruner median"].steps / found["pruner none"].steps
    console.print(f"pruning saved {saved:.0%} of the steps")


if __name__ == "__main__":
    main()

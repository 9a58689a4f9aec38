"""What drawing data costs, task by task, as a share of a training step: `python -m benchmarks.tasks`.

Each task is trained for a few steps at its published size, on one thread of a CPU, by the product's own trainer, which
draws all batches of so short a run before the first step. So the steps after the first draw nothing; their median is a
step's time, and the same batches are drawn once more, one after the other, as the trainer does. Seconds are those of
the processor (`process_time`), so that other work on the machine does not count.
"""

import argparse
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import torch
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from ablate.config.build import build
from ablate.config.register import config_dir
from ablate.records import RunFolder
from ablate.tasks.base import Task
from ablate.training.seeds import numpy_generator
from ablate.training.trainer import DRAWN_AHEAD, train
from benchmarks.engines import CPU, config_of

MODEL = ("model.width=128", "model.heads=4", "training.batch_size=16")
THREE, SIX = (*MODEL, "model.layers=3"), (*MODEL, "model.layers=6")
ZHOU = ("model.width=256", "model.heads=4", "model.layers=4", "training.batch_size=64", "task.seq_len=101")
REFERENCE: dict[str, tuple[str, ...]] = {
    "copy_repeat": (*THREE, "task.seq_len=512", "task.substr_len=16", "task.rnd_len=12"),
    "copy": (*THREE, "task.seq_len=128"),
    "addition": (*SIX, "task.seq_len=512", "task.max_digits=7"),
    "multiplication": (*SIX, "task.seq_len=512", "task.max_digits=8", "task.base=4"),
    "substring_by_index": (
        *("model.width=512", "model.heads=8", "model.layers=6"),
        *("training.batch_size=32", "task.seq_len=641"),
    ),
    "shakespeare": (*SIX, "task.seq_len=512"),
    "mqar": (*THREE, "task.seq_len=512", "task.pairs=64", "task.keys=4096", "task.values=4096"),
    "selective_copy": (*THREE, "task.seq_len=4096", "task.items=16"),
    "unique_copy": ZHOU,
    "repeat_copy": ZHOU,
}
"""The published size of a task; one that is not here has its own size in the model of three layers."""

RUN = (
    *("training.log_every=1", "training.eval_every=1000000000", "runtime.checkpoint_every=0"),
    *("evaluation.sequences=1", "evaluation.curve_sequences=1"),
)


class Cost(NamedTuple):
    """Seconds of one step and of drawing its batch."""

    step: float
    data: float

    @property
    def share(self) -> float:
        """Of drawing in the whole."""
        return self.data / (self.step + self.data)


def measure(overrides: Sequence[str], steps: int) -> Cost:
    """Train for `steps` (2 to 16) with these overrides."""
    assert 2 <= steps <= DRAWN_AHEAD
    torch.set_num_threads(1)
    config = config_of([*overrides, *RUN, f"training.steps={steps}"])
    seconds: list[float] = []

    def note(record: Any) -> None:
        if record["split"] == "train":
            seconds.append(process_time())

    with tempfile.TemporaryDirectory() as folder:
        where = RunFolder(Path(folder))
        parts = build(config, CPU).parts
        train(parts, config, where, device=CPU, source="benchmark", should_stop=lambda: False, on_log=note)
    step = median(after - before for before, after in pairwise(seconds))
    return Cost(step=step, data=draw_seconds(parts.task, config.training.batch_size))


def draw_seconds(task: Task, size: int) -> float:
    """Seconds for a batch, generator included, over the batches that are drawn ahead together."""
    began = process_time()
    for number in range(DRAWN_AHEAD):
        task.batch(numpy_generator(0, "data", number), size)
    return (process_time() - began) / DRAWN_AHEAD


def table() -> Table:
    """The empty table."""
    found = Table(box=MARKDOWN)
    for heading in ("task", "positions a step", "step, ms", "drawing, ms", "share"):
        found.add_column(heading, justify="left" if heading == "task" else "right", no_wrap=True)
    return found


def row(task: str, overrides: Sequence[str], cost: Cost) -> tuple[str, ...]:
    """The cells of one task."""
    config = config_of(overrides)
    positions = f"{config.training.batch_size} x {config.task['seq_len']}"
    return task, positions, f"{1e3 * cost.step:,.1f}", f"{1e3 * cost.data:.2f}", f"{cost.share:.2%}"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tasks", description=__doc__)
    known = sorted(file.stem for file in (config_dir() / "task").glob("*.yaml"))
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(known)}; default all")
    parser.add_argument("--size", choices=["reference", "default"], default="reference")
    parser.add_argument("--steps", type=int, choices=range(2, DRAWN_AHEAD + 1), default=4, metavar="2-16")
    parser.add_argument("--text", help="a text file for shakespeare, in place of the one it downloads")
    given = parser.parse_args(argv)
    if unknown := set(given.tasks) - set(known):
        parser.error(f"no such task: {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    found = table()
    for task in given.tasks or known:
        text = (f"task.path={given.text}",) if task == "shakespeare" and given.text else ()
        overrides = (f"task={task}", *text, *(REFERENCE.get(task, THREE) if given.size == "reference" else ()))
        found.add_row(*row(task, overrides, measure(overrides, given.steps)))
    Console(width=120).print(f"size: {given.size}, {given.steps} steps, one thread", found)


if __name__ == "__main__":
    main()

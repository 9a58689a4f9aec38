"""How much memory a run takes, and whether a process that trains many keeps any: `python -m benchmarks.memory`.

Resident memory of the CPU, on Linux. The peak is that of one default run in a process of its own, as its record tells;
growth is the difference in resident memory of one process between its 20th and its 200th tiny run.
"""

import argparse
import gc
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from ablate.config.explain import compose_cell
from ablate.config.register import plain, to_run_config
from ablate.job import Context, perform
from ablate.records import RunRecord, Status, StudyFolder

STATUS = Path("/proc/self/status")
MIB = 2**20
TINY = (
    "training.steps=4",
    "training.batch_size=4",
    "evaluation.sequences=16",
    "evaluation.curve_sequences=8",
    "task.seq_len=24",
    "task.substr_len=3",
    "task.rnd_len=3",
    "model.width=8",
    "model.heads=2",
    "model.layers=1",
    "runtime.device=cpu",
)
FIRST, LAST = 20, 200
"""The runs after which memory is read: the first few fill caches that stay, and are no leak."""


def resident() -> int:
    """Resident memory of this process in bytes."""
    for line in STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{STATUS} has no VmRSS: this benchmark needs Linux")


def peak_of_a_run(folder: Path, overrides: Sequence[str] = ()) -> int:
    """Train one run in a new process, the default one unless overridden; return its peak memory in bytes."""
    where = (f"runtime.output_dir={folder}", "study=memory", "runtime.progress=off", "runtime.device=cpu")
    subprocess.run([sys.executable, "-m", "ablate.run", *overrides, *where], check=True)
    (run,) = StudyFolder(folder / "memory").runs()
    record = _finished(run.read())
    assert record.peak_memory_bytes is not None, "a run that ended has a peak"
    return record.peak_memory_bytes


def growth(folder: Path, first: int = FIRST, last: int = LAST) -> tuple[int, int]:
    """Train `last` tiny runs in this process; return its resident memory in bytes after run `first` and `last`."""
    readings = []
    composed = compose_cell(TINY)
    config, values = to_run_config(composed), plain(composed)
    study = StudyFolder(folder)
    for seed in range(last):
        context = Context(label="tiny", factors={}, command="")
        done = perform(replace(config, seed=seed), {**values, "seed": seed}, study.run("tiny", seed), context)
        _finished(done.record)
        if seed + 1 in (first, last):
            gc.collect()
            readings.append(resident())
    return readings[0], readings[-1]


def _finished(record: RunRecord | None) -> RunRecord:
    if record is None or record.status is not Status.finished:
        raise RuntimeError(f"a run of this benchmark did not finish: {record}")
    return record


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__).parse_args(argv)
    console = Console(width=100)
    with tempfile.TemporaryDirectory() as folder:
        console.print(f"peak of one default run: {peak_of_a_run(Path(folder)) / MIB:.0f} MiB")
        after_first, after_last = growth(Path(folder) / "many")
    console.print(f"after {FIRST} runs: {after_first / MIB:.1f} MiB, after {LAST}: {after_last / MIB:.1f} MiB")
    per_run = (after_last - after_first) / (LAST - FIRST) / 1024
    console.print(f"growth: {(after_last - after_first) / MIB:.1f} MiB, {per_run:.1f} KiB a run")


if __name__ == "__main__":
    main()

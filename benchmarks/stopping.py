"""How long a run takes from being told to stop to the end of its process: `python -m benchmarks.stopping`.

Runs of the default size, or of any given by overrides, are told by Ctrl-C, SIGTERM or SIGUSR1 at random moments of
their training and evaluation. They save a checkpoint, record that they were interrupted, and end; 5 seconds are
promised.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from ablate.records import RunFolder, Status, StudyFolder

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
PATIENCE = 300.0


def seconds_to_stop(number: int, delay: float, overrides: Sequence[str], root: Path) -> float:
    """Start a run, tell it to stop `delay` seconds after its first record; raises RuntimeError unless it obeyed."""
    study = f"stop-{number}-{delay:.3f}"
    command = [sys.executable, "-m", "ablate.run", *overrides, f"study={study}"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        folder = _first_record(StudyFolder(root / "multirun" / study), process)
        time.sleep(delay)
        process.send_signal(number)
        began = time.perf_counter()
        process.wait(PATIENCE)
        seconds = time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
    record = folder.read()
    if record is None or record.status is not Status.interrupted or not folder.checkpoint.exists():
        raise RuntimeError(f"{folder.path}: not saved and recorded as interrupted; is the run long enough?")
    return seconds


def _first_record(study: StudyFolder, process: subprocess.Popen[bytes]) -> RunFolder:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        for folder in study.runs():
            if folder.last_metrics():
                return folder
        time.sleep(0.05)
    raise RuntimeError("the run did not begin")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stopping", description=__doc__)
    parser.add_argument("overrides", nargs="*", help="of the run, as for ablate.run")
    parser.add_argument("--times", type=int, default=10, help="runs to stop for each signal")
    given = parser.parse_args(argv)
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        for number in SIGNALS:
            delays = [draw.uniform(0.0, 4.0) for _ in range(given.times)]
            found = [seconds_to_stop(number, delay, given.overrides, Path(folder)) for delay in delays]
            print(f"{number.name}: {len(found)} runs, median {median(found):.2f} s, longest {max(found):.2f} s")


if __name__ == "__main__":
    main()

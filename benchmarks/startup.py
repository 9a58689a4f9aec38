"""Seconds from the start of `python -m ablate.run` to its first training step, seen from outside."""

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter, sleep

from ablate.records import StudyFolder

POLL_SECONDS = 0.01
OVERRIDES = ("training.steps=1", "training.log_every=1", "runtime.progress=off", "runtime.device=cpu")


def seconds_to_first_step(overrides: Iterable[str] = ()) -> float:
    """Train for one step in a new process; return the seconds until metrics.jsonl shows the step, to 10 ms.

    Interpreter, imports, composing, checks, building and the evaluation set are all in it. Raises RuntimeError when
    the command fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        where = (f"runtime.output_dir={folder}", "study=startup")
        began = perf_counter()
        command = [sys.executable, "-m", "ablate.run", *OVERRIDES, *overrides, *where]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            found = _wait(StudyFolder(Path(folder) / "startup"), process)
            seconds = perf_counter() - began
            output, _ = process.communicate()
        if not found or process.returncode:
            raise RuntimeError(f"ablate.run ended with {process.returncode} before its first step: {output}")
    return seconds


def _wait(study: StudyFolder, process: subprocess.Popen[str]) -> bool:
    """Wait until the run has logged its step or is over; return whether it has."""
    while process.poll() is None:
        if _has_trained(study):
            return True
        sleep(POLL_SECONDS)
    return _has_trained(study)


def _has_trained(study: StudyFolder) -> bool:
    return any(record["split"] == "train" for run in study.runs() for record in run.read_metrics())

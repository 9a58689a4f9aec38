"""Run by test_training_resume.py in a process of its own: children train, or save, and are killed at random moments.

Children are forked, so torch is imported once; the parent does no arithmetic in torch, which may not be forked after.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from training_stub import config_of, parts_of, quiet, run

from ablate.records import RunFolder
from ablate.training.checkpoint import Checkpoint, load, save


def fork(job):
    child = os.fork()
    if child == 0:
        quiet()
        torch.set_num_threads(1)
        try:
            job()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def kill(child, seconds):
    """Kill the child after that time; its exit code if it had ended before, else None."""
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def train_once(folder: Path):
    run(folder, config_of(120, 3, 7, 5))


def logged(folder: Path):
    """When the run last logged something, 0 for never."""
    metrics = RunFolder(folder).metrics
    return metrics.stat().st_mtime_ns if metrics.exists() and metrics.stat().st_size else 0


def training(folder: Path, chance: random.Random):
    """Kill the run soon after each start, a few times in a row, then let it end."""
    midway = 0
    for _ in range(12):
        before, child = logged(folder), fork(lambda: train_once(folder))
        while logged(folder) <= before:
            time.sleep(0.001)
        midway += kill(child, chance.uniform(0, 0.03)) is None
    assert os.waitpid(fork(lambda: train_once(folder)), 0)[1] == 0
    (folder / "kills").write_text(str(midway))


def saving(folder: Path, chance: random.Random):
    """Kill a process that does nothing but save, fifty times."""

    def save_for_ever():
        for step in range(10**9):
            save(RunFolder(folder), Checkpoint(step=step, model={"weight": torch.zeros(20000)}), source="s")

    verdicts = []
    for _ in range(50):
        child = fork(save_for_ever)
        while not RunFolder(folder).previous_checkpoint.exists():
            time.sleep(0.001)
        kill(child, chance.uniform(0, 0.02))
        RunFolder(folder).remove_temporaries()
        clean = not list(folder.glob(".*"))
        verdicts.append("loadable" if load(RunFolder(folder), source="s") and clean else "lost")
    (folder / "verdicts").write_text("\n".join(verdicts))


if __name__ == "__main__":
    target = Path(sys.argv[2])
    target.mkdir(parents=True)
    parts_of()  # torch imports much when the first optimiser is built; each child would do so again
    {"training": training, "saving": saving}[sys.argv[1]](target, random.Random(1))

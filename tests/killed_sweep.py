"""Run by test_kills.py in a process of its own: a sweep of eight runs is killed a hundred times.

Each start is a fork of this process, which has imported torch and ablate and has planned the sweep; it goes through
the runs one after the other, as the launcher `basic` does. The sweep's own command then ends what was killed.

Half of the kills come at a random moment. The other half come during a save: the child stops in the middle of it (half
of the file written, before it is flushed to disk, before each of the two renames), says so, and is killed there.
"""

import functools
import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

import torch
import torch._dynamo  # the first optimiser imports it, for more than a second, in every child

from ablate import provenance
from ablate.config.explain import compose_cell
from ablate.config.identity import cell_folder, cell_identity
from ablate.config.register import plain, to_run_config
from ablate.job import Context, perform
from ablate.records import StudyFolder
from ablate.run import main
from tests.conftest import TINY

ARGUMENTS = (
    *TINY,
    "training.steps=60",
    "training.eval_every=7",
    "runtime.checkpoint_every=5",
    "runtime.device=cpu",
    "runtime.progress=off",
    "model.dropout=0.1",
)
LEVELS = ("rope", "roper", "alibi", "none")
SEEDS = (0, 1)
KILLS = 100
PAUSES = 12
"""A kill during a save comes at one of so many first pauses; a save has four."""


def planned() -> list:
    """The sweep's runs, seed by seed: configs, plain values and the name of the cell's folder."""
    cells = [compose_cell([*ARGUMENTS, f"attention={level}", f"seed={seed}"]) for seed in SEEDS for level in LEVELS]
    return [(to_run_config(cell), plain(cell)) for cell in cells]


def runs(study: str, plan: list) -> int:
    """Train what is left of the sweep in this process, one run after the other."""
    torch.set_num_threads(1)
    for config, values in plan:
        config.study = values["study"] = study
        folder = StudyFolder(Path("multirun", study)).run(cell_folder(values), config.seed)
        perform(config, values, folder, Context(label=cell_identity(values)[:8], factors={}, command="killed"))
    return 0


def sweep(study: str) -> int:
    """The command that ends the sweep, in this process; its exit code."""
    torch.set_num_threads(1)
    levels, seeds = ",".join(LEVELS), ",".join(map(str, SEEDS))
    swept = [f"attention={levels}", f"seed={seeds}", f"study={study}"]
    sys.argv = ["ablate.run", "-m", "hydra/launcher=basic", *ARGUMENTS, *swept]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def start(job, prepare=lambda: None) -> int:
    """Fork a child that does the job and ends with its exit code; its output is thrown away."""
    child = os.fork()
    if child == 0:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        try:
            prepare()
            os._exit(job())
        finally:
            os._exit(99)
    return child


def pausing(writer: int, at: int):
    """Stop this process for good at the `at`-th place within saves, and say so."""
    places = iter(range(1, 10**9))

    def pause(path) -> None:
        if "checkpoint" in str(path) and next(places) == at:
            os.write(writer, b".")
            time.sleep(600)

    open_file, replace, fsync = Path.open, Path.replace, os.fsync

    class HalfWritten:
        def __init__(self, path, file):
            self.path, self.file = path, file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, content):
            self.file.write(content[: len(content) // 2])
            self.file.flush()
            pause(self.path)
            self.file.write(content[len(content) // 2 :])

    def opening(path, mode="r", *more, **named):
        file = open_file(path, mode, *more, **named)
        return HalfWritten(path, file) if mode == "wb" and "checkpoint" in path.name else file

    def flushing(descriptor):
        pause(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    def replacing(path, target):
        pause(path)
        return replace(path, target)

    Path.open, Path.replace, os.fsync = opening, replacing, flushing


def killed_in_a_save(job, at: int) -> bool:
    """Whether the child came to the place and was killed there; else it ended by itself."""
    reader, writer = os.pipe()
    child = start(job, lambda: pausing(writer, at))
    os.close(writer)
    paused = bool(select.select([reader], [], [], 120)[0]) and os.read(reader, 1) == b"."
    os.close(reader)
    return end(child) and paused


def killed_at_random(job, seconds: float) -> bool:
    child = start(job)
    time.sleep(seconds)
    return end(child)


def end(child: int) -> bool:
    """Kill; whether the child was still running then."""
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def duration(job) -> float:
    """Do the job to its end; its seconds."""
    began, status = time.monotonic(), os.waitpid(start(job), 0)[1]
    assert os.waitstatus_to_exitcode(status) == 0, status
    return time.monotonic() - began


def kill_often(plan: list, seconds: float, chance: random.Random) -> dict:
    """A hundred kills, half of each kind in a random order, over as many sweeps as that takes."""
    kinds = ["save", "random"] * (KILLS // 2)
    chance.shuffle(kinds)
    counts, studies = {"save": 0, "random": 0, "between_renames": 0, "with_temporary": 0}, ["killed0"]
    while kinds:
        study, kind = studies[-1], kinds[-1]
        job = functools.partial(runs, study, plan)
        if kind == "save":
            killed = killed_in_a_save(job, chance.randint(1, PAUSES))
        else:
            killed = killed_at_random(job, chance.uniform(0, seconds))
        if killed:
            counts[kinds.pop()] += 1
            counts["with_temporary"] += bool(list(Path("multirun", study).rglob(".*.tmp")))
            counts["between_renames"] += any(
                not (previous.parent / "checkpoint.pt").exists()
                for previous in Path("multirun", study).rglob("checkpoint.previous.pt")
            )
        else:
            studies.append(f"killed{len(studies)}")
    for study in studies:
        duration(functools.partial(sweep, study))
    return {**counts, "studies": studies}


if __name__ == "__main__":
    plan = planned()
    for found in (provenance.source_fingerprint(plan[0][1]), provenance.git_state(), provenance.versions()):
        assert found  # kept for the children
    whole = duration(functools.partial(runs, "straight", plan))
    found = kill_often(plan, whole * 0.4, random.Random(20))
    sys.stdout.write(json.dumps({**found, "seconds": whole}) + "\n")

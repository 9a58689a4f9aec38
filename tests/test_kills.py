"""A sweep that is killed a hundred times is the sweep that was left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ablate.records import RunFolder, StudyFolder

TESTS = Path(__file__).parent


def lines(folder: RunFolder) -> list[dict]:
    records = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def weights(folder: RunFolder) -> dict[str, torch.Tensor]:
    return torch.load(folder.checkpoint)["model"]


def same_run(one: RunFolder, other: RunFolder) -> None:
    ours, theirs = one.read(), other.read()
    assert theirs.status == "finished"
    assert (ours.cell, ours.seed, ours.metrics, ours.steps_done) == (
        theirs.cell,
        theirs.seed,
        theirs.metrics,
        theirs.steps_done,
    )
    assert lines(one) == lines(other)
    assert weights(one).keys() == weights(other).keys()
    assert all(torch.equal(value, weights(other)[name]) for name, value in weights(one).items())
    assert {file.name for file in one.path.iterdir()} - {".hydra"} == {file.name for file in other.path.iterdir()} - {
        ".hydra"  # of a run that the sweep's command ended; the others were started without Hydra
    }


@pytest.mark.slow
def test_a_sweep_killed_a_hundred_times_half_of_them_in_saves_ends_as_if_undisturbed(in_tmp, record_property):
    path = str(TESTS.parent)
    done = subprocess.run(
        [sys.executable, TESTS / "killed_sweep.py"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert (counts["save"], counts["random"]) == (50, 50)
    assert counts["with_temporary"] >= 40
    assert counts["between_renames"] >= 5
    straight = StudyFolder(Path("multirun/straight"))
    assert len(straight.runs()) == 8
    for study in counts["studies"]:
        killed = StudyFolder(Path("multirun", study))
        assert len(killed.runs()) == 8
        for one, other in zip(straight.runs(), killed.runs(), strict=True):
            same_run(one, other)
        assert not [file for file in killed.path.rglob("*") if file.name.endswith(".tmp") or file.name == "lock"]
    record_property("kills at a random moment", counts["random"])
    record_property("kills during a save", counts["save"])
    record_property("killed runs that ended as if undisturbed", 8 * len(counts["studies"]))
    assert sum(folder.read().resumed for s in counts["studies"] for folder in StudyFolder(Path("multirun", s)).runs())

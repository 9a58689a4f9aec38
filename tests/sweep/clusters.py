"""What the tests of launchers share: whether a Slurm or Ray is there, and how to look at runs from outside."""

import importlib.util
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ablate.records import RunFolder, RunRecord, StudyFolder

CONF = Path(__file__).resolve().parents[1] / "faulty_conf"
LONG = ("training.steps=200000", "training.eval_every=100000", "training.log_every=500", "runtime.checkpoint_every=200")


def _slurm_answers() -> bool:
    if shutil.which("sinfo") is None:
        return False
    told = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, timeout=60, check=False)
    return told.returncode == 0 and told.stdout.split() != []


def _installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


needs_submitit = pytest.mark.skipif(not _installed("submitit"), reason="submitit is not installed (extra slurm)")
needs_slurm = pytest.mark.skipif(
    not (_installed("submitit") and _slurm_answers()), reason="no Slurm answers here; .ci/slurm starts one (as root)"
)
needs_ray = pytest.mark.skipif(not _installed("ray", "msgpack"), reason="Ray is not installed (extra ray)")


def folders(study: str) -> list[RunFolder]:
    return StudyFolder(Path("multirun") / study).runs()


def records(study: str) -> list[RunRecord]:
    return [record for folder in folders(study) if (record := folder.read()) is not None]


def wait_for(condition: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def step_of(folder: RunFolder) -> int:
    return int(folder.last_metrics().get("step", 0))

"""optuna-dashboard reads a search where it is kept by default."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sweep.search.conftest import LR
from tests.sweep.search.postgres import free_port

JOURNAL = Path("multirun/copy_repeat/search/search.journal")


@contextmanager
def dashboard(storage: Path) -> Iterator[str]:
    """Start the dashboard on loopback and yield its address; it is ended with the block."""
    program = Path(sys.executable).with_name("optuna-dashboard")
    if not program.is_file():
        pytest.skip("optuna-dashboard is not installed")
    port = free_port()
    process = subprocess.Popen(
        [program, str(storage), "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def answer(address: str) -> dict:
    """What the address answers, once it does."""
    until = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(address, timeout=10) as response:
                return json.load(response)
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < until, "the dashboard did not answer"
            time.sleep(0.2)


def test_the_dashboard_shows_the_trials_of_the_default_storage(search):
    search(LR, "hydra.sweeper.n_trials=3", "training.eval_every=2", "hydra/sweeper/pruner=median")
    with dashboard(JOURNAL) as address:
        (study,) = answer(f"{address}/api/studies")["study_summaries"]
        assert study["study_name"] == "search"
        trials = answer(f"{address}/api/studies/{study['study_id']}?after=0")["trials"]
    assert [one["state"] for one in trials] == ["Complete"] * 3
    assert all({"step", "value"} <= value.keys() for one in trials for value in one["intermediate_values"])
    assert [one["params"][0]["name"] for one in trials] == ["optimizer.lr"] * 3

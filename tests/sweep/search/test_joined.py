"""Several processes on one search, each started by the same command; one of them is killed."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ablate import locks
from ablate.records import Status, StudyFolder
from tests.sweep.search import postgres
from tests.sweep.search.conftest import LR, states, stored

TRIALS, WORKERS = 12, 4
STUDY = Path("multirun/copy_repeat")


@pytest.fixture
def storage(request, in_tmp: Path):
    """What is given as hydra.sweeper.storage, and where the trials then are."""
    kind = request.param
    if kind == "journal":
        yield "null", STUDY / "search" / "search.journal"
    elif kind == "sqlite":
        yield "sqlite:///trials.db", f"sqlite:///{in_tmp}/trials.db"
    else:
        with postgres.server() as url:
            yield url, url


def first_at_work(pids: set[int]) -> int:
    """The process that is seen training first."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        owners = [locks.read_owner(run.lock) for run in StudyFolder(STUDY).runs()]
        found = [owner.pid for owner in owners if owner is not None and owner.pid in pids]
        if found:
            return found[0]
        time.sleep(0.005)
    raise AssertionError("nobody began to train")


@pytest.mark.parametrize(
    ("storage", "chdir"),  # a relative path is what another working directory could move
    [("journal", "false"), ("sqlite", "false"), ("sqlite", "true"), ("postgresql", "false")],
    indirect=["storage"],
)
def test_b8_workers_share_a_search_and_take_over_what_a_killed_one_left(storage, spawn: Callable, tiny, chdir):
    given, place = storage
    asked = [LR, f"hydra.sweeper.n_trials={TRIALS}", f"hydra.sweeper.storage={given}", f"hydra.job.chdir={chdir}"]
    longer = ["training.steps=300", "training.eval_every=150"]
    command = ["-m", "hydra/launcher=basic", "hydra/sweeper=optuna", *tiny, *longer, *asked]
    workers = [spawn(*command) for _ in range(WORKERS)]
    killed = first_at_work({one.pid for one in workers})
    for one in workers:
        if one.pid == killed:
            one.send_signal(signal.SIGKILL)
    codes = {one.pid: one.wait(timeout=240) for one in workers}
    assert codes.pop(killed) == -signal.SIGKILL
    assert set(codes.values()) == {0}, [one.stderr.read() for one in workers]
    study = stored(place)
    found = states(study)
    assert found.count("complete") == TRIALS, found
    assert set(found) == {"complete", "lost"}
    records = [record for run in StudyFolder(STUDY).runs() if (record := run.read())]
    assert [record.status for record in records] == [Status.finished] * TRIALS
    assert len({record.cell for record in records}) == TRIALS
    assert len({record.sweep for record in records}) > 1


def test_a_server_that_is_down_or_wrong_is_refused_in_one_line_without_the_password(search, in_tmp):
    pytest.importorskip("psycopg")
    nowhere = f"postgresql+psycopg://me:secret@127.0.0.1:{postgres.free_port()}/db"
    result = search(LR, f"hydra.sweeper.storage={nowhere}")
    assert result.code == 2
    assert "cannot be opened" in result.err
    assert "secret" not in result.err + result.out
    assert len(result.err.strip().splitlines()) == 1
    assert not list(in_tmp.iterdir())


def test_a_missing_driver_is_named(search):
    result = search(LR, "hydra.sweeper.storage=postgresql+nodriver://h/d")
    assert result.code == 2
    assert "cannot be opened" in result.err


def test_b5_another_choice_is_named_by_a_server_too(search):
    with postgres.server() as url:
        search("attention=choice(rope,roper)", "hydra.sweeper.n_trials=1", f"hydra.sweeper.storage={url}")
        result = search("attention=choice(rope,none)", "hydra.sweeper.n_trials=1", f"hydra.sweeper.storage={url}")
        assert result.code == 2
        assert "attention: was choice(rope,roper), now choice(rope,none)" in result.err

"""Who trains a run: one at a time, a dead owner's lock is free at once, another host's after its heartbeat stops."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ablate import locks


@pytest.fixture
def quick(monkeypatch):
    """Hearts that beat fast, and are watched for long enough to be sure of a beat on a busy machine."""
    monkeypatch.setattr(locks, "HEARTBEAT", 0.02)
    monkeypatch.setattr(locks, "WATCH", 5.0)


@pytest.fixture
def no_shared_flock(monkeypatch):
    """As between two machines on a shared folder whose locks do not travel."""
    monkeypatch.setattr(locks.fcntl, "flock", lambda *given: None)


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def as_from(path, **changes):
    """Make a held lock look as if another owner had written it, keeping the time of its heartbeat."""
    path.write_text(json.dumps(vars(locks.Owner.me()) | changes))


class Elsewhere:
    """An owner on another machine whose clock is off by so many seconds; beats until it is told to die."""

    def __init__(self, path, clock=0.0, host="elsewhere"):
        self.path, self.clock, self.dead = path, clock, threading.Event()
        path.write_text(json.dumps({"host": host, "pid": os.getpid(), "started": 1, "boot": "another"}))
        self.beat()
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.thread.start()

    def beat(self):
        os.utime(self.path, (time.time() + self.clock,) * 2)

    def live(self):
        while not self.dead.wait(0.02):
            self.beat()

    def die(self):
        self.dead.set()
        self.thread.join()


def test_a_lock_is_held_once_and_gone_afterwards(tmp_path):
    path = tmp_path / "lock"
    with locks.hold(path) as first:
        assert first
        assert locks.is_held(path)
        with locks.hold(path) as second:
            assert not second
        assert locks.read_owner(path) == locks.Owner.me()
    assert not path.exists()
    assert not locks.is_held(path)


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path):
    path = tmp_path / "lock"
    code = (
        "import sys, time; from pathlib import Path; from ablate import locks\n"
        "with locks.hold(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    assert locks.is_held(path)
    with locks.hold(path) as mine:
        assert not mine
    process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while locks.is_held(path):  # not reaped yet: a zombie is no owner
        assert time.monotonic() < end
        time.sleep(0.01)
    process.communicate()
    with locks.hold(path) as mine:
        assert mine


def test_another_hosts_lock_counts_until_its_heartbeat_stops(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "WATCH", 0.2)
    path = tmp_path / "lock"
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "started": 0}))
    assert locks.is_held(path)
    with locks.hold(path) as mine:
        assert not mine
    long_ago = time.time() - locks.TAKE_OVER - 1
    os.utime(path, (long_ago, long_ago))
    assert not locks.is_held(path)
    with locks.hold(path) as mine:
        assert mine


def test_a_reused_process_id_is_not_taken_for_the_owner():
    me = locks.Owner.me()
    assert me.is_alive()
    assert not locks.Owner(me.host, me.pid, me.started + 1).is_alive()


def test_a_damaged_lock_file_is_no_owner(tmp_path):
    path = tmp_path / "lock"
    path.write_text("{")
    assert not locks.is_held(path)
    with locks.hold(path) as mine:
        assert mine


@pytest.mark.parametrize("clock", [-86400.0, -600.0, 0.0, 600.0, 86400.0])
@pytest.mark.parametrize("host", ["elsewhere", locks.socket.gethostname()])
def test_a_live_owner_on_another_machine_is_never_taken_over_however_clocks_differ(
    tmp_path, quick, no_shared_flock, clock, host
):
    """Also when both machines have the same name: the boot tells them apart."""
    path = tmp_path / "lock"
    other = Elsewhere(path, clock, host)
    with locks.hold(path) as mine:
        assert not mine
    other.die()
    assert locks.read_owner(path).boot == "another"


@pytest.mark.parametrize("clock", [-600.0, 600.0])
def test_a_dead_owner_with_another_clock_is_taken_over(tmp_path, monkeypatch, clock):
    monkeypatch.setattr(locks, "WATCH", 0.3)
    path = tmp_path / "lock"
    Elsewhere(path, clock).die()
    assert not locks.is_held(path)
    with locks.hold(path) as mine:
        assert mine


def test_a_lock_from_before_the_machine_was_started_anew_is_free_after_the_stated_time(tmp_path, monkeypatch):
    """The process id and start time may even be those of a process that runs now."""
    monkeypatch.setattr(locks, "WATCH", 0.2)
    path = tmp_path / "lock"
    as_from(path, boot="the boot before")
    assert locks.is_held(path)
    long_ago = time.time() - locks.TAKE_OVER - 1
    os.utime(path, (long_ago, long_ago))
    assert not locks.is_held(path)
    with locks.hold(path) as mine:
        assert mine


def test_an_owner_that_was_frozen_learns_that_another_took_over_and_leaves_its_lock_alone(tmp_path, quick):
    path = tmp_path / "lock"
    with locks.hold(path) as mine:
        mine.check()
        as_from(path, host="elsewhere", pid=7)
        wait_for(mine._lost.is_set)
        with pytest.raises(locks.LostLockError, match="another process has taken this over"):
            mine.check()
    assert locks.read_owner(path).host == "elsewhere"


def test_a_lock_that_was_removed_by_hand_is_made_anew(tmp_path, quick):
    path = tmp_path / "lock"
    with locks.hold(path) as mine:
        path.unlink()
        wait_for(lambda: locks.read_owner(path) == locks.Owner.me())
        mine.check()
        with locks.hold(path) as second:
            assert not second
    assert not path.exists()


def test_a_lock_that_was_removed_by_hand_and_taken_is_lost(tmp_path, quick, monkeypatch):
    path = tmp_path / "lock"
    with locks.hold(path) as first:
        with monkeypatch.context() as patch:
            patch.setattr(locks, "HEARTBEAT", 60.0)
            path.unlink()
            other = locks._acquire(path)
        wait_for(first._lost.is_set)
    assert path.exists()
    os.close(other)


def test_a_lock_whose_folder_is_gone_is_lost_without_an_error(tmp_path, quick):
    folder = tmp_path / "run"
    folder.mkdir()
    with locks.hold(folder / "lock") as mine:
        (folder / "lock").unlink()
        folder.rmdir()
        wait_for(mine._lost.is_set)
    assert not folder.exists()

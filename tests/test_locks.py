"""Who trains a run: one at a time, a dead owner's lock is free at once, another host's after its heartbeat stops."""

import json
import os
import signal
import subprocess
import sys
import time

from ablate import locks


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


def test_another_hosts_lock_counts_until_its_heartbeat_stops(tmp_path):
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

"""Who trains a run: a lock file with its owner and a heartbeat.

The owner holds an exclusive `flock` on the file for as long as it trains, so on one machine a dead owner's lock is
free at once. The file names the owner (host, process, start time of the process) and is touched every HEARTBEAT
seconds, so that another machine on a shared folder without shared `flock` can tell a live owner from a dead one: a lock
of another host counts as dead after TAKE_OVER seconds without a touch. Imports the standard library only.
"""

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

HEARTBEAT = 10.0
TAKE_OVER = 90.0


@dataclass(frozen=True)
class Owner:
    """A process: host, process id, and when it started (clock ticks since boot where /proc tells, else 0)."""

    host: str
    pid: int
    started: int

    @classmethod
    def me(cls) -> "Owner":
        """Return this process."""
        return cls(socket.gethostname(), os.getpid(), _process_start(os.getpid()))

    def is_alive(self) -> bool:
        """Whether the process still runs; only meaningful on its own host."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return _process_start(self.pid) == self.started


def _process_start(pid: int) -> int:
    """Clock ticks since boot, 0 where /proc does not tell, -1 for a process that has ended and is not yet reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return -1 if fields[0] in "ZX" else int(fields[19])


def read_owner(path: Path) -> Owner | None:
    """Return the owner a lock file names, or None when there is no lock or it was cut short."""
    try:
        return Owner(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def is_held(path: Path) -> bool:
    """Whether a live process holds the lock; takes nothing and disturbs nobody."""
    owner = read_owner(path)
    if owner is None:
        return False
    return owner.is_alive() if owner.host == socket.gethostname() else _beats(path)


def _beats(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < TAKE_OVER
    except OSError:
        return False


@contextlib.contextmanager
def hold(path: Path) -> Iterator[bool]:
    """Hold the lock while the block runs; yields False, holding nothing, when somebody else has it."""
    descriptor = _acquire(path)
    if descriptor is None:
        yield False
        return
    done = threading.Event()
    beat = threading.Thread(target=_keep_beating, args=(path, done), daemon=True, name="lock heartbeat")
    beat.start()
    try:
        yield True
    finally:
        done.set()
        beat.join()
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(path: Path) -> int | None:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _same_file(descriptor, path):
            break
        os.close(descriptor)  # the former owner removed the file between our open and our flock: try its successor
    owner = read_owner(path)
    if owner is not None and owner.host != socket.gethostname() and _beats(path):
        os.close(descriptor)
        return None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, json.dumps(asdict(Owner.me())).encode())
    return descriptor


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _keep_beating(path: Path, done: threading.Event) -> None:
    while not done.wait(HEARTBEAT):
        with contextlib.suppress(OSError):
            os.utime(path)


@contextlib.contextmanager
def turn(path: Path) -> Iterator[None]:
    """Wait for one's turn at what only one process may do at a time, for a moment each; a dead one's turn is over."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

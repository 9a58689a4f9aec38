"""Who trains a run: a lock file with its owner and a heartbeat.

The owner holds an exclusive `flock` on the file for as long as it trains, so on one machine a dead owner's lock is
free at once. The file names the owner (host, boot, process, start time of the process) and is touched every HEARTBEAT
seconds, so that another machine on a shared folder without shared `flock` can tell a live owner from a dead one: a lock
of another machine is taken over when its heartbeat is TAKE_OVER seconds away from this machine's clock and then does
not move for WATCH seconds. So a live owner keeps its lock however far two clocks are apart.

An owner that was stopped for so long that another took over (a suspended machine, a frozen process), or whose file was
removed by hand and made anew by another, learns so at its next heartbeat: `Held.check` then raises LostLockError, and
what is in the folder is left to the other. Imports the standard library only.
"""

import contextlib
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

HEARTBEAT = 10.0
TAKE_OVER = 90.0
WATCH = 2.5 * HEARTBEAT
"""Seconds for which a heartbeat that looks dead by the clock is watched before its lock is taken over."""


class LostLockError(RuntimeError):
    """Somebody else holds a lock that was ours."""


@dataclass(frozen=True)
class Owner:
    """A process: host, process id, when it started (clock ticks since boot where /proc tells, else 0), which boot."""

    host: str
    pid: int
    started: int
    boot: str = ""

    @classmethod
    def me(cls) -> "Owner":
        """Return this process."""
        return cls(socket.gethostname(), os.getpid(), _process_start(os.getpid()), _boot())

    def is_here(self) -> bool:
        """Whether it ran on this machine since it was started; two machines may have one name."""
        return self.host == socket.gethostname() and self.boot in ("", _boot())

    def is_alive(self) -> bool:
        """Whether the process still runs; only meaningful on its own machine."""
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


def _boot() -> str:
    """What Linux calls this start of the machine, "" elsewhere."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


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
    return owner.is_alive() if owner.is_here() else _beats(path)


def _beats(path: Path) -> bool:
    """Whether the heartbeat is recent by this machine's clock; one from the future is as suspect as an old one."""
    beat = _heartbeat(path)
    return beat is not None and abs(time.time() - beat / 1e9) < TAKE_OVER


def _heartbeat(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _moves(path: Path) -> bool:
    """Whether the heartbeat moves within WATCH seconds."""
    before, end = _heartbeat(path), time.monotonic() + WATCH
    while time.monotonic() < end:
        time.sleep(min(0.5, WATCH / 10))
        if _heartbeat(path) != before:
            return True
    return False


@dataclass
class Held:
    """A lock that this process holds until `release`, or until it turns out to be another's."""

    path: Path
    descriptor: int
    owner: Owner = field(default_factory=Owner.me)
    _done: threading.Event = field(default_factory=threading.Event)
    _lost: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Begin to beat."""
        self._thread = threading.Thread(target=self._keep_beating, daemon=True, name="lock heartbeat")
        self._thread.start()

    def check(self) -> None:
        """Raise LostLockError when the lock was lost, as far as the last heartbeat saw."""
        if self._lost.is_set():
            raise LostLockError(f"{self.path}: another process has taken this over; nothing more is written here")

    def release(self) -> None:
        """End the heartbeat and give the lock up; another's is left alone."""
        self._done.set()
        self._thread.join()
        if self._is_mine():
            self.path.unlink(missing_ok=True)
        os.close(self.descriptor)

    def _keep_beating(self) -> None:
        while not self._done.wait(HEARTBEAT):
            if not self._is_mine() and not self._taken_again():
                self._lost.set()
                return
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def _is_mine(self) -> bool:
        return read_owner(self.path) == self.owner and _same_file(self.descriptor, self.path)

    def _taken_again(self) -> bool:
        """Make the file anew when it was removed and nobody else has made one since."""
        if self.path.exists():
            return False
        try:
            descriptor = _acquire(self.path)
        except OSError:  # the whole folder is gone
            return False
        if descriptor is None:
            return False
        os.close(self.descriptor)
        self.descriptor = descriptor
        return True


@contextlib.contextmanager
def hold(path: Path) -> Iterator[Held | None]:
    """Hold the lock while the block runs; yields None, holding nothing, when somebody else has it."""
    descriptor = _acquire(path)
    if descriptor is None:
        yield None
        return
    held = Held(path, descriptor)
    try:
        yield held
    finally:
        held.release()


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
    if owner is not None and not owner.is_here() and (_beats(path) or _moves(path)):
        os.close(descriptor)
        return None
    return _signed(descriptor, path)


def _signed(descriptor: int, path: Path) -> int:
    """Write this process into the file; raises OSError, the lock given up, on a full disk."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(Owner.me())).encode(), 0)
    except OSError:
        path.unlink(missing_ok=True)
        os.close(descriptor)
        raise
    return descriptor


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


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

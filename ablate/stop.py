"""How a run learns that it should stop: a signal to its process, or the stop file of its sweep."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
"""What a cluster sends some time before it ends a job: Slurm's --signal=USR1, submitit's USR2."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, *WARNINGS)
"""What stops a run or a sweep: Ctrl-C, `kill`, a terminal that was closed, a cluster's warnings."""

LOOK_EVERY = 0.5
"""Seconds between looks for the stop file; a look costs a file system call, a step of training may be shorter."""


class StopRequest:
    """Asked for by a signal or by a file; once true it stays true."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.reason: str | None = None
        self._at_once = False
        self._next_look = 0.0
        self._before: dict[int, Any] = {}
        self._passed_on_later: list[tuple[int, FrameType | None]] = []

    def __call__(self) -> bool:
        """Whether to stop now; cheap enough to ask at every step."""
        if self.reason is None and self.file is not None and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK_EVERY
            if self.file.exists():
                self.reason = "the sweep was stopped"
        return self.reason is not None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Remember a signal; a Ctrl-C after it stops at once. A cluster may send several, so others do not."""
        if self.reason is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        first, self.reason = self.reason is None, f"signal {signal.Signals(number).name}"
        outer = self._before.get(number)
        if first and callable(outer) and outer is not signal.default_int_handler:
            if number in WARNINGS:  # submitit's handler queues the job anew and ends the process: not before the save
                self._passed_on_later.append((number, frame))
            else:
                outer(number, frame)  # a sweep in this same process stops too
        if first and self._at_once:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """While the block runs, in which there is nothing to save, a signal ends it by KeyboardInterrupt.

        So does one that came shortly before it.
        """
        self._at_once = True
        try:
            if self.reason is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._at_once = False

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGNALS while the block runs."""
        self._before = heard()
        try:
            with handled_by(self.on_signal, self._before):
                yield
        finally:
            for later, frame in self._passed_on_later:
                self._before[later](later, frame)


def heard() -> dict[int, Any]:
    """Return those of SIGNALS that are not ignored, each with what handles it now; {} outside a main thread.

    A script's jobs in the background ignore SIGINT, and `nohup` has SIGHUP ignored: that they do, and hear the others.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    return {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}


@contextlib.contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None], before: Mapping[int, Any]) -> Iterator[None]:
    """Have `handler` take the signals of `before`, which `heard` returned, while the block runs."""
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier or signal.SIG_DFL)

"""How a run learns that it should stop: a signal to its process, or the stop file of its sweep."""

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOOK_EVERY = 0.5
"""Seconds between looks for the stop file; a look costs a file system call, a step of training may be shorter."""


class StopRequest:
    """Asked for by a signal or by a file; once true it stays true."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.reason: str | None = None
        self._next_look = 0.0
        self._before: dict[int, Any] = {}

    def __call__(self) -> bool:
        """Whether to stop now; cheap enough to ask at every step."""
        if self.reason is None and self.file is not None and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + LOOK_EVERY
            if self.file.exists():
                self.reason = "the sweep was stopped"
        return self.reason is not None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Remember a signal; the second one stops at once."""
        if self.reason is not None:
            raise KeyboardInterrupt
        self.reason = f"signal {signal.Signals(number).name}"
        outer = self._before.get(number)
        if callable(outer) and outer is not signal.default_int_handler:
            outer(number, frame)  # a sweep in this same process stops too

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM while the block runs (only a main thread can; an ignored signal stays ignored)."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._before = {number: signal.getsignal(number) for number in SIGNALS}
        taken = [number for number in SIGNALS if self._before[number] is not signal.SIG_IGN]
        for number in taken:
            signal.signal(number, self.on_signal)
        try:
            yield
        finally:
            for number in taken:
                signal.signal(number, self._before[number] or signal.SIG_DFL)

"""The display of a sweep while it runs: a line for every run that ends, and a live line on a terminal."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ablate.config.schema import Progress
from ablate.numbers import score
from ablate.records import RunFolder, Status
from ablate.screen import Column, ScreenTable, Wrapped, say
from ablate.sweep.runs import PlannedRun, State, Watcher, duration, last_step

POLL = 0.5


class Display:
    """Shows a sweep while it runs, from a thread of its own: a line for every run that ends, and a live line below."""

    def __init__(self, runs: Sequence[PlannedRun], total: int, console: Console, mode: Progress) -> None:
        self.pending = list(runs)
        self.total, self.done = total, total - len(runs)
        self.console, self.mode = console, mode
        self.counts: Counter[str] = Counter()
        self._watcher, self._end, self._lock = Watcher(), threading.Event(), threading.Lock()
        self._before = {run.folder: _stamp(run.folder) for run in runs}
        self._started = time.monotonic()
        self._live: Live | None = None
        self._thread = threading.Thread(target=self._loop, daemon=True, name="progress")

    def __enter__(self) -> Self:
        """Start showing."""
        if self.mode is Progress.rich or (self.mode is Progress.auto and self.console.is_terminal):
            self._live = Live(console=self.console, refresh_per_second=4, transient=True)
            self._live.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show what ended last, and stop."""
        self._end.set()
        self._thread.join()
        self.poll()
        if self._live is not None:
            self._live.stop()

    def _loop(self) -> None:
        while not self._end.wait(POLL):
            self.poll()

    def poll(self) -> None:
        """Look at every run that has not ended; from any thread."""
        with self._lock:
            self._look()

    def _look(self) -> None:
        states = [(run, self._watcher.state(run.folder)) for run in self.pending]
        ended = [(run, state) for run, state in states if self._has_ended(run, state)]
        for run, state in ended:
            self.pending.remove(run)
            self.done += 1
            self.counts[state.status] += 1
            if self.mode is not Progress.off:
                say(self.console, _line(self.done, self.total, run, state))
        if self._live is not None:
            self._live.update(self._bar([run for run, state in states if state.status == "running"]))

    def _has_ended(self, run: PlannedRun, state: State) -> bool:
        return (
            state.record is not None
            and state.status not in ("running", "waiting")
            and _stamp(run.folder) != self._before[run.folder]
            and state.record.status is not Status.running
        )

    def _bar(self, running: Sequence[PlannedRun]) -> Group:
        rows = []
        for run in running[:8]:
            step, loss = last_step(run.folder)
            shown = "" if loss is None else f"loss {score(loss)}"
            rows.append([Text(f"  {run.name}"), Text(f"step {step}", style="cyan"), Text(shown)])
        total = Text(f"{self.done}/{self.total} runs", style="bold")
        return Group(ScreenTable([Column("")] * 3, rows), Wrapped(Text.assemble(total, "  ", self._left())))

    def _left(self) -> str:
        ended = sum(self.counts.values())
        elapsed = time.monotonic() - self._started
        if not ended:
            return f"{duration(elapsed)} so far"
        return f"{duration(elapsed)} so far, about {duration(elapsed / ended * len(self.pending))} left"


def _stamp(folder: RunFolder) -> int:
    try:
        return folder.record.stat().st_mtime_ns
    except OSError:
        return 0


def _line(done: int, total: int, run: PlannedRun, state: State) -> Text:
    record = state.record
    assert record is not None
    style = "green" if record.status is Status.finished else "red"
    text = Text(f"[{done}/{total}] {run.name}  ").append(record.status.value, style=style)
    loss = record.metrics.get("eval/loss")
    if loss is not None:
        text.append(f"  eval/loss {score(loss)}")
    if record.error is not None:
        text.append(f"  {record.error['type']}: {' '.join(record.error['message'].split())[:120]}")
    return text.append(f"  {duration(record.seconds)}" if record.seconds else "")

"""Timing in processes of their own: when they are started, when they wait, when the clock runs. What, is in `engines`.

A lane is one engine in one mode: some processes with some threads each. All lanes of a size are started before the
first round and wait at their gates; one at a time is let through for a number of steps. So the engines take turns
(A B A B ...) and each keeps its warm caches, and a lane of several processes starts them together.
"""

import multiprocessing
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from time import perf_counter
from typing import NamedTuple

from benchmarks.figures import Size

WARM_UP = 2
"""Steps before the first window, in which tables are built, memory is claimed and kernels are chosen."""
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Mode(NamedTuple):
    """How the cores of the machine are used."""

    name: str
    processes: int
    threads: int


def modes(cores: int) -> list[Mode]:
    """The three ways: as one usually runs torch, as one run of a sweep runs, and as the runs of a sweep together."""
    return [
        Mode("one process, all threads", 1, cores),
        Mode("one process, one thread", 1, 1),
        Mode("one process per core", cores, 1),
    ]


class Gate:
    """Asked once for every step: lets a window of steps through, reports its seconds and waits for the next window.

    Whether before or after the step does not matter, as long as nothing else asks: a window of N steps ends N questions
    after it began.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._left = WARM_UP
        self._began = perf_counter()

    def __call__(self) -> bool:
        """Return whether to stop."""
        if self._left == 0:
            self._connection.send(perf_counter() - self._began)
            self._left = self._connection.recv()
            self._began = perf_counter()
            if self._left == 0:
                return True
        self._left -= 1
        return False


def serve(connection: Connection, engine: str, size: Size, threads: int) -> None:
    """The body of a process: run the engine, and at the end send what it returned."""
    from benchmarks.engines import ENGINES  # noqa: PLC0415  (imports torch, in the child only)

    connection.send(ENGINES[engine](size, threads, Gate(connection)))


class Lane:
    """One engine in one mode, its processes waiting at their gates."""

    def __init__(self, engine: str, mode: Mode, size: Size) -> None:
        self.engine, self.mode = engine, mode
        pairs = [_start(engine, size, mode.threads) for _ in range(mode.processes)]
        self._processes = [process for process, _ in pairs]
        self._connections = [connection for _, connection in pairs]

    def wait(self) -> float:
        """Wait until every process has come to its gate; return the seconds of the slowest window."""
        return max(self._receive())

    def measure(self, steps: int) -> float:
        """Let all processes do so many steps, starting together; return the seconds until the last was through."""
        for connection in self._connections:
            connection.send(steps)
        return self.wait()

    def stop(self) -> float:
        """End the processes; return the mean of what the engines returned: seconds a step spends on its batch."""
        for connection in self._connections:
            connection.send(0)
        results = self._receive()
        for process in self._processes:
            process.join()
        return sum(results) / len(results)

    def kill(self) -> None:
        """End what is still running."""
        for process in self._processes:
            process.kill()
            process.join()

    def _receive(self) -> list[float]:
        try:
            return [connection.recv() for connection in self._connections]
        except EOFError as error:
            raise RuntimeError(
                f"{self.engine}, {self.mode.name}: a process died; its own error stands above"
            ) from error


@contextmanager
def lanes(engines: list[str], size: Size, ways: list[Mode]) -> Iterator[list[Lane]]:
    """All lanes of a size, warm; whatever happens, none of their processes is left."""
    started: list[Lane] = []
    try:
        for mode in ways:
            for engine in engines:
                started.append(Lane(engine, mode, size))
                started[-1].wait()
        yield started
    finally:
        for lane in started:
            lane.kill()


def _start(engine: str, size: Size, threads: int) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, engine, size, threads), daemon=True)
    # torch reads these when it is imported, so they are set before the process exists.
    with _environment(dict.fromkeys(THREAD_VARIABLES, str(threads))):
        process.start()
    theirs.close()
    return process, ours


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key)
            if value is not None:
                os.environ[key] = value

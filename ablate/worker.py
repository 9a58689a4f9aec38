"""Worker processes of the local pool end with the sweep they work for, however that ended.

A pool's worker does not notice that the process which feeds it was killed outright: it would finish its run, then wait
for minutes. So each worker looks for its sweep every LOOK_EVERY seconds; when that is gone, the run in progress saves
and is recorded as interrupted, as after a Ctrl-C, and the process ends. A worker also ends after a run that left what
the next one would meet (`isolation`). Clusters see to their own processes.
"""

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

LOOK_EVERY = 1.0

_at_work = threading.Lock()
_alone = threading.Event()
_of_pool = threading.Event()


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """To be held while a run is seen to."""
    with _at_work:
        if _alone.is_set():  # between two runs the main thread may be the quicker one
            os._exit(1)
        yield


def end_with(parent: int) -> None:
    """End this process soon after its parent, the process of that id; what the pool has a new worker do first."""
    _of_pool.set()
    threading.Thread(target=_watch, args=(parent,), daemon=True, name="watch the sweep").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    _alone.set()
    if not _at_work.acquire(blocking=False):
        os.kill(os.getpid(), signal.SIGTERM)
        _at_work.acquire()
    os._exit(1)


def is_of_pool() -> bool:
    """Whether this process is a worker of the local pool."""
    return _of_pool.is_set()


def leave_pool() -> None:
    """End this process, if it is a pool's, once the result of its run is sent; the pool makes another for the next.

    A process that just ended would break the pool, and the runs of all others with it. loky lets a worker go that sends
    its id, and sends it in cases of its own only.
    """
    executor = importlib.import_module("joblib.externals.loky.process_executor")
    send = getattr(executor, "_sendback_result", None)
    if send is None or not is_of_pool():
        return

    def send_and_end(queue: Any, *arguments: Any, **named: Any) -> None:
        send(queue, *arguments, **named)
        queue.put(os.getpid())
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    executor._sendback_result = send_and_end  # type: ignore[attr-defined]

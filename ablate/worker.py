"""Worker processes of the local pool end with the sweep they work for, however that ended.

A pool's worker does not notice that the process which feeds it was killed outright: it would finish its run, then wait
for minutes. Here it looks for its parent every LOOK_EVERY seconds; when that is gone, the run in progress saves and is
recorded as interrupted, as after a Ctrl-C, and the process ends. Clusters see to their own processes.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import cache

LOOK_EVERY = 1.0

_at_work = threading.Lock()


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """To be held while a run is seen to."""
    _watch_parent()
    with _at_work:
        yield


@cache
def _watch_parent() -> None:
    if multiprocessing.current_process().name.startswith("LokyProcess"):
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True, name="watch the sweep").start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    if not _at_work.acquire(blocking=False):
        os.kill(os.getpid(), signal.SIGTERM)
        _at_work.acquire()
    os._exit(1)

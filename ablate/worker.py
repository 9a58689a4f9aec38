"""Worker processes of the local pool end with the sweep they work for, however that ended.

A pool's worker does not notice that the process which feeds it was killed outright: it would finish its run, then wait
for minutes. So each worker looks for its sweep every LOOK_EVERY seconds; when that is gone, the run in progress saves
and is recorded as interrupted, as after a Ctrl-C, and the process ends. Clusters see to their own processes. Imports
the standard library only.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

LOOK_EVERY = 1.0

_at_work = threading.Lock()
_alone = threading.Event()


@contextlib.contextmanager
def at_work() -> Iterator[None]:
    """To be held while a run is seen to."""
    with _at_work:
        if _alone.is_set():  # between two runs the main thread may be the quicker one
            os._exit(1)
        yield


def end_with(parent: int) -> None:
    """End this process soon after its parent, the process of that id; what the pool has a new worker do first."""
    threading.Thread(target=_watch, args=(parent,), daemon=True, name="watch the sweep").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    _alone.set()
    if not _at_work.acquire(blocking=False):
        os.kill(os.getpid(), signal.SIGTERM)
        _at_work.acquire()
    os._exit(1)

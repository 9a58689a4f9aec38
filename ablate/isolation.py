"""What a run sets for its whole process is put back after it, so that it cannot reach the next run.

A run builds and calls code of the user's (scheme, task, schedule, optimiser), and several runs may share one process.
`kept` notes the settings before, puts back what differs after, and looks at each again; it is used around a run, around
the trial build of a check, and around the import of what a config names.

Put back: the lists of `isolation_python` (signal handlers, environment, working folder, streams, warnings, logging,
Python's generator, ...) and `isolation_torch` (default dtype and device, hooks on all modules, grad mode, autocast,
precision, threads, torch's and numpy's generators, replaced functions of torch, numpy and this project, ...).

Detected, and not to be put back: a thread that runs on, standard streams closed or replaced beneath Python, inference
mode that is not left, an interop thread count, a hard limit, whatever else is not as before once it is written. What
was left so is kept in `leftovers`: no other run begins in this process. A process of a pool makes room for a new one
(`worker.leave_pool`, `sweep.on_ray`); where a sweep trains in its own process, it stops with one line.

Not seen: what the user's own modules keep in their globals, changes inside objects that are shared (a class of another
library, a kernel registered with `torch.library`), functions for the end of the process (`atexit`), child processes.
A run off the main thread is not kept apart: handlers and modes belong to the main thread.
"""

import contextlib
import gc
import importlib
import logging
import operator
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

LOG = logging.getLogger("ablate")

GRACE = 1.0
"""Seconds for which threads that a run started may still end; only a run that leaves one waits."""

PASSES = 3
"""How often all settings are gone through: one may hang on another (a precision on that of its backend)."""

OF_LIBRARIES = ("torch", "tqdm", "ray", "joblib")
"""Packages that keep threads of their own for the life of a process; these do nothing to a run."""

COMPILER = "torch._dynamo"
SET_BY_COMPILER = ("replaced functions", "environment", "tempfile.tempdir", "warnings filters")
"""What torch's compiler sets when it is imported, of no account for a run."""

leftovers: list[str] = []
"""What runs of this process left that could not be put back."""

set_by_import: dict[str, list[str]] = {}
"""What modules that configs name set when they were imported; it was put back."""


class Setting(NamedTuple):
    """Something that holds for the whole process: `read` returns what `write` takes, comparable by ==."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]
    is_noted: bool = True
    """Whether a change is worth a line: the generators change in every run."""
    differs: Callable[[Any], bool] | None = None
    """What takes the place of reading and comparing, where that is quicker."""


class Present:
    """Entries that were there, each with its value; what is added later makes no difference."""

    def __init__(self, entries: Mapping[Any, Any], same: Callable[[Any, Any], bool] = operator.eq) -> None:
        self.entries, self.same = dict(entries), same

    def differing(self, now: "Present") -> list[Any]:
        """Return the keys whose value is another now, or gone."""
        missing = object()
        return [key for key, value in self.entries.items() if not self.same(value, now.entries.get(key, missing))]

    def __eq__(self, now: object) -> bool:
        return isinstance(now, Present) and not self.differing(now)

    __hash__ = None  # type: ignore[assignment]


@dataclass
class Kept:
    """What differed after the block: put back, and left because it could not be."""

    changed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@contextlib.contextmanager
def kept() -> Iterator[Kept]:
    """Put the process's settings back after the block, however it ends; what it found is filled in then."""
    found = Kept()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before, threads = list(_now()), set(threading.enumerate())
    with warnings.catch_warnings():  # so that a warning that is shown once is shown once in each run
        try:
            yield found
        finally:
            _put_back(before, found)
            found.left += [f"the thread {thread.name!r}, which runs on" for thread in _started_since(threads)]


@contextlib.contextmanager
def kept_around_run(name: str) -> Iterator[None]:
    """`kept`, for the run that people call `name`: logs what was found, and adds to `leftovers`."""
    found = Kept()
    importlib.import_module(COMPILER)  # torch's optimisers do, when the first is made
    try:
        with kept() as found:
            yield
    finally:
        if found.changed:
            LOG.warning("set by the run for its whole process, and put back: %s", ", ".join(found.changed))
        if found.left:
            LOG.warning("left by the run, and not to be put back: %s", ", ".join(found.left))
            leftovers.append(f"{name} left {', '.join(found.left)}")


def imported(name: str) -> ModuleType:
    """Import a module that a config names, without what it sets for the whole process as it is imported.

    A module is imported once for many runs, so what it sets would hold for those of others and depend on their order.
    """
    if name not in sys.modules:
        was_loaded = COMPILER in sys.modules
        with kept() as found:
            importlib.import_module(name)
        by_compiler = () if was_loaded or COMPILER not in sys.modules else SET_BY_COMPILER
        set_by_import[name] = [one for one in found.changed if one not in by_compiler]
    return importlib.import_module(name)


def settings() -> Sequence[Setting]:
    """Return all settings, in the order in which they are put back."""
    from ablate import isolation_functions, isolation_python, isolation_torch  # noqa: PLC0415  (they use Setting)

    return (isolation_functions.REPLACED, *isolation_torch.SETTINGS, *isolation_python.SETTINGS)


def _now() -> Iterator[tuple[Setting, Any]]:
    """Read all settings, but those that cannot be read now (a working folder that was removed)."""
    for setting in settings():
        with contextlib.suppress(Exception):
            yield setting, setting.read()


def _put_back(before: Sequence[tuple[Setting, Any]], found: Kept) -> None:
    changed: list[Setting] = []
    for _ in range(PASSES):
        differing = [(setting, value) for setting, value in before if _differs(setting, value)]
        if not differing:
            break
        for setting, value in differing:
            changed += [setting] if setting not in changed else []
            with contextlib.suppress(Exception):  # whether it helped is seen by reading again
                setting.write(value)
    found.left += [setting.name for setting, value in before if changed and _differs(setting, value)]
    found.changed += [setting.name for setting in changed if setting.is_noted and setting.name not in found.left]


def _differs(setting: Setting, value: Any) -> bool:
    try:
        return setting.differs(value) if setting.differs else bool(value != setting.read())
    except Exception:  # torch refuses to read a precision that was set in two ways
        return True


def _started_since(before: set[threading.Thread]) -> list[threading.Thread]:
    """Return the threads that were started and do not end soon."""
    new = [thread for thread in threading.enumerate() if thread not in before and not _is_of_library(thread)]
    if new:
        gc.collect()  # a pool of threads ends with its last reference
    for thread in new:
        thread.join(GRACE)
    return [thread for thread in new if thread.is_alive()]


def _is_of_library(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None) or type(thread)
    names = (str(getattr(target, "__module__", "")), type(thread).__module__)
    return any(name.split(".")[0] in OF_LIBRARIES for name in names)

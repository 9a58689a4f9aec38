"""The settings of Python and of the operating system that `isolation` puts back after a run."""

import contextlib
import decimal
import gc
import locale
import logging
import operator
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from ablate.isolation import Present, Setting

SIGNALS = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})


def attribute(owner: Any, name: str, what: str | None = None) -> Setting:
    """Return the setting that is an attribute of a module or object."""
    return Setting(what or f"{owner.__name__}.{name}", lambda: getattr(owner, name), lambda v: setattr(owner, name, v))


def listed(owner: Any, name: str) -> Setting:
    """Return the setting that is a list which is changed in place, or replaced."""

    def write(value: tuple[Any, list[Any]]) -> None:
        before, content = value
        before[:] = content
        setattr(owner, name, before)

    def read() -> tuple[Any, list[Any]]:
        return getattr(owner, name), list(getattr(owner, name))

    return Setting(f"{owner.__name__}.{name}", read, write)


# the process ----------------------------------------------------------------------------------------------------------


def _read_umask() -> int:
    value = os.umask(0o077)
    os.umask(value)
    return value


def _write_environment(before: dict[str, str]) -> None:
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update({name: value for name, value in before.items() if os.environ.get(name) != value})
    time.tzset()


def _read_handlers() -> dict[int, Any]:
    return {number: signal.getsignal(number) for number in SIGNALS}


def _write_handlers(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) != handler:  # None is a handler that is not Python's
            signal.signal(number, handler)


def _read_timers() -> list[bool]:
    """Return whether timers run: how long they still have changes by itself."""
    return [signal.getitimer(timer)[0] > 0 for timer in TIMERS]


def _write_timers(before: list[bool]) -> None:
    for timer, ran in zip(TIMERS, before, strict=True):
        if not ran:
            signal.setitimer(timer, 0)


def _write_limits(before: list[tuple[int, int]]) -> None:
    for limit, value in zip(LIMITS, before, strict=True):
        if resource.getrlimit(limit) != value:
            resource.setrlimit(limit, value)


def _standard_files() -> Present:
    """Return which files the descriptors 0, 1 and 2 are, of those that are open: a closed one is anybody's."""
    found = {}
    for descriptor in range(3):
        with contextlib.suppress(OSError):
            stat = os.fstat(descriptor)
            found[descriptor] = (stat.st_dev, stat.st_ino)
    return Present(found)


def nothing_helps(_: Any) -> None:
    """Do nothing: this cannot be put back."""


PROCESS: tuple[Setting, ...] = (
    Setting("environment", lambda: dict(os.environ), _write_environment),
    Setting("working folder", os.getcwd, os.chdir),
    Setting("umask", _read_umask, os.umask),
    Setting("signal handlers", _read_handlers, _write_handlers),
    Setting(
        "blocked signals",
        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, []),
        lambda value: signal.pthread_sigmask(signal.SIG_SETMASK, value),
    ),
    Setting("timers", _read_timers, _write_timers),
    Setting("resource limits", lambda: [resource.getrlimit(limit) for limit in LIMITS], _write_limits),
    Setting("files of the standard streams", _standard_files, nothing_helps),
)
if hasattr(os, "sched_getaffinity"):
    PROCESS += (Setting("CPU affinity", lambda: os.sched_getaffinity(0), lambda value: os.sched_setaffinity(0, value)),)

# the interpreter ------------------------------------------------------------------------------------------------------


def _read_decimal() -> tuple[Any, ...]:
    one = decimal.getcontext()
    return one.prec, one.rounding, one.Emin, one.Emax, one.capitals, one.clamp, dict(one.flags), dict(one.traps)


def _write_decimal(before: tuple[Any, ...]) -> None:
    *first, flags, traps = before
    raised, trapped = [one for one in flags if flags[one]], [one for one in traps if traps[one]]
    context: Any = decimal.Context
    decimal.setcontext(context(*first, raised, trapped))


def _read_gc() -> tuple[Any, ...]:
    return gc.isenabled(), gc.get_threshold(), list(gc.callbacks), gc.get_debug()


def _write_gc(before: tuple[Any, ...]) -> None:
    enabled, threshold, callbacks, debug = before
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(*threshold)
    gc.callbacks[:] = callbacks
    gc.set_debug(debug)


INTERPRETER = (
    *(listed(sys, name) for name in ("path", "argv", "meta_path", "path_hooks")),
    *(attribute(sys, name) for name in ("stdin", "stdout", "stderr", "excepthook", "displayhook", "unraisablehook")),
    attribute(sys, "dont_write_bytecode"),
    attribute(threading, "excepthook"),
    Setting("sys.modules", lambda: Present(sys.modules, operator.is_), lambda value: sys.modules.update(value.entries)),
    Setting("trace function", sys.gettrace, sys.settrace),
    Setting("profile function", sys.getprofile, sys.setprofile),
    Setting("trace function of threads", threading.gettrace, threading.settrace),
    Setting("profile function of threads", threading.getprofile, threading.setprofile),
    Setting("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    Setting("switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Setting("longest integer text", sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    Setting("garbage collection", _read_gc, _write_gc),
    Setting("random's generator", random.getstate, random.setstate, is_noted=False),
    Setting("decimal context", _read_decimal, _write_decimal),
    Setting("locale", lambda: locale.setlocale(locale.LC_ALL), lambda value: locale.setlocale(locale.LC_ALL, value)),
    Setting("socket timeout", socket.getdefaulttimeout, socket.setdefaulttimeout),
    attribute(tempfile, "tempdir"),
)

# warnings and logging -------------------------------------------------------------------------------------------------


class Logger(NamedTuple):
    """How a logger is set."""

    level: int
    propagate: bool
    disabled: bool
    handlers: list[logging.Handler]
    filters: list[Any]


def _loggers() -> list[logging.Logger]:
    return [logging.root, *(one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger))]


def _read_loggers() -> Present:
    return Present(
        {one: Logger(one.level, one.propagate, one.disabled, [*one.handlers], [*one.filters]) for one in _loggers()}
    )


def _write_loggers(before: Present) -> None:
    for one in before.differing(_read_loggers()):
        now: Logger = before.entries[one]
        one.propagate, one.disabled = now.propagate, now.disabled
        one.handlers[:], one.filters[:] = now.handlers, now.filters
        one.setLevel(now.level)


def _read_handlers_of_root() -> dict[logging.Handler, tuple[Any, ...]]:
    return {one: (one.level, one.formatter, [*one.filters]) for one in logging.root.handlers}


def _write_handlers_of_root(before: dict[logging.Handler, tuple[Any, ...]]) -> None:
    for one, (level, formatter, filters) in before.items():
        one.setLevel(level)
        one.setFormatter(formatter)
        one.filters[:] = filters


def _write_filters(before: list[Any]) -> None:
    warnings.resetwarnings()  # has Python look at them anew
    warnings.filters[:] = before  # type: ignore[index]


MESSAGES = (
    Setting("warnings filters", lambda: list(warnings.filters), _write_filters),
    *(attribute(warnings, name) for name in ("showwarning", "_showwarnmsg_impl", "formatwarning")),
    Setting("loggers", _read_loggers, _write_loggers),
    Setting("log handlers", _read_handlers_of_root, _write_handlers_of_root),
    attribute(logging.root.manager, "disable", "logging.disable"),
    *(attribute(logging, name) for name in ("raiseExceptions", "lastResort", "_warnings_showwarning")),
    Setting("class of loggers", logging.getLoggerClass, logging.setLoggerClass),
    Setting("factory of log records", logging.getLogRecordFactory, logging.setLogRecordFactory),
)

SETTINGS: Sequence[Setting] = (*PROCESS, *INTERPRETER, *MESSAGES)

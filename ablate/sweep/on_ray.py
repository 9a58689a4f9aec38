"""Runs handed to Ray: to an instance of this machine, or to a cluster that is there already."""

import contextlib
import importlib
import logging
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ray
from hydra.core.utils import JobReturn

from ablate import isolation
from ablate.config.errors import ConfigError
from ablate.sweep.handover import Carrier, never_begun, without_result

LOCAL = "local"
PATIENCE = 5.0
"""Seconds in which the head of a cluster must accept a connection; Ray itself would try for minutes."""


GRACE = 30.0
"""Seconds after a stop in which some job must come back, else those that are left are cancelled."""


class Needs(NamedTuple):
    """What Ray keeps free for a run."""

    cpus: float
    gpus: float


def check(address: str, needs: Needs) -> None:
    """Raise ConfigError for an address where no cluster answers, and for GPUs that are not here with `local`.

    Warns on standard error when no node of the cluster is large enough for a run; an autoscaler may add one.
    """
    if address == LOCAL:
        _check_gpus(needs.gpus)
        return
    if address != "auto":
        _check_answer(address)
    nodes = _nodes(address)
    if not any(node.cpus >= needs.cpus and node.gpus >= needs.gpus for node in nodes):
        here = "; ".join(f"{node.cpus:g} CPUs, {node.gpus:g} GPUs" for node in nodes)
        sys.stderr.write(
            f"ablate: hydra.launcher.cpus_per_run={needs.cpus:g} gpus_per_run={needs.gpus:g}: no node of the cluster "
            f"has as much now ({here}); the runs wait for one\n"
        )


def _check_gpus(wanted: float) -> None:
    if wanted == 0:
        return
    visible = importlib.import_module("torch").cuda.device_count()
    if wanted > visible:
        raise ConfigError(
            f"hydra.launcher.gpus_per_run={wanted:g}: must be at most the {visible} GPUs that are visible here with "
            "address=local; 0 trains on the CPU"
        )


def _nodes(address: str) -> list[Needs]:
    """Return what each node of a cluster has; raises ConfigError when it cannot be joined."""
    try:
        connect(address, 0)
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"hydra.launcher.address={address}: no Ray cluster to join ({first}); one that asks for a token wants "
            "RAY_AUTH_MODE=token in the environment"
        ) from error
    try:
        nodes = ray.nodes()  # type: ignore[no-untyped-call]
        alive = [node["Resources"] for node in nodes if node["Alive"]]
        return [Needs(node.get("CPU", 0.0), node.get("GPU", 0.0)) for node in alive]
    finally:
        disconnect()


def _check_answer(address: str) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"hydra.launcher.address={address}: local, auto, HOST:PORT or ray://HOST:PORT is meant")
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"hydra.launcher.address={address}: nothing answers there ({error}); is the Ray cluster up? "
            "(ray start --head; address=local starts one here)"
        ) from error


def connect(address: str, workers: int) -> None:
    """Start a local instance that listens on loopback only, or join a cluster."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would otherwise report its use over the network
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    logging.getLogger("ray").setLevel(logging.ERROR)  # what Ray does at each start is no news to a sweep
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address == LOCAL:
        quiet |= {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    with _signals_kept():
        ray.init(address=address, **quiet)


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Have nobody set a signal's handler in the block: Ray takes SIGTERM, which would end a sweep without a word."""
    setting = signal.signal
    signal.signal = lambda number, handler: signal.getsignal(number)  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = setting


def carry_out(
    carrier: Carrier, jobs: Sequence[tuple[int, Sequence[str]]], needs: Needs, stop_file: Path | None
) -> list[JobReturn]:
    """Run jobs, each a number and its overrides; return what each returned, in their order.

    A worker that dies takes its own job only. When the stop file appears, jobs that run see it and end, and each of
    the others ends as soon as it begins.
    """
    task: Any = ray.remote(num_cpus=needs.cpus, num_gpus=needs.gpus, max_retries=0)(_run)  # the sweep tries again
    kept = ray.put(carrier)
    references = [task.remote(kept, list(job), number) for number, job in jobs]
    _wait(references, stop_file)
    stopped = stop_file is not None and stop_file.exists()
    return [_returned(reference, stopped) for reference in references]


def _wait(references: Sequence[Any], stop_file: Path | None) -> None:
    """Wait until all are over; what does not begin or end after a stop, for want of a node say, is cancelled."""
    left, since = list(references), time.monotonic()
    while left:  # in steps, so that a signal is seen
        ended, left = ray.wait(left, num_returns=len(left), timeout=1.0)
        if ended or stop_file is None or not stop_file.exists():
            since = time.monotonic()
        elif time.monotonic() - since > GRACE:
            for reference in left:
                ray.cancel(reference)
            since = time.monotonic()


def _run(carrier: Carrier, job: list[str], number: int) -> JobReturn:
    """Run a job here, or in a new process where an earlier run left what this one would meet; this one then waits."""
    if not isolation.leftovers:
        return carrier(job, number)
    here: Any = ray.get_runtime_context()
    own = {"env_vars": {"ABLATE_PROCESS": uuid.uuid4().hex}}  # Ray keeps a process to one environment
    task: Any = ray.remote(
        num_cpus=here.get_assigned_resources().get("CPU", 0), max_retries=0, max_calls=1, runtime_env=own
    )(_run)
    result = ray.get(task.remote(carrier, job, number))
    assert isinstance(result, JobReturn)
    return result


def _returned(reference: Any, stopped: bool) -> JobReturn:
    try:
        result = ray.get(reference)
    except ray.exceptions.RayError as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return never_begun() if stopped else without_result(first)
    assert isinstance(result, JobReturn)
    return result


def disconnect() -> None:
    """Leave the cluster, or end the local instance and its processes."""
    ray.shutdown()

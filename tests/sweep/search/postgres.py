"""A PostgreSQL server of the tests' own: on loopback, in a folder of its own, gone when the tests are."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT_USER = 0


def programs() -> Path | None:
    """The folder of PostgreSQL's programs, None where there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    on_path = shutil.which("initdb")
    return found[0].parent if found else Path(on_path).parent if on_path else None


def free_port() -> int:
    """A port of the loopback that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def call(*command: str) -> None:
    """Run a program of PostgreSQL, which refuses to run as root."""
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == ROOT_USER else []
    subprocess.run([*as_user, *command], check=True, timeout=60, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Start a server and yield its URL; skip where PostgreSQL is not installed."""
    pytest.importorskip("psycopg", reason="needs psycopg")
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        if os.geteuid() == ROOT_USER:
            shutil.chown(folder, "postgres")
        data = str(folder / "data")
        call(str(found / "initdb"), "-D", data, "-A", "trust", "-U", "tester", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        try:
            call(str(found / "pg_ctl"), "-D", data, "-w", "-t", "30", "-l", str(folder / "log"), "-o", options, "start")
            yield f"postgresql+psycopg://tester@127.0.0.1:{port}/postgres"
        finally:
            call(str(found / "pg_ctl"), "-D", data, "-m", "immediate", "stop")

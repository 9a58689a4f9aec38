"""The file of a journal before Optuna reads it: Optuna ends with an assertion on a line that is not JSON."""

import json
from pathlib import Path

from optuna.storages.journal import JournalFileSymlinkLock


def mend(path: Path) -> None:
    """Cut off a last line that a process died while writing. Raises ValueError for any other line that is damaged.

    Under the lock that writers take, so that a line which is just being written is not taken for a torn one.
    """
    lock = JournalFileSymlinkLock(str(path))
    lock.acquire()
    try:
        whole = path.read_bytes() if path.exists() else b""
        good = whole[: whole.rfind(b"\n") + 1]
        _check(path, good)
        if good != whole:
            with path.open("r+b") as file:
                file.truncate(len(good))
    finally:
        lock.release()


def _check(path: Path, content: bytes) -> None:
    for number, line in enumerate(content.splitlines(), 1):
        try:
            json.loads(line)
        except ValueError:
            fault = f"{path.name} is damaged at line {number}: move it away, finished runs are found again"
            raise ValueError(fault) from None

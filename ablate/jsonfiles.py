"""JSON files as this project writes them: atomic, strict, and with one canonical form. The standard library only."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


class RecordError(ValueError):
    """A file of a run or sweep that cannot be read; the message names the file and what is wrong with it."""


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, no spaces, and 1.0 written as 1, so that 1 and 1.0 are one value."""
    return json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and not isinstance(value, bool):
        if not math.isfinite(value):
            return str(value)
        return int(value) if value.is_integer() else value
    return value


def strict(value: Any) -> Any:
    """Replace numbers that JSON cannot hold by null."""
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` at the end; a crash leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomic(path: Path, content: bytes) -> None:
    """Replace `path` by `content` so that a crash at any moment leaves the old file or the new one."""
    with replacing(path) as file:
        file.write(content)


def write_json(path: Path, value: Any) -> None:
    """Write strict, indented JSON atomically."""
    text = json.dumps(strict(value), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomic(path, (text + "\n").encode())


def read_json(path: Path) -> Any:
    """Parse one JSON file; raises RecordError naming the file when it is truncated or not JSON."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise RecordError(f"{path}: not valid JSON ({error}); the file is damaged or was cut short") from error

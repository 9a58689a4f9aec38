"""JSON files as this project writes them: atomic, strict, and with one canonical form. The standard library only."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import NoneType, UnionType
from typing import IO, Any, get_args, get_origin


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
    """Parse one JSON file; raises RecordError naming the file when it is truncated, not JSON, or not a file."""
    try:
        return parse_json(path.read_bytes())
    except IsADirectoryError as error:
        raise RecordError(f"{path}: is a folder, not a file") from error
    except ValueError as error:
        raise RecordError(f"{path}: not valid JSON ({error}); the file is damaged or was cut short") from error


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; raises ValueError for everything that cannot be parsed, too many brackets within brackets too."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def check_types(kind: type, values: Mapping[str, Any]) -> None:
    """Raise TypeError for the first of `values` that is not of the type which the dataclass `kind` declares for it."""
    for field in fields(kind):
        if field.name in values and not fits(values[field.name], field.type):
            raise TypeError(f"{field.name} is {str(values[field.name])[:60]!r}")


def fits(value: Any, kind: Any) -> bool:
    """Whether a parsed value is of a type such as `int`, `dict[str, float | None]` or a union of them."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if isinstance(kind, UnionType):
        return any(fits(value, one) for one in inner)
    if origin is dict:
        return isinstance(value, dict) and all(fits(one, inner[1]) for one in value.values())
    if origin is list:
        return isinstance(value, list) and all(fits(one, inner[0]) for one in value)
    if kind in (int, float):
        return isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
    return value is None if kind is NoneType else isinstance(value, kind)

"""A run's checkpoint: two generations on disk, each a dictionary of tensors and plain containers.

The new file is complete on disk before the current one becomes the previous one and it takes its place, so at any
moment one of the two can be read. Nothing here knows what is in the states it keeps.
"""

import io
import logging
import os
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from ablate.records import RunFolder

FORMAT = 1
"""The version of the dictionary's keys; a checkpoint of another version is not continued."""

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Checkpoint:
    """A run after `step` steps. Seconds add up over resumes; `window` holds the losses that are not logged yet."""

    step: int = 0
    seconds: float = 0.0
    evaluation_seconds: float = 0.0
    data_seconds: float = 0.0
    model: dict[str, Any] = field(default_factory=dict)
    optimizer: dict[str, Any] = field(default_factory=dict)
    schedule: dict[str, Any] = field(default_factory=dict)
    window: dict[str, Any] = field(default_factory=dict)


def save(folder: RunFolder, checkpoint: Checkpoint, *, source: str) -> bool:
    """Write the checkpoint; a full or read-only disk is logged as a warning. Returns whether it was written.

    `source` is the fingerprint of the code that trains the run.
    """
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "source": source, **vars(checkpoint)}, buffer)
    try:
        _flush(folder.metrics)
        _replace(folder, buffer.getbuffer())
    except OSError as error:
        log.warning("%s: not saved at step %d (%s); training goes on", folder.checkpoint, checkpoint.step, error)
        return False
    return True


def load(folder: RunFolder, *, source: str) -> Checkpoint | None:
    """The newest checkpoint that can be read, its tensors on the CPU; None when there is none to continue from.

    A damaged file, and one written by other code than `source`, is passed over with a warning that names it.
    """
    for path in (folder.checkpoint, folder.previous_checkpoint):
        content = _read(path)
        if content is not None:
            return _accept(path, content, source)
    return None


def final_model(folder: RunFolder, *, source: str) -> dict[str, Any]:
    """The model's state in the newest checkpoint, on the CPU; for a finished run that is the model as trained.

    Raises ValueError when there is no checkpoint, when it is damaged, and when it was not written by `source`.
    """
    path = folder.checkpoint
    if not path.exists():
        raise ValueError(f"{path}: no such checkpoint; train the run again with sweep.rerun=finished")
    try:
        content = _content(path)
    except Exception as error:
        raise ValueError(f"{path}: damaged ({type(error).__name__}: {' '.join(str(error).split())[:200]})") from error
    if content.get("format") != FORMAT or content.get("source") != source:
        raise ValueError(f"{path}: belongs to another run or config than run.json beside it")
    return dict(content["model"])


def _flush(log_file: Path) -> None:
    """Put on disk what was logged: a run that continues from this checkpoint does not log it again."""
    with suppress(FileNotFoundError), log_file.open("rb") as file:
        os.fsync(file.fileno())


def _replace(folder: RunFolder, content: memoryview) -> None:
    temporary = folder.path / f".{folder.checkpoint.name}.{os.getpid()}.tmp"
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if folder.checkpoint.exists():
            folder.checkpoint.replace(folder.previous_checkpoint)
        temporary.replace(folder.checkpoint)
    finally:
        temporary.unlink(missing_ok=True)


def _read(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        return _content(path)
    except Exception as error:  # torch has no error of its own for a damaged file: it raises whatever it stumbles over
        log.warning("%s: damaged and passed over (%s: %s)", path, type(error).__name__, error)
        return None


def _content(path: Path) -> dict[str, Any]:
    """The dictionary of a file; raises whatever is wrong with it, a checksum too, for which torch does not look."""
    with zipfile.ZipFile(path) as archive:
        if (name := archive.testzip()) is not None:
            raise ValueError(f"the checksum of {name} is wrong")
    return dict(torch.load(path, map_location="cpu", weights_only=True))


def _accept(path: Path, content: dict[str, Any], source: str) -> Checkpoint | None:
    if content.get("format") != FORMAT or content.get("source") != source:
        log.warning("%s: written by another version of the code; not continued, the run starts afresh", path)
        return None
    return Checkpoint(**{f.name: content[f.name] for f in fields(Checkpoint)})

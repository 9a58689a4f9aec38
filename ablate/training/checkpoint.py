"""A run's checkpoint: two generations on disk, each a dictionary of tensors and plain containers.

The new file is complete on disk before the current one becomes the previous one and it takes its place, so at any
moment one of the two can be read. Nothing here knows what is in the states it keeps.
"""

import io
import logging
import os
import zipfile
from collections.abc import Callable, Mapping
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


def load(
    folder: RunFolder, *, source: str, misfit: Callable[[Checkpoint], str | None] = lambda found: None
) -> Checkpoint | None:
    """The newest checkpoint of this run, its tensors on the CPU; None when there is none to continue from.

    A generation that is damaged, that is not of `source` (the code, the cell and the seed of the run), or of which
    `misfit` says what is wrong with it, is passed over with a warning that names it and the reason.
    """
    paths = [path for path in (folder.checkpoint, folder.previous_checkpoint) if path.exists()]
    for path in paths:
        content = _read(path)
        if content is None:
            continue
        found = Checkpoint(**{f.name: content[f.name] for f in fields(Checkpoint)}) if _is_whole(content) else None
        why = _other(content, source) or ("a part of it is missing" if found is None else misfit(found))
        if why is None:
            return found
        log.warning("%s: %s; not continued", path, why)
    if paths:
        log.warning("%s: there is no checkpoint to continue from; the run starts afresh", folder.path)
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
    if why := _other(content, source):
        raise ValueError(f"{path}: belongs to another run or config than run.json beside it: {why}")
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
    try:
        return _content(path)
    except Exception as error:  # torch has no error of its own for a damaged file: it raises whatever it stumbles over
        why = "the file is empty" if path.is_file() and not path.stat().st_size else f"{type(error).__name__}: {error}"
        log.warning("%s: damaged and passed over (%s)", path, why)
        return None


def _content(path: Path) -> dict[str, Any]:
    """The dictionary of a file; raises whatever is wrong with it, a checksum too, for which torch does not look."""
    with zipfile.ZipFile(path) as archive:
        if (name := archive.testzip()) is not None:
            raise ValueError(f"the checksum of {name} is wrong")
    return dict(torch.load(path, map_location="cpu", weights_only=True))


def _is_whole(content: Mapping[str, Any]) -> bool:
    """Whether a file has all that a checkpoint has, and each of its kind."""
    kinds = {f.name: type(value) for f in fields(Checkpoint) for value in (getattr(Checkpoint(), f.name),)}
    return all(type(content.get(name)) is kind for name, kind in kinds.items())


def _other(content: Mapping[str, Any], source: str) -> str | None:
    """Return in words whose checkpoint a file is, None where it is that of the run with this source."""
    if content.get("format") != FORMAT:
        return f"written by another version of the code (format {content.get('format')!r}, not {FORMAT})"
    theirs, ours = str(content.get("source")), source
    if theirs == ours:
        return None
    if len(theirs.split(" ")) != 3 or len(ours.split(" ")) != 3:
        return "written by another version of the code"
    (code, cell, seed), (our_code, our_cell, our_seed) = theirs.split(" "), ours.split(" ")
    parts = [
        f"of another config (cell {cell[:8]}, this run is of {our_cell[:8]})" if cell != our_cell else "",
        f"of seed {seed} (this run has seed {our_seed})" if seed != our_seed else "",
        "written by another version of the code" if code != our_code else "",
    ]
    return ", ".join(part for part in parts if part)


def misfit(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """Return in words how a saved state of a model differs in its tensors from the one it is to be loaded into."""
    if odd := sorted(found.keys() ^ wanted.keys()):
        return f"its parameters are others ({odd[0]} is only in {'it' if odd[0] in found else 'the model'})"
    for name, value in wanted.items():
        there, here = ((getattr(one, "shape", None), getattr(one, "dtype", None)) for one in (found[name], value))
        if there != here:
            shown, ours = (f"{kind} of shape {list(shape or ())}" for shape, kind in (there, here))
            return f"its {name} is {shown}, the model's is {ours}"
    return None

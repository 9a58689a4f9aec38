"""What is kept between two reports of a study, in STUDY/.analysis_cache/: series of logs, and the figures drawn last.

    curves-<16 hex>.npz    one metric of all runs, keyed by each log's path in the study, time of change and size
    figures.json           what the figures of the last report were drawn from, and the hashes of their files

Nothing here can change a result: what is damaged, or made by another version, is read or drawn again, and where nothing
can be written nothing is kept. The folder may be deleted at any time.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ablate.jsonfiles import replacing, write_atomic
from ablate.records import StudyFolder
from analysis.series import Series

VERSION = 1
"""Part of every file's name or content; to be raised when what is kept, or how logs are read, changes."""


class Stamp(NamedTuple):
    """What tells whether a file has changed: its path in the study, time of change in ns, size in bytes."""

    path: str
    changed: int
    size: int


@dataclass(frozen=True)
class Cache:
    """The cache of one study's folder; `root` None keeps nothing."""

    root: Path | None = None

    def stamp(self, file: Path) -> Stamp | None:
        """The stamp of a file of the study; None when it is not there, or nothing is kept."""
        if self.root is None:
            return None
        try:
            found = file.stat()
        except OSError:
            return None
        return Stamp(file.relative_to(self.root).as_posix(), found.st_mtime_ns, found.st_size)

    def _folder(self) -> Path | None:
        return StudyFolder(self.root).analysis_cache if self.root is not None else None

    def _series_file(self, metric: str) -> Path | None:
        folder = self._folder()
        return folder / f"curves-{sha256(f'{VERSION} {metric}'.encode()).hexdigest()[:16]}.npz" if folder else None

    def series(self, metric: str) -> dict[Stamp, Series]:
        """The series of a metric that are kept, by the stamp of their log."""
        file = self._series_file(metric)
        if file is None:
            return {}
        try:
            with file.open("rb") as raw, np.load(raw, allow_pickle=False) as arrays:
                columns = Series(arrays["step"], arrays["tokens"], arrays["value"])
                index = json.loads(arrays["index"].tobytes())
            return {Stamp(*stamp): _part(columns, start, stop) for stamp, start, stop in index}
        except Exception:  # whatever is wrong with a kept file, the logs are read again
            return {}

    def keep_series(self, metric: str, found: Mapping[Stamp, Series]) -> None:
        """Keep these series in place of all that were kept of the metric; those of changed or removed files go."""
        file = self._series_file(metric)
        if file is None or self.root is None:
            return
        there = {stamp: one for stamp, one in found.items() if self.stamp(self.root / stamp.path) == stamp}
        ends = np.cumsum([0, *(len(one.step) for one in there.values())]).tolist()
        index = json.dumps(list(zip(there, ends[:-1], ends[1:], strict=True))).encode()
        columns = {name: np.concatenate([getattr(one, name) for one in there.values()]) for name in Series._fields}
        _write(file, index=np.frombuffer(index, dtype=np.uint8), **columns)

    def figures(self) -> dict[str, dict[str, str]]:
        """For each figure of the last report, by what it was drawn from: the hash of each of its files."""
        folder = self._folder()
        try:
            kept = json.loads((folder / "figures.json").read_bytes()) if folder else {}
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def keep_figures(self, found: Mapping[str, Mapping[str, str]]) -> None:
        """Keep these in place of all that were kept."""
        if folder := self._folder():
            with contextlib.suppress(OSError):
                write_atomic(folder / "figures.json", json.dumps(found, sort_keys=True).encode())


def _part(columns: Series, start: int, stop: int) -> Series:
    if not 0 <= start <= stop <= min(map(len, columns)):
        raise ValueError("an entry of the index lies outside the arrays")
    return columns.at(slice(start, stop))


def _write(file: Path, **arrays: Any) -> None:
    with contextlib.suppress(OSError), replacing(file) as out:
        np.savez(out, allow_pickle=False, **arrays)

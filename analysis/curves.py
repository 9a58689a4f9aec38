"""Logs of runs, read one metric at a time: this project's metrics.jsonl here, those of other programs in `foreign`.

Only the lines that may hold the wanted split are parsed, and what was read is kept (`analysis.cache`), so a log that
has not changed since is not opened again.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson

from ablate.records import RunFolder
from analysis.cache import Cache, Stamp
from analysis.progress import tracked
from analysis.series import EMPTY, Series, series_of

INDEX = ("split", "step", "tokens", "seconds")
"""What says of a record when it was logged; its other entries are values by name."""


class Readable(Protocol):
    """What a series can be read from."""

    @property
    def file(self) -> Path | None:
        """The file it is read from; None for what is in memory already."""

    def series(self, metric: str) -> Series:
        """One metric along the run; empty when there is none."""


class Log(Readable, Protocol):
    """All that was logged along one run."""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every value: split, step, tokens, seconds, name, value."""


@dataclass(frozen=True)
class RunLog:
    """metrics.jsonl of a run of this project; the metric eval/loss is `loss` in the records of the split `eval`."""

    folder: RunFolder

    @property
    def file(self) -> Path:
        """metrics.jsonl."""
        return self.folder.metrics

    def series(self, metric: str) -> Series:
        """The values of one split; a line that is torn or no record is left out."""
        split, _, name = metric.rpartition("/")
        wanted = json.dumps(split).encode()
        lines = [line for line in self._raw().split(b"\n") if wanted in line]
        found = [
            record
            for record in parse_lines(lines)
            if record.get("split") == split and is_value(record.get(name, "")) and isinstance(record.get("step"), int)
        ]
        return series_of(
            [record["step"] for record in found],
            [record.get("tokens") for record in found],
            [record[name] for record in found],
        )

    def _raw(self) -> bytes:
        try:
            return self.folder.metrics.read_bytes()
        except FileNotFoundError:
            return b""

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every number that was logged, in the order of the file."""
        for record in self.folder.read_metrics():
            if isinstance(record.get("step"), int):
                index = {name: record.get(name) for name in INDEX}
                values = {name: value for name, value in record.items() if name not in INDEX and is_value(value)}
                yield from ({**index, "name": name, "value": value} for name, value in values.items())


def is_value(value: Any) -> bool:
    """Whether a record's entry is a number, or null for one that was not finite."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def parse_lines(lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """The JSON objects of these lines; other lines are left out. NaN and Infinity are read, though not strict JSON."""
    try:
        parsed = orjson.loads(b"[" + b",".join(lines) + b"]")
    except orjson.JSONDecodeError:
        parsed = [_parse(line) for line in lines]
    return [record for record in parsed if isinstance(record, dict)]


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def read_all(logs: Sequence[Readable | None], metric: str, cache: Cache) -> list[Series]:
    """One metric along every run, in the order of the logs; empty for a run without a log.

    What the cache holds of files that have not changed is taken from there, and what is read is put there.
    """
    stamps = [cache.stamp(log.file) if log is not None and log.file is not None else None for log in logs]
    kept = cache.series(metric) if any(stamps) else {}
    missing = [place for place, stamp in enumerate(stamps) if stamp is None or stamp not in kept]
    read = {place: _read(logs[place], metric) for place in tracked(missing, "reading logs of runs")}
    found = [read[place] if place in read else kept[stamps[place]] for place in range(len(logs))]  # type: ignore[index]
    _keep(cache, metric, kept, {stamps[place]: one for place, one in read.items()})
    return found


def _read(log: Readable | None, metric: str) -> Series:
    return EMPTY if log is None else log.series(metric)


def _keep(cache: Cache, metric: str, kept: Mapping[Stamp, Series], read: Mapping[Stamp | None, Series]) -> None:
    new = {stamp: one for stamp, one in read.items() if stamp is not None}
    if new:
        cache.keep_series(metric, {**kept, **new})

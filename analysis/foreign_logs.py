"""Metrics files of other programs: CSV (Lightning's sparse one too) or JSON lines, one record a line, values by column.

A record that lacks the column, or has a blank there, was not meant for it: Lightning writes training and validation on
lines of their own. NaN, inf and null are values, those of a run that diverged. A record's step is its column `step`,
else `epoch`, else the number of its line.
"""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.curves import parse_lines
from analysis.run_folders import natural
from analysis.series import EMPTY, Series, series_of
from analysis.study import StudyError

STEP_COLUMNS = ("step", "epoch")
"""The first of these that every record with a value has tells its step."""

ROWS = "row number"

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Wanted:
    """FILE:COLUMN: which file of a run folder, a glob allowed, and which column of it is the metric."""

    pattern: str
    column: str

    @classmethod
    def parse(cls, text: str) -> "Wanted":
        """Split at the first colon. Raises StudyError unless both parts are there and FILE is a glob in the folder."""
        pattern, _, column = text.partition(":")
        if not pattern or not column:
            raise StudyError(f"--metrics {text!r} is not FILE:COLUMN, such as metrics.csv:val_loss")
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise StudyError(f"--metrics {text!r}: FILE is a path inside each run folder, such as logs/metrics.csv")
        if not Path(pattern).parts:
            raise StudyError(f"--metrics {text!r}: FILE names no file; give one in the run folder, such as metrics.csv")
        if any("**" in part and part != "**" for part in Path(pattern).parts):
            raise StudyError(f"--metrics {text!r}: in FILE ** is a whole folder name, such as **/metrics.csv")
        return cls(pattern, column)

    def files(self, run: Path) -> list[Path]:
        """The files of a run folder that match, the one written last at the end.

        `**` passes links to folders over, as they may lead to large folders of data, but where it finds nothing it is
        tried in what they lead to.
        """
        found = [path for path in run.glob(self.pattern) if path.is_file()]
        if not found and "**" in Path(self.pattern).parts:
            found = [path for path in self._behind_links(run) if path.is_file()]
        return sorted(found, key=lambda path: (path.stat().st_mtime_ns, natural(path)))

    def _behind_links(self, run: Path) -> Iterator[Path]:
        parts = Path(self.pattern).parts
        at = parts.index("**")
        for start in run.glob(str(Path(*parts[:at]))) if at else [run]:
            links = (path for path in start.rglob("*") if path.is_symlink() and path.is_dir())
            yield from (file for link in links for file in link.glob(str(Path(*parts[at:]))))


@dataclass(frozen=True)
class TableLog:
    """One metrics file; a name that ends in .csv says CSV, any other JSON lines."""

    file: Path

    def records(self) -> list[Record]:
        """Every line that can be read, as values by column; a line that is torn is left out."""
        if self.file.suffix.lower() != ".csv":
            return list(parse_lines(self.file.read_bytes().split(b"\n")))
        with self.file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            # A null byte, as a crash leaves them, would end the reading.
            return list(csv.DictReader((line.replace("\0", "") for line in lines), restval=""))

    @property
    def columns(self) -> list[str]:
        """The columns that any record has."""
        return list(dict.fromkeys(str(name) for record in self.records() for name in record if name is not None))

    def series(self, metric: str) -> Series:
        """One column along the run; empty when it is not there."""
        found = [(place, record) for place, record in enumerate(self.records()) if _number(record, metric) is not None]
        if not found:
            return EMPTY
        column = _step_column([record for _, record in found], metric)
        steps = [place if column == ROWS else int(_number(record, column) or 0) for place, record in found]
        return series_of(steps, [None] * len(found), [_number(record, metric) for _, record in found])

    def step_column(self, metric: str) -> str:
        """What tells the step of this file's records of the metric."""
        return _step_column([record for record in self.records() if _number(record, metric) is not None], metric)


def _step_column(records: Sequence[Record], metric: str) -> str:
    return next((name for name in STEP_COLUMNS if name != metric and _all_finite(records, name)), ROWS)


def _all_finite(records: Sequence[Record], name: str) -> bool:
    return all((value := _number(record, name)) is not None and math.isfinite(value) for record in records)


def _number(record: Record, name: str) -> float | None:
    """The value of a column: NaN for null, None where there is none, a blank, or what is no number."""
    value = record.get(name, "")
    if value is None:
        return math.nan
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class ReadLog:
    """The series of one metric that was read when the study was loaded."""

    metric: str
    found: Series
    file: None = None

    def series(self, metric: str) -> Series:
        """The series; empty for another metric."""
        return self.found if metric == self.metric else EMPTY

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every value; other programs' splits, tokens and seconds are not known."""
        for step, value in zip(self.found.step.tolist(), self.found.value.tolist(), strict=True):
            yield {"split": None, "step": step, "tokens": None, "seconds": None, "name": self.metric, "value": value}

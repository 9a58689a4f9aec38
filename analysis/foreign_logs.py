"""Files of metrics of other programs: CSV (Lightning's sparse one too), JSON or Parquet; one metric read from each.

A record that lacks the column, or has a blank there, was not meant for it: Lightning writes training and validation on
lines of their own. NaN, inf and null are values, those of a run that diverged. What else is no number is left out and
counted. How files are read is in `reading`, headers that change in `log_headers`, steps in `foreign_steps`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from analysis import reading
from analysis.file_formats import EmptyFileError
from analysis.foreign_steps import canonical
from analysis.log_headers import records_of
from analysis.run_folders import natural
from analysis.series import EMPTY, Series
from analysis.study import StudyError

LARGEST = 2**63
"""Beyond the steps that can be kept."""

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
class MetricLog:
    """One metric in one file: its values, and in which records of the file (from 0) they are.

    `columns` are all columns of the file, `steps` those that may tell the step, by their name without case: a whole
    number for each value, or None where one of them has none. `wrong` are cells that are no numbers.
    """

    file: Path
    columns: Sequence[str]
    rows: Sequence[int] = ()
    values: Sequence[float] = ()
    steps: Mapping[str, Sequence[int] | None] = field(default_factory=dict)
    wrong: Sequence[str] = ()

    def rising(self) -> list[str]:
        """All columns of whole numbers that rise from value to value."""
        records, _ = _read(self.file)
        kept = [records[row] for row in self.rows]
        columns = {name: _steps(kept, _alike(name, self.columns)) for name in self.columns}
        return [
            name
            for name, steps in columns.items()
            if steps is not None
            and (steps[0] < steps[-1] or len(steps) == 1)
            and all(a <= b for a, b in pairwise(steps))
        ]


def read_metric(file: Path, metric: str, step_key: str | None = None) -> MetricLog:
    """Read one metric. Raises StudyError, one line, for a format that is not read and for rows that fit no header."""
    records, mark = _read(file)
    kinds = dict.fromkeys(map(tuple, records))  # of records, by their columns: few
    columns = list(dict.fromkeys(name for kind in kinds for name in kind if name))
    names = _alike(metric, columns)
    cells = _column(records, names)
    try:
        decimal = mark([cell for cell in cells if isinstance(cell, str)])
    except ValueError as error:
        raise StudyError(f"{file}: column {metric}: {error}") from None
    numbers = [_number(cell, decimal) for cell in cells]
    rows = [row for row, value in enumerate(numbers) if value is not None]
    wrong = [str(cell) for cell, value in zip(cells, numbers, strict=True) if value is None and str(cell).strip()]
    asked = _alike(step_key, columns) if step_key else [name for name in columns if canonical(name)]
    kept = [records[row] for row in rows]
    steps = {reading.same_name(name): _steps(kept, _alike(name, columns)) for name in asked if name not in names}
    return MetricLog(file, columns, rows, [value for value in numbers if value is not None], steps, wrong)


def _read(file: Path) -> tuple[Sequence[Record], Callable[[Sequence[str]], str]]:
    """The records, none in an empty file, and what finds the decimal mark of a column's cells."""
    try:
        found = reading.read(file, torn=True)
    except EmptyFileError:
        return [], lambda _: "."
    if isinstance(found, reading.Rows):
        return records_of(file, found), found.decimal
    return [record for _, record in found.records], lambda _: "."


def _alike(name: str, columns: Sequence[str]) -> list[str]:
    """The columns of this name, the one that is written like it before those that differ by case and blanks."""
    alike = [column for column in columns if reading.same_name(column) == reading.same_name(name)]
    return sorted(alike, key=lambda column: column != name)


def _number(cell: Any, mark: str) -> float | None:
    """A value: NaN for null, None for a blank and for what is no number."""
    if cell is None:
        return math.nan
    if isinstance(cell, str):
        return reading.number(cell, mark)
    try:
        return None if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def _column(records: Sequence[Record], names: Sequence[str]) -> list[Any]:
    """What each record has in the first of these columns that it has; blank without any."""
    if len(names) == 1:
        return [record.get(names[0], "") for record in records]
    return [next((record[name] for name in names if name in record), "") for record in records]


def _steps(records: Sequence[Record], names: Sequence[str]) -> list[int] | None:
    """A column, under any of its spellings, as steps; None unless every record has a whole number there."""
    steps = [_step(cell) for cell in _column(records, names)]
    return [step for step in steps if step is not None] if None not in steps else None


def _step(cell: Any) -> int | None:
    if isinstance(cell, str):
        step = reading.whole(cell)
    elif isinstance(cell, float):
        step = int(cell) if cell.is_integer() else None
    else:
        step = cell if isinstance(cell, int) and not isinstance(cell, bool) else None
    return step if step is not None and -LARGEST <= step < LARGEST else None


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

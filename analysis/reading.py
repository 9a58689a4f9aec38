"""Files of numbers as rows of cells or as records, whatever wrote them: CSV, JSON, Parquet; for tables and for logs.

    CSV       columns separated by commas, semicolons or tabs, whichever makes the header's columns; decimal commas
              where it is not the comma that separates
    JSON      a record a line; several records after each other; a list of records; an object that holds one such list
              (`log_history` of a trainer_state.json), a list per column, or pandas' columns, index and split
    Parquet   where pandas has a package to read it

Cells stay as they are written. Numbers are those that programs write (1, -2.5, .5, 1e-3, nan, -inf), not all that
Python reads: 1_000 is none.
"""

import csv
import importlib.util
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from analysis.file_formats import PARQUET, decoded, unpacked
from analysis.study import StudyError

DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon"}

LONGEST_CELL = 20
"""So many lines a cell of a log may have."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d{1,4000}", re.ASCII)
_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?", re.ASCII)
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+", re.ASCII)


class Row(NamedTuple):
    """The cells of one row, and the line of the file on which it begins."""

    line: int
    cells: list[str]


@dataclass(frozen=True)
class Rows:
    """A file in CSV: every row that is not blank, the header being the first."""

    delimiter: str
    rows: tuple[Row, ...]

    def decimal(self, cells: Sequence[str]) -> str:
        """What separates the decimals in these cells, those of one column: a point or a comma.

        Raises ValueError, naming a cell, when both are there or when the comma may as well separate thousands.
        """
        commas = [cell for cell in map(str.strip, cells if self.delimiter != "," else ()) if _COMMA.fullmatch(cell)]
        if not commas:
            return "."
        points = next((cell.strip() for cell in cells if _POINT.fullmatch(cell.strip())), None)
        if points:
            raise ValueError(f"{commas[0]} and {points} have different decimal marks; write one of them throughout")
        thousands = all(map(_THOUSANDS.fullmatch, commas)) and (self.delimiter == "\t" or self._has_points)
        if thousands:
            whole, decimal = commas[0].replace(",", ""), commas[0].replace(",", ".")
            raise ValueError(f"{commas[0]} may mean {whole} or {decimal}; write the one that it is")
        return ","

    @property
    def _has_points(self) -> bool:
        return any(_POINT.fullmatch(cell.strip()) for row in self.rows for cell in row.cells)


@dataclass(frozen=True)
class Records:
    """A file of JSON or Parquet: objects with their values by name; `noun` is what their numbers count."""

    noun: str
    records: tuple[tuple[int, Mapping[str, Any]], ...]


def read(path: Path, *, torn: bool = False) -> Rows | Records:
    """Read a file. Raises StudyError, one line that names the format found, for what is none of these.

    `torn`: what a killed program leaves is passed over (a cut line, null bytes), as in logs; a table is refused then.
    """
    data = unpacked(path, torn=torn)
    if PARQUET.match(data):
        return Records("row", tuple(enumerate(_parquet(path, data), 1)))
    text = decoded(path, data, torn=torn)
    if not _looks_like_json(text, torn=torn):
        return _csv(path, text, torn=torn)
    found = _json(path, text, torn=torn)
    if not found.records and not torn:
        raise StudyError(f"{path}: JSON with no records; write a list of objects, one per run")
    return found


def number(cell: str, decimal: str = ".") -> float | None:
    """The number that a cell holds, blanks around it aside; None when it holds none."""
    text = cell.strip()
    if decimal == ",":
        text = text.replace(",", ".") if "." not in text else ""
    return float(text) if _NUMBER.fullmatch(text) else None


def whole(cell: str, decimal: str = ".") -> int | None:
    """A whole number, exact at any size where it is written as one; 2.0 is one too, for programs that write 2 so."""
    if _WHOLE.fullmatch(cell.strip()):
        return int(cell)
    value = number(cell, decimal)
    return int(value) if value is not None and math.isfinite(value) and value.is_integer() else None


def same_name(name: str) -> str:
    """A column's name as names are compared: without case, blanks around it, or a byte order mark."""
    return name.strip().removeprefix("\ufeff").strip().casefold()


def find_name(wanted: str, names: Sequence[str]) -> str | None:
    """The one of these names that is meant: exactly this one, else the one that differs by case and blanks only."""
    return wanted if wanted in names else next((n for n in names if same_name(n) == same_name(wanted)), None)


def first_twice(names: Sequence[str]) -> str | None:
    """A name, as it is written, that stands more than once, blanks and case aside; None when none does."""
    times = Counter(map(same_name, names))
    return next((name for name in names if same_name(name) and times[same_name(name)] > 1), None)


def _looks_like_json(text: str, *, torn: bool) -> bool:
    """By its first character; a log that is torn, or has other lines between, by most of its lines."""
    if text.lstrip()[:1] in ("{", "["):
        return True
    lines = [line for line in text.split("\n") if line.strip()] if torn else []
    return 2 * sum(line.lstrip().startswith("{") for line in lines) > len(lines)


def _csv(path: Path, text: str, *, torn: bool) -> Rows:
    stated = re.match(r"sep=(.)\r?\n", text)  # a line for Excel
    body = text[stated.end() :] if stated else text
    try:
        delimiter = stated[1] if stated else _delimiter(body)
        rows = tuple(_rows(body, delimiter, strict=not torn, before=1 if stated else 0))
    except csv.Error as error:
        raise StudyError(f"{path}: not a table in CSV ({error})") from None
    return Rows(delimiter, rows)


def _rows(text: str, delimiter: str, *, strict: bool, before: int = 0) -> Iterator[Row]:
    """Every row with a cell that is not blank."""
    if not strict and '"' in text:
        yield from _torn_rows(text, delimiter, before)
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
    line = before + 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield Row(line, cells)
        line = before + reader.line_num + 1


def _torn_rows(text: str, delimiter: str, before: int) -> Iterator[Row]:
    """Likewise, but the quote of a line that was cut off does not go on over the rows after it."""
    lines = list(io.StringIO(text, newline=""))
    place = 0
    while place < len(lines):
        ends = range(place + 1, min(place + LONGEST_CELL, len(lines)) + 1)
        end = next((end for end in ends if sum(line.count('"') for line in lines[place:end]) % 2 == 0), place + 1)
        try:
            (cells,) = csv.reader(lines[place:end], delimiter=delimiter, strict=True)
        except (csv.Error, ValueError):
            end = place + 1
            cells = next(csv.reader(lines[place:end], delimiter=delimiter), [])
        if any(cell.strip() for cell in cells):
            yield Row(before + place + 1, cells)
        place = end


def _delimiter(text: str) -> str:
    """The one with which the first rows are as long as the header; of several the one that makes more columns."""

    def fits(delimiter: str) -> tuple[bool, int]:
        lengths = [len(row.cells) for row, _ in zip(_rows(text, delimiter, strict=False), range(20), strict=False)]
        return len(set(lengths)) == 1 and lengths[0] > 1, lengths[0] if lengths else 0

    return max(DELIMITERS, key=fits)


def _json(path: Path, text: str, *, torn: bool) -> Records:
    values = list(_values(path, text, torn=torn))
    if len(values) == 1:
        return Records("record", tuple(enumerate(_records_in(path, values[0][1]), 1)))
    kept = tuple((line, value) for line, value in values if isinstance(value, dict))
    if len(kept) < len(values) and not torn:
        line = next(line for line, value in values if not isinstance(value, dict))
        raise StudyError(f'{path}: line {line} is no object of JSON, such as {{"step": 1, "loss": 0.5}}')
    return Records("line", kept)


def _values(path: Path, text: str, *, torn: bool) -> Iterator[tuple[int, Any]]:
    """The values that stand one after the other, each with its line; where `torn`, lines that are no value are not."""
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    place, line, blank = 0, 1, re.compile(r"\s*")
    while (start := blank.match(text, place).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", place, start)
        try:
            if torn and text[start] not in "{[":
                raise ValueError("other text between the records")
            value, place = decoder.raw_decode(text, start)
            yield line, value
            line += text.count("\n", start, place)
        except (ValueError, RecursionError) as error:
            if isinstance(error, _TwiceError) or not torn:
                plain = re.split(" while|;", str(error))[0]
                reason = error.msg if isinstance(error, json.JSONDecodeError) else plain
                where = error.lineno if isinstance(error, json.JSONDecodeError) else line
                raise StudyError(f"{path}: JSON that cannot be read, line {where}: {reason}") from None
            place = _behind_cut_off(text, start, decoder)


def _behind_cut_off(text: str, start: int, decoder: json.JSONDecoder) -> int:
    """Where to go on after a record that was cut off: at a whole one that ends its line, else after the line."""
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    at = start
    while (at := text.find("{", at + 1, end)) >= 0:
        try:
            _, stop = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if not text[stop:end].strip():
            return at
    return end


class _TwiceError(ValueError):
    """An object of JSON that has one name twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError(f"{first_twice([name for name, _ in pairs])!r} is in one object twice")
    return found


def _records_in(path: Path, value: Any) -> list[dict[str, Any]]:
    """The records that one value of JSON holds, by the shapes that programs write."""
    if isinstance(value, list):
        return _objects(path, value)
    if not isinstance(value, dict):
        raise StudyError(f"{path}: JSON, but {str(value)[:40]} is no record; write a list of objects")
    lists = [key for key, inside in value.items() if inside and _all(inside, list, dict)]
    if "log_history" in lists or len(lists) == 1:
        return _objects(path, value["log_history" if "log_history" in lists else lists[0]])
    if len(lists) > 1:
        raise StudyError(f"{path}: JSON with {len(lists)} lists of records: {', '.join(lists)}; give a file with one")
    if value.keys() >= {"columns", "data"} and _all(value["columns"], list, str) and _all(value["data"], list, list):
        if any(len(row) != len(value["columns"]) for row in value["data"]):
            raise StudyError(f"{path}: JSON with rows that are not as long as its columns")
        return [dict(zip(value["columns"], row, strict=True)) for row in value["data"]]
    return _columns(path, value)


def _columns(path: Path, value: dict[str, Any]) -> list[dict[str, Any]]:
    """Records of an object that holds columns, or rows by their index; any other object is one record."""
    if value and all(isinstance(inside, list) for inside in value.values()):
        if len({len(inside) for inside in value.values()}) > 1:
            told = ", ".join(f"{key} {len(inside)}" for key, inside in value.items())
            raise StudyError(f"{path}: JSON with columns of different lengths: {told}")
        return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]
    if value and all(isinstance(inside, dict) for inside in value.values()):
        if all(map(_WHOLE.fullmatch, value)):
            return list(value.values())
        rows = dict.fromkeys(index for column in value.values() for index in column)
        if all(map(_WHOLE.fullmatch, rows)):
            return [{name: column[i] for name, column in value.items() if i in column} for i in rows]
    return [value]


def _all(value: Any, outer: type, inner: type) -> bool:
    return isinstance(value, outer) and all(isinstance(item, inner) for item in value)  # type: ignore[attr-defined]


def _objects(path: Path, values: list[Any]) -> list[dict[str, Any]]:
    for place, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise StudyError(f"{path}: JSON, but entry {place} of its list is no object with names and values")
    return values


def _parquet(path: Path, data: bytes) -> list[dict[str, Any]]:
    """The rows, a null left out; an index that has a name is a column too."""
    if not any(importlib.util.find_spec(name) for name in ("pyarrow", "fastparquet")):
        raise StudyError(f"{path}: this is Parquet, which needs a package: pip install pyarrow; or write it as CSV")
    try:
        frame = pd.read_parquet(io.BytesIO(data))
    except Exception as error:  # what these packages raise for a damaged file is of many classes
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StudyError(f"{path}: Parquet that cannot be read ({reason}); write it again") from None
    named = frame.reset_index() if any(name is not None for name in frame.index.names) else frame
    return [
        {str(name): value for name, value in row.items() if value is not None and value is not pd.NA}
        for row in named.to_dict("records")
    ]

"""Logs in CSV whose header changes on the way, as after a resume that logs more columns: each row by its own header.

A row is a header when it equals an earlier one, or when no cell is a number or blank and it shares a column with the
header in force. A header may follow a line that was cut off, without a line break between; what was cut off is left
out, as are comments behind #. Rows that fit no header are refused with their line: their values would get wrong names.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from analysis.reading import Row, Rows, find_name, number
from analysis.study import StudyError

_CUT_OFF = re.compile(r"[+-]?[\d.]+([eE][+-]?\d*)?")
_MARKS = re.compile('[#"\ufeff]')
_NAME = re.compile(r"[^\W\d][\w ./:@%()\[\]-]*")

Cells = Mapping[str, str]
"""The cells of a row by the names of their columns; those that the row lacks are absent."""


def records_of(path: Path, rows: Rows) -> list[Cells]:
    """The records of a log. Raises StudyError for a header with a column twice and for rows that fit no header."""
    log = _Log(path, rows)
    for row in rows.rows:
        log.take(row)
    return log.records


class _Log:
    """What was read of a log, and the headers that it had; the last of them is in force."""

    def __init__(self, path: Path, rows: Rows) -> None:
        self.path = path
        self.commas_end_lines = not rows.rows[0].cells[-1].strip() if rows.rows else False
        self.headers: list[Row] = []
        self.records: list[Cells] = []
        self._first = 0  # of the records under the header in force

    def take(self, row: Row) -> None:
        """Read one row."""
        header, text = self.headers[-1].cells if self.headers else [], "".join(row.cells)
        if len(row.cells) == len(header) and number(row.cells[-1]) is not None and not _MARKS.search(text):
            self.records.append(dict(zip(header, row.cells, strict=True)))  # nearly all rows
        else:
            self._take_slowly(row)

    def _take_slowly(self, row: Row) -> None:
        row = Row(row.line, [cell.strip(' \t"\ufeff') for cell in row.cells])
        is_comment = row.cells[0].startswith("#")
        row.cells[0] = row.cells[0].lstrip("# ")
        while self.commas_end_lines and len(row.cells) > 1 and not row.cells[-1]:
            row.cells.pop()
        header = self._header(row) if self.headers else row.cells
        if header is not None and (len(header) > 1 or not is_comment):
            self._begin(Row(row.line, header))
        elif not is_comment:
            self._check(row)
            self.records.append(dict(zip(self.headers[-1].cells, row.cells, strict=False)))

    def _begin(self, header: Row) -> None:
        names = [name for name in header.cells if name]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise self._wrong(header, f"the header has {twice!r} twice; rename all but one")
        self.headers.append(header)
        self._first = len(self.records)

    def _header(self, row: Row) -> list[str] | None:
        """The header that a row is, or ends with; None for values."""
        if not row.cells[-1] or number(row.cells[-1]) is not None:
            return None
        if any(row.cells == known.cells for known in self.headers):
            return row.cells
        behind = self._behind_cut_off(row.cells)
        if behind is not None or self._has_numbers(row.cells):
            return behind
        header = self.headers[-1].cells
        unfit = "" in row.cells[1:] or (not row.cells[0] and header[0]) or len(row.cells) < min(2, len(header))
        return row.cells if not unfit and any(name and find_name(name, header) for name in row.cells) else None

    def _behind_cut_off(self, cells: Sequence[str]) -> list[str] | None:
        """A header that follows, in the same line, what was cut off: 50,0.4step,loss."""
        for place, cell in enumerate(cells):
            rest = list(cells[place + 1 :])
            for known in self.headers:
                first, *others = known.cells
                if not cell.endswith(first) or cell == first:
                    continue
                is_known = others == rest and (rest or _CUT_OFF.fullmatch(cell.removesuffix(first)))
                names_follow = first and rest and not self._has_numbers(rest) and "" not in rest
                if is_known or (names_follow and _CUT_OFF.fullmatch(cell.removesuffix(first))):
                    return [first, *rest]
        return None

    def _has_numbers(self, cells: Sequence[str]) -> bool:
        return any(number(cell) is not None or number(cell, ",") is not None for cell in cells)

    def _check(self, row: Row) -> None:
        """Raise StudyError for a row that is longer than its header, and for names where only numbers were so far."""
        header = self.headers[-1]
        if any(row.cells[len(header.cells) :]):
            columns = f"the header in force (line {header.line}) {len(header.cells)} columns"
            raise self._wrong(row, f"{len(row.cells)} cells, {columns}; correct that line, or put its header before it")
        if number(row.cells[-1]) is None and self._may_be_another_header(row):
            names = ", ".join(row.cells)
            told = f"{names}: neither numbers nor a header that shares a column with the one in force"
            raise self._wrong(
                row, f"{told} ({', '.join(header.cells)}); correct that line, or give the files of one header"
            )

    def _may_be_another_header(self, row: Row) -> bool:
        """Whether all cells look like names, under columns that held nothing but numbers, in two at least."""
        names, before = self.headers[-1].cells, self.records[self._first :]
        if len(row.cells) < min(2, len(names)) or not all(map(_NAME.fullmatch, row.cells)) or not before:
            return False
        columns = [[record[name] for record in before if record.get(name)] for name in names[: len(row.cells)]]
        return all(column and all(number(cell) is not None for cell in column) for column in columns)

    def _wrong(self, row: Row, told: str) -> StudyError:
        return StudyError(f"{self.path}: line {row.line}: {told}")

"""A plain table by columns: which column is the variant, the metric, the seed, the task and the step, and its cells.

Names are compared without case and blanks around them. Cells are text as it is written, so that a variant 1.0 keeps its
name; they become numbers here.
"""

import difflib
import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from analysis.reading import Row, Rows, find_name, first_twice, number, read, whole
from analysis.study import StudyError

VARIANT, SEED = "variant", "seed"

_VARIANTS = (
    "name",
    "model",
    "method",
    "arm",
    "config",
    "algorithm",
    "algo",
    "approach",
    "system",
    "condition",
    "group",
)
_SEEDS = ("seeds", "trial", "run", "rep", "repeat", "repetition", "replicate", "replica", "fold", "init", "rng")


class Roles(NamedTuple):
    """The columns by what they are, with the names that the table gives them."""

    variant: str
    metric: str
    seed: str | None = None
    tasks: tuple[str, ...] = ()
    step: str | None = None

    @property
    def named(self) -> list[str]:
        """Every column that has a role."""
        return [name for name in (self.variant, self.metric, self.seed, *self.tasks, self.step) if name is not None]


@dataclass(frozen=True)
class PlainTable:
    """The columns by name; rows are counted from 1, the header and blank rows aside. `written` is set for CSV."""

    path: Path
    columns: Mapping[str, Sequence[str]]
    written: Rows | None = None

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    @cached_property
    def size(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def wrong(self, text: str) -> StudyError:
        """An error that names the file."""
        return StudyError(f"{self.path}: {text}")

    def find(self, wanted: str, advice: str = "") -> str:
        """The column that is meant. Raises StudyError, naming all columns, when there is none."""
        if (found := find_name(wanted, self.names)) is not None:
            return found
        if len(self.names) == 1:
            raise self.wrong(f"only one column, {self.names[0]!r}; separate columns by commas, semicolons or tabs")
        ends = [name for name in self.names if words(name)[-len(words(wanted)) :] == words(wanted) != []]
        near = ends or difflib.get_close_matches(wanted, self.names, n=1)
        hint = f" (did you mean {near[0]}?)" if near else advice
        raise self.wrong(f"no column {wanted!r}; there are: {', '.join(self.names)}{hint}")

    def texts(self, column: str, noun: str) -> list[str]:
        """The cells without blanks around them. Raises StudyError for a blank one."""
        cells = [cell.strip() for cell in self.columns[column]]
        if "" in cells:
            raise self.wrong(f"row {cells.index('') + 1} has no {noun}; give each row one")
        return cells

    def wholes(self, column: str, largest: float = math.inf) -> list[int]:
        """The cells as whole numbers. Raises StudyError for any other, and for one beyond the `largest`."""
        mark = self._decimal(column)
        found = []
        for row, cell in enumerate(self.columns[column], 1):
            if (value := whole(cell, mark)) is None:
                raise self.wrong(f"row {row} has {column} {cell!r}, not a whole number such as 0, 1 or 2")
            if abs(value) > largest:
                raise self.wrong(f"row {row} has {column} {value}, which is too large")
            found.append(value)
        return found

    def values(self, column: str) -> list[float]:
        """The cells as numbers, NaN for a blank. Raises StudyError for any other."""
        mark = self._decimal(column)
        found = []
        for row, cell in enumerate(self.columns[column], 1):
            value = number(cell, mark) if cell.strip() else float("nan")
            if value is None:
                raise self.wrong(f"row {row} has {column} {cell!r}, not a number; {_hint(cell)}")
            found.append(value)
        return found

    def holds_wholes(self, column: str) -> bool:
        """Whether every cell is a whole number."""
        return all(whole(cell) is not None for cell in self.columns[column])

    def _decimal(self, column: str) -> str:
        try:
            return self.written.decimal(self.columns[column]) if self.written else "."
        except ValueError as error:
            raise self.wrong(f"column {column}: {error}") from None


def _hint(cell: str) -> str:
    """What to write in place of a cell that is no number."""
    if "%" in cell:
        return "write it without %"
    return "write decimals with a point and nothing else" if "," in cell else "leave it blank if the run diverged"


def read_table(path: Path) -> PlainTable:
    """Read a table. Raises StudyError for what is none, two columns of one name, and rows longer than the header."""
    found = read(path)
    if isinstance(found, Rows):
        header, *rows = found.rows
        _check_shape(path, header.cells, rows)
        width = len(header.cells)
        cells = [row.cells + [""] * (width - len(row.cells)) for row in rows]
        named = [(name.strip(), place) for place, name in enumerate(header.cells) if name.strip()]
        return PlainTable(path, {name: [row[place] for row in cells] for name, place in named}, found)
    records = [dict(_flat(record)) for _, record in found.records]
    names = list(dict.fromkeys(name for record in records for name in record if name.strip()))
    _check_names(path, names)
    return PlainTable(path, {name.strip(): [_text(record.get(name)) for record in records] for name in names})


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a record by name; those of an object inside it as metrics.loss."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _text(value: Any) -> str:
    """A value of JSON as a cell of CSV holds it."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, default=str)


def _check_shape(path: Path, header: Sequence[str], rows: Sequence[Row]) -> None:
    """Raise StudyError for two columns of one name, and for a row that goes on beyond the header.

    Blank cells do not count: some programs end each line with a comma.
    """
    _check_names(path, header)
    for place, row in enumerate(rows, 1):
        if any(cell.strip() for cell in row.cells[len(header) :]):
            if len(header) == 1:
                first = f"the header is one column, {header[0]!r}, but line {row.line} has {len(row.cells)} cells"
                raise StudyError(f"{path}: {first}; the first line must name the columns")
            cells = f"row {place} (line {row.line}) has {len(row.cells)} cells, the header {len(header)} columns"
            raise StudyError(f"{path}: {cells}; quote cells that hold what separates the columns")


def _check_names(path: Path, names: Sequence[str]) -> None:
    if (twice := first_twice(names)) is not None:
        several = f"{len(names)} columns, of which several are named {twice.strip()!r}"
        raise StudyError(f"{path}: {several}; rename all but one (case and blanks make no difference)")


def find_roles(
    table: PlainTable,
    metric: str,
    *,
    variant: str | None = None,
    seed: str | None = None,
    task: str | None = None,
    step: str | None = None,
) -> Roles:
    """The columns that are asked for; `variant` and the seed's are found by their names where none is given.

    Raises StudyError for a column that is not there, and for one that is to be two things.
    """
    roles = Roles(
        variant=table.find(variant or VARIANT, _variant_advice(table)),
        metric=table.find(metric, "; name the metric with --metric"),
        seed=table.find(seed) if seed else None,
        tasks=_tasks(table, task) if task else (),
        step=table.find(step) if step else None,
    )
    if (twice := first_twice(roles.named)) is not None:
        raise table.wrong(f"column {twice} cannot be two of variant, seed, task, step and metric; name another")
    return roles if seed else roles._replace(seed=_seed_column(table, roles))


def _variant_advice(table: PlainTable) -> str:
    near = next((name for name in table.names if words(name)[-1:] and words(name)[-1] in _VARIANTS), "COLUMN")
    return f"; say which column is the variant: --variant-key {shlex.quote(near)}"


def _tasks(table: PlainTable, asked: str) -> tuple[str, ...]:
    """One column, or several separated by commas."""
    single = find_name(asked, table.names) is not None or "," not in asked
    return tuple(dict.fromkeys(table.find(name) for name in ([asked] if single else asked.split(","))))


def _seed_column(table: PlainTable, roles: Roles) -> str | None:
    """`seed`, else the one column of whole numbers that vary whose last word is seed; None where there is none.

    Raises StudyError when several are named so.
    """
    free = [name for name in table.names if name not in roles.named]
    if (named := find_name(SEED, free)) is not None:
        return named
    like = [name for name in free if words(name)[-1:] == [SEED] and len(set(table.columns[name])) > 1]
    like = [name for name in like if table.holds_wholes(name)]
    if len(like) > 1:
        advice = f"name the one it is: --seed-key {shlex.quote(like[0])}"
        raise table.wrong(f"{len(like)} columns look like the seed: {', '.join(like)}; {advice}")
    return next(iter(like), None)


def unpaired_remark(table: PlainTable, roles: Roles) -> str:
    """That there is no seed, and which column may be one."""
    free = [name for name in table.names if name not in roles.named]
    like = (name for name in free if words(name)[-1:] and words(name)[-1] in (*_SEEDS, SEED))
    usable = next((name for name in like if table.holds_wholes(name)), None)
    advice = f"; to pair runs by {usable}, give --seed-key {shlex.quote(usable)}" if usable else ""
    return f"runs are not paired: no column seed; there are: {', '.join(table.names)}{advice}"


def words(name: str) -> list[str]:
    """The words of a name, in lower case: rng_seed, Random Seed, randomSeed and trainer.seed all end in seed."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return re.findall(r"[a-z0-9]+", apart.lower())

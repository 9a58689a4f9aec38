"""One table object and its renderings: terminal, Markdown, CSV, JSON. What goes into a table is elsewhere.

A cell has a text for people and the unrounded values behind it by name; CSV and JSON hold the values, the others text.
LaTeX, which needs most care, is in `analysis.latex`, HTML in `analysis.page.tables`.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.text import Text

from ablate.jsonfiles import canonical_json
from ablate.screen import Column, ScreenTable

__all__ = ["Cell", "Column", "Table", "escape_markdown", "to_csv", "to_markdown", "to_terminal"]


@dataclass(frozen=True)
class Cell:
    """One cell: text for people, unrounded values by name for machines; `sort` names the one to sort by."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)
    bold: bool = False
    sort: str = ""

    @property
    def sort_value(self) -> float | str | None:
        """The value named by `sort`, else the first one; of an interval its lower end; None where there is none."""
        value = self.values[self.sort] if self.sort else next(iter(self.values.values()), None)
        value = value[0] if isinstance(value, list) and value else value
        return value if isinstance(value, int | float | str) else None


@dataclass(frozen=True)
class Table:
    """A named table with a caption. Raises ValueError when a row does not have one cell per column."""

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.name}: a row has {len(row)} cells for {len(self.columns)} columns")

    def records(self) -> list[dict[str, Any]]:
        """The unrounded values, one dict per row; what JSON holds."""
        return [{key: value for cell in row for key, value in cell.values.items()} for row in self.rows]


def to_terminal(table: Table) -> ScreenTable:
    """The table for a terminal, which takes the form that there is room for."""
    rows = [[Text(cell.text, style="bold" if cell.bold else "") for cell in row] for row in table.rows]
    return ScreenTable(table.columns, rows, ruled=True)


def to_markdown(table: Table) -> str:
    """A GitHub table followed by its caption; pipes, backslashes and markup signs in cells are escaped."""
    head = "| " + " | ".join(_markdown(column.title) for column in table.columns) + " |"
    rule = "| " + " | ".join("---:" if column.align == "right" else "---" for column in table.columns) + " |"
    body = ["| " + " | ".join(_markdown(cell.text, bold=cell.bold) for cell in row) + " |" for row in table.rows]
    caption = ["", _markdown(table.caption)] if table.caption else []
    return "\n".join([head, rule, *body, *caption]) + "\n"


def escape_markdown(text: str) -> str:
    """Text in which pipes and markup signs stand for themselves."""
    return "".join(f"\\{c}" if c in "\\|*_`<>[]#$~&" else c for c in text).replace("\n", " ")


def _markdown(text: str, *, bold: bool = False) -> str:
    escaped = escape_markdown(text)
    return f"**{escaped}**" if bold and escaped else escaped


def to_csv(table: Table) -> str:
    """The unrounded values with one column per name; lists and dicts as canonical JSON, nothing for None."""
    records = table.records()
    names = list(dict.fromkeys(name for record in records for name in record))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names or [column.title for column in table.columns])
    for record in records:
        writer.writerow([_csv(record.get(name)) for name in names])
    return out.getvalue()


def _csv(value: Any) -> Any:
    return canonical_json(value) if isinstance(value, list | tuple | Mapping) else value

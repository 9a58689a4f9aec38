"""Text and tables on a terminal of any width: nothing is cut, and no number is broken over two lines.

A table that has no room first loses its optional columns, then its cells are broken between their numbers, and at last
its rows are stacked: a block per row, a line `name: value` per column. rich draws all of it; which form fits is decided
here, because rich shrinks the columns of a table until it fits, and cuts or folds what is in them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

Align = Literal["left", "right"]

LEAST = 12
"""A column that may be wrapped is not made narrower than this."""

SIGNED = r"(?:± ?)?[+\-−<>]?"
POWER = r"(?:[eE][+\-−]?\d+)?(?: ?%)?"
NUMBER = rf"{SIGNED}(?:\d+(?:[.:/–]\d+|,\d{{3}}(?!\d))*|\.\d+){POWER}"
KEPT = (
    re.compile(rf"(?:{NUMBER}|\S)*+(?:\s+|$)"),
    re.compile(rf"(?:{NUMBER}|[^\s,;:=/_])*+(?:[,;:=/_]+\s*|\s+|$)"),
    re.compile(rf"{SIGNED}(?:\d+(?:\.\d+)?|\.\d+){POWER}|[^\W\d_]+|\s+|."),
)
"""What is kept in one line: up to a space; where that is too long, up to one of a few signs; then a number, a word."""

PARTS = re.compile(r" (?=[\[(±]|baseline \[)")
ENDS = re.compile(rf"{PARTS.pattern}|(?<=\w,) ")
"""Where a cell of numbers is broken in a narrow table: before its deviation or interval, then within the interval."""


@dataclass(frozen=True)
class Column:
    """A column. `optional` ones are left out where there is no room; those that `wraps` may take several lines."""

    title: str
    align: Align = "left"
    optional: bool = False
    wraps: bool = False


@dataclass(frozen=True)
class ScreenTable:
    """A table in the form that the terminal has room for; `ruled` draws a line under the titles."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text | str]]
    ruled: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the first form that fits."""
        every = range(len(self.columns))
        needed = [i for i in every if not self.columns[i].optional]
        for shown, breaks in ((every, None), (needed, None), (needed, PARTS), (needed, ENDS)):
            table = _Form(self, shown, breaks).fitted(console, options)
            if table is not None:
                yield table
                return
        for row in self.rows:
            yield from self._block(row, options.max_width)
        if self.ruled:
            yield Text()

    @property
    def titled(self) -> bool:
        """Whether any column has a title."""
        return any(column.title for column in self.columns)

    def _block(self, row: Sequence[Text | str], width: int) -> Iterator[Text]:
        """One row, a line for each cell that is not empty; an empty line before it parts it from others."""
        if self.titled:
            yield Text()
        for i, (column, cell) in enumerate(zip(self.columns, row, strict=True)):
            value = _text(cell)
            title = Text(f"{column.title}: " if column.title else "", style="" if i else "bold")
            if value.plain:
                yield from _indented(_entry(title, value, width - 2 * bool(i)), 2 * bool(i))


@dataclass(frozen=True)
class _Form:
    """A table with these columns, their titles and numbers broken at `breaks`."""

    of: ScreenTable
    shown: Sequence[int]
    breaks: re.Pattern[str] | None

    def fitted(self, console: Console, options: ConsoleOptions) -> Table | None:
        """The table with its wrapped columns as wide as there is room for; None where there is not enough."""

        def over(table: Table) -> int:
            unlimited = options.update(width=100_000)
            return console.measure(table, options=unlimited).maximum - options.max_width

        table = self._drawn({})
        excess = over(table)
        if excess <= 0:
            return table
        widths = {i: self._natural(i) for i in self.shown if self.of.columns[i].wraps}
        for _ in range(excess):
            widest = max(widths, key=lambda i: widths[i], default=None)
            if widest is None or widths[widest] <= LEAST:
                return None
            widths[widest] -= 1
        table = self._drawn(widths)
        return table if over(table) <= 0 else None

    def _natural(self, i: int) -> int:
        return max((cell_len(line) for row in self.of.rows for line in _text(row[i]).plain.split("\n")), default=0)

    def _drawn(self, widths: Mapping[int, int]) -> Table:
        table = Table(
            box=box.SIMPLE_HEAD if self.of.ruled else None,
            pad_edge=False,
            collapse_padding=self.of.ruled,
            show_header=self.of.titled,
            header_style="bold",
        )
        for i in self.shown:
            column = self.of.columns[i]
            table.add_column(self._broken(Text(column.title)), justify=column.align, no_wrap=True)
        for row in self.of.rows:
            table.add_row(*(self._cell(i, _text(row[i]), widths) for i in self.shown))
        return table

    def _cell(self, i: int, text: Text, widths: Mapping[int, int]) -> Text:
        if i in widths:
            return Text("\n").join(wrapped(text, widths[i]))
        return self._broken(text) if self.of.columns[i].align == "right" else text

    def _broken(self, text: Text) -> Text:
        found = [match.end() for match in self.breaks.finditer(text.plain)] if self.breaks else []
        return Text("\n").join(_stripped(text.divide(found)))


@dataclass(frozen=True)
class Wrapped:
    """A text whose lines end between words and numbers; those after the first are indented by `hang`."""

    text: Text
    hang: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give its lines."""
        for line in self.text.split("\n", allow_blank=True):
            yield from wrapped(line, options.max_width, self.hang)


def say(console: Console, text: Text) -> None:
    """Print a line: on a terminal wrapped where it is too long, elsewhere as one line."""
    if console.is_terminal:
        console.print(Wrapped(text, hang=2))
    else:
        console.print(text, soft_wrap=True)


def wrapped(text: Text, width: int, hang: int = 0) -> list[Text]:
    """The lines of a text that has no line break itself, none wider than `width`."""
    ends: list[int] = []
    start = end = 0
    for piece in _pieces(text.plain, max(width - hang, 2)):
        room = width - hang * bool(ends)
        if end > start and cell_len(text.plain[start : end + len(piece)].rstrip()) > room:
            ends.append(end)
            start = end
        end += len(piece)
    first, *others = _stripped(text.divide(ends))
    return [first, *_indented(others, hang)]


def _pieces(plain: str, width: int, kept: Sequence[re.Pattern[str]] = KEPT) -> Iterator[str]:
    """The text in pieces between which a line may end, none wider than `width`."""
    for piece in kept[0].findall(plain):
        if cell_len(piece.rstrip()) <= width:
            yield piece
        else:
            yield from _pieces(piece, width, kept[1:]) if kept[1:] else chop_cells(piece, width)


def _entry(title: Text, value: Text, width: int) -> list[Text]:
    """A title with its value: in one line, else the value below."""
    whole = title + value
    if "\n" not in value.plain and cell_len(whole.plain) <= width:
        return [whole]
    below = [line for part in value.split("\n", allow_blank=True) for line in wrapped(part, width - 2)]
    return [*(wrapped(title, width) if title.plain else []), *_indented(below, 2)]


def _indented(lines: Sequence[Text], by: int) -> list[Text]:
    return [Text(" " * by) + line for line in lines]


def _stripped(lines: Iterable[Text]) -> list[Text]:
    found = list(lines)
    for line in found:
        line.rstrip()
    return found


def _text(cell: Text | str) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)

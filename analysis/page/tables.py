"""A table as HTML for the page: cells that can be sorted by the unrounded value, links, rows that can be found."""

import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from analysis.tables import Cell, Column, Table

Links = Mapping[tuple[int, int], str]
"""Where the cell at (row, column) leads."""


def to_html(table: Table, links: Links | None = None, rows: Sequence[Mapping[str, str]] = (), kind: str = "") -> Markup:
    """A `<table>` whose cells carry their column's title, so that a style sheet can stack them on a phone.

    `data-sort` holds the unrounded value, and is empty where there is none. `rows` gives attributes of each row (an id,
    words to find it by), `kind` the class of the table.
    """
    lines = Markup("").join(
        _row(table, index, links or {}, rows[index] if rows else {}) for index in range(len(table.rows))
    )
    head = Markup("").join(
        Markup('<th scope="col" class="{}">{}</th>').format(column.align, column.title) for column in table.columns
    )
    return Markup('<table class="{}">\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>').format(
        kind, head, lines
    )


def _row(table: Table, index: int, links: Links, attributes: Mapping[str, str]) -> Markup:
    cells = [
        _cell(column, cell, links.get((index, place)))
        for place, (column, cell) in enumerate(zip(table.columns, table.rows[index], strict=True))
    ]
    given = Markup("").join(Markup(' {}="{}"').format(name, value) for name, value in attributes.items())
    return Markup("<tr{}>{}</tr>\n").format(given, Markup("").join(cells))


def _cell(column: Column, cell: Cell, link: str | None) -> Markup:
    text = _kept_together(cell.text) if column.align == "right" else cell.text
    inner = Markup("<strong>{}</strong>").format(text) if cell.bold else Markup.escape(text)
    if link is not None:
        inner = Markup('<a href="{}">{}</a>').format(link, inner)
    sort = cell.sort_value if cell.values else cell.text
    shown = "" if sort is None else sort
    return Markup('<td class="{}" data-title="{}" data-sort="{}">{}</td>').format(
        column.align, column.title, shown, inner
    )


def _kept_together(text: str) -> str:
    """Numbers that break, where there is no room, before a bracket or a parenthesis only."""
    return re.sub(r" (?![\[(])", "\u00a0", text)

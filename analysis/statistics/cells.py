"""A cell as the statistics know it, a level of each factor, and its words in messages."""

from collections.abc import Iterable, Sequence
from itertools import islice

Levels = tuple[str, ...]
"""One cell: a level of each factor, in the order of the factors."""


def cell_text(factors: Sequence[str], cell: Levels) -> str:
    """One combination of levels: a=1, b=2."""
    return ", ".join(f"{factor}={level}" for factor, level in zip(factors, cell, strict=True))


def listed(texts: Iterable[str], total: int, most: int = 4) -> str:
    """The first few texts, and how many more there are; the others are never made, as there may be very many."""
    more = f"; and {total - most} more" if total > most else ""
    return "; ".join(islice(texts, most)) + more

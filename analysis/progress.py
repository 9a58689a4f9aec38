"""Progress of what takes long, on stderr: a bar on a terminal, else a line now and then; nothing when it is quick."""

import sys
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

QUICK = 1.0
"""Seconds before anything is shown."""

EVERY = 10.0
"""Seconds between two lines where there is no terminal."""


def tracked(items: Sequence[T], what: str, quick: float = QUICK) -> Iterator[T]:
    """The items one by one, showing how many are done once that has taken `quick` seconds."""
    began = monotonic()
    for done, item in enumerate(items):
        if monotonic() - began >= quick:
            yield from _shown(items, what, done)
            return
        yield item


def _shown(items: Sequence[T], what: str, done: int) -> Iterator[T]:
    return _bar(items, what, done) if sys.stderr.isatty() else _lines(items, what, done)


def _bar(items: Sequence[T], what: str, done: int) -> Iterator[T]:
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=len(items), completed=done)
        for item in items[done:]:
            yield item
            progress.advance(task)


def _lines(items: Sequence[T], what: str, done: int) -> Iterator[T]:
    shown = float("-inf")
    for place in range(done, len(items)):
        if monotonic() - shown >= EVERY:
            shown = monotonic()
            sys.stderr.write(f"{what}: {place:,} of {len(items):,}\n")
        yield items[place]

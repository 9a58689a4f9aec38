"""Standard streams on which no command fails: closed, a pipe whose reader has gone, a full disk, a narrow encoding.

What can be written is written, the rest is dropped: what is printed is for people, and a sweep ends with the exit code
that says how its runs ended. Every command calls `make_safe` first, and every process that trains. Imports the standard
library only.
"""

import codecs
import contextlib
import errno
import io
import os
import select
import sys
import unicodedata
from pathlib import Path
from typing import Any

PLAIN = {
    **dict.fromkeys("−–—", "-"),
    "±": "+/-",
    "×": "x",
    "·": ".",
    "∞": "inf",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "≈": "~",
    "→": "->",
    "…": "...",
    "√": "sqrt ",
    "¹": "^1",
    "²": "^2",
    "³": "^3",
    "↵": "\\n",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "✓": "yes",
    "✗": "no",
    "‖": "||",
}
"""How signs are written where the encoding has none for them; Greek letters are named, accents dropped."""

NOT_WRITTEN = 2
"""Exit code of a command whose output other programs read, when it could not be written."""


class Output(io.BufferedIOBase):
    """The bytes of standard output or standard error, unbuffered.

    `lost` is why something could not be written, `left` whether its reader has left.
    """

    mode = "wb"

    def __init__(self, descriptor: int, name: str) -> None:
        self.descriptor, self.name = descriptor, f"<{name}>"
        self.lost: OSError | None = None
        self.left = False

    def fileno(self) -> int:
        """Return the descriptor."""
        return self.descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self.descriptor)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write all of it, or as much as can be written; returns its length in any case."""
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            while left:
                left = left[self._some(left) :]
        except OSError as error:
            self._note(error)
        return size

    def _some(self, data: memoryview) -> int:
        try:
            return os.write(self.descriptor, data)
        except BlockingIOError:  # a pipe that is full and does not wait
            select.select([], [self.descriptor], [])
            return 0

    def _note(self, error: OSError) -> None:
        """Say the first time that something is lost, unless it is a reader that left, which is no fault."""
        self.left = self.left or error.errno == errno.EPIPE
        if self.lost is None and error.errno != errno.EPIPE:
            self.lost = error
            if self is not getattr(sys.stderr, "buffer", None):
                sys.stderr.write(f"ablate: standard output cannot be written: {error.strerror}\n")


def make_safe() -> None:
    """Make this process's standard streams safe; those that somebody replaced (a test, a notebook) are left alone."""
    codecs.register_error("ablate.plain", _plain)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None and number == 0:
            sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  (as long as the process lives)
        elif number and (stream is None or (stream is getattr(sys, f"__{name}__") and _is_plain(stream))):
            setattr(sys, name, _safe(stream, number, name))


def end_if_lost() -> None:
    """End the process where its output, which another program reads, could not be written; a reader may leave."""
    sys.stdout.flush()
    output = getattr(sys.stdout, "buffer", None)
    if isinstance(output, Output) and output.lost is not None:
        sys.exit(NOT_WRITTEN)


def is_left() -> bool:
    """Whether nobody reads standard output any more."""
    sys.stdout.flush()
    return getattr(getattr(sys.stdout, "buffer", None), "left", False) is True


def open_closed() -> None:
    """Open the standard descriptors that are closed, on nothing, else the next file to be opened is taken for one.

    Done when the package is imported, before any file is opened; processes that are started have them open too.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free, which is this one


def _is_plain(stream: Any) -> bool:
    return isinstance(stream, io.TextIOWrapper) and not isinstance(stream.buffer, Output)


def _safe(stream: io.TextIOWrapper | None, number: int, name: str) -> io.TextIOWrapper:
    if stream is None:  # it was closed when the process started; what is there now may be somebody's file
        nothing = os.path.samestat(os.fstat(number), os.stat(os.devnull))  # noqa: PTH116
        number, encoding, flushes = number if nothing else os.open(os.devnull, os.O_WRONLY), "utf-8", True
    else:
        encoding, flushes = stream.encoding, stream.line_buffering
        with contextlib.suppress(OSError):
            stream.flush()
    safe = io.TextIOWrapper(
        Output(number, name), encoding=encoding, errors="ablate.plain", newline="\n", line_buffering=flushes
    )
    safe.mode = "w"  # type: ignore[misc]  # as that of the stream it replaces
    return safe


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write one character that the encoding lacks as its plain form; a byte of a file's name as that byte."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign, after = error.object[error.start], error.start + 1
    if 0xDC80 <= ord(sign) <= 0xDCFF:
        return bytes([ord(sign) - 0xDC00]), after
    kind, _, letter = unicodedata.name(sign, "").partition(" LETTER ")
    if kind.startswith("GREEK"):
        return (letter.title() if "CAPITAL" in kind else letter.lower()).split()[0], after
    return PLAIN.get(sign) or unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode() or "?", after

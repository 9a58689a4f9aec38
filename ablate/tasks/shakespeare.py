"""Predict the next character of a text: Tiny Shakespeare (Karpathy 2015), or any text file.

The first nine tenths of the text are trained on, the last tenth is evaluated on; a sequence is a window at a random
place of its part and never reaches into the other. Every character counts.

Shape suffixes: N characters of a part, B sequences, W tokens (one more than positions).
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from ablate.tasks.base import Batch, Split, to_batch
from ablate.tasks.corpus import TINY_SHAKESPEARE, cached, read_text


class _Text(NamedTuple):
    """The characters of a text, and the tokens of its parts in the smallest type that holds them."""

    alphabet: str
    train_N: npt.NDArray[np.unsignedinteger[Any]]
    eval_N: npt.NDArray[np.unsignedinteger[Any]]


@final
@dataclass(frozen=True, kw_only=True)
class Shakespeare:
    """Sequences of seq_len + 1 characters: inputs are all but the last, targets all but the first.

    With seq_len=24 (↵ is the newline):

        inputs   ce more on Henry's head:
        targets  e more on Henry's head:↵

    `path` names a UTF-8 text file, relative to where the command is started; null downloads Tiny Shakespeare once
    (1,115,394 characters, 65 different ones). The alphabet is the characters of the text, in order.

    Raises ValueError naming the key when the file is no text or shorter than a window, or cannot be downloaded.
    """

    seq_len: int
    path: str | None

    def __post_init__(self) -> None:
        """Read the text and judge whether windows fit."""
        if len(self.alphabet) < 2:
            raise ValueError(f"task.path={self.path}: holds one character only; name a text with at least two")
        room = len(self._text.eval_N) - 1
        if not 1 <= self.seq_len <= room:
            raise ValueError(
                f"task.seq_len={self.seq_len}: must be between 1 and {room}, for the last tenth of the text, which is "
                f"held out, has {room + 1} characters; use a shorter task.seq_len or a longer text"
            )

    @property
    def alphabet(self) -> str:
        """The characters of the text."""
        return self._text.alphabet

    @property
    def held_out(self) -> int:
        """How many windows the last tenth has."""
        return len(self._text.eval_N) - self.seq_len

    def with_length(self, seq_len: int) -> Self:
        """The same text in shorter or longer windows."""
        return replace(self, seq_len=seq_len)

    def batch(self, generator: np.random.Generator, size: int, split: Split = "train") -> Batch:
        """Draw `size` windows: inputs and targets, int64 of shape [size, seq_len]."""
        text_N = self._text.eval_N if split == "eval" else self._text.train_N
        starts_B1 = generator.integers(len(text_N) - self.seq_len, size=(size, 1))
        tokens_BW = text_N[starts_B1 + np.arange(self.seq_len + 1)].astype(np.int64)
        return to_batch(tokens_BW, np.ones(tokens_BW.shape, np.bool_))

    @cached_property
    def _text(self) -> _Text:
        path = cached(TINY_SHAKESPEARE) if self.path is None else Path(self.path).expanduser()
        return _read(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=1)
def _read(path: Path, changed: int) -> _Text:
    """The text as it was at that time; kept, for each cell of a sweep builds the task."""
    del changed
    text = read_text(path)
    alphabet = "".join(sorted(set(text)))
    ids = np.zeros(ord(alphabet[-1]) + 1, np.min_scalar_type(len(alphabet)))
    ids[[ord(character) for character in alphabet]] = np.arange(len(alphabet))
    tokens_N = ids[np.frombuffer(text.encode("utf-32-le"), np.uint32)]
    border = len(text) - len(text) // 10
    return _Text(alphabet, tokens_N[:border], tokens_N[border:])

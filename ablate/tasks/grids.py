"""Text of many problems at once: each problem is a row of token ids with ABSENT where it has no character.

Building rows of one width and leaving out what is absent at the end takes the place of a loop over problems. Nothing
here draws anything or knows a task.

Shape suffixes: N problems, W tokens or columns, B sequences, D digits.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ablate.tasks.base import Bools, Ints, encode
from ablate.tasks.splits import ABSENT


def spell(alphabet: str, *parts: str | Ints) -> Ints:
    """Put columns side by side: text, the same in every row, or token ids, [N, any]; at least one part is ids."""
    rows = next(len(part) for part in parts if not isinstance(part, str))
    blocks = (_repeated(alphabet, part, rows) if isinstance(part, str) else part for part in parts)
    return np.concatenate(tuple(blocks), axis=1)


def numerals(values_N: Ints, width: int, base: int = 10) -> Ints:
    """Digits of each value, most significant first and without leading zeros; a digit's token id is its value."""
    assert base ** (width - 1) < 2**63
    digits_ND = values_N[:, None] // base ** np.arange(width - 1, -1, -1) % base
    leading_ND = np.cumsum(digits_ND, axis=1) == 0
    leading_ND[:, -1] = False
    return np.where(leading_ND, ABSENT, digits_ND)


def numeral_length(value: int, base: int = 10) -> int:
    """The number of digits of a value."""
    length = 1
    while value >= base**length:
        length += 1
    return length


def cut(symbols_NW: Ints, lengths_N: Ints) -> Ints:
    """Keep the first so many symbols of each row."""
    return np.where(np.arange(symbols_NW.shape[1]) < lengths_N[:, None], symbols_NW, ABSENT)


def texts(grid_NW: Ints) -> list[list[int]]:
    """Each row's tokens, without what is absent."""
    return [row[row != ABSENT].tolist() for row in grid_NW]


class Packed(NamedTuple):
    """Sequences of tokens and whether each counts as a target, both of shape [B, W]."""

    tokens_BW: Ints
    counted_BW: Bools


def pack(grid_NW: Ints, counted_W: Bools, size: int, length: int) -> Packed:
    """Join the texts of N / size consecutive problems to one sequence, and cut each sequence to `length` tokens.

    `counted_W` marks the columns of the grid whose characters are targets. Each sequence must come out long enough.
    """
    flat_BN = grid_NW.reshape(size, -1)
    present_BN = flat_BN != ABSENT
    kept_BN = present_BN & (np.cumsum(present_BN, axis=1) <= length)
    counted_BN = np.tile(counted_W, flat_BN.shape[1] // len(counted_W))
    counted_BN = np.broadcast_to(counted_BN, flat_BN.shape)
    assert kept_BN.sum() == size * length, "the problems of a sequence are too short to fill it"
    return Packed(flat_BN[kept_BN].reshape(size, length), counted_BN[kept_BN].reshape(size, length))


def _repeated(alphabet: str, text: str, rows: int) -> Ints:
    tokens_W = _encoded(alphabet, text)
    return np.broadcast_to(tokens_W, (rows, len(tokens_W)))


@lru_cache
def _encoded(alphabet: str, text: str) -> Ints:
    return np.array(encode(alphabet, text), np.int64)

"""What addition and multiplication share: problems of two operands. Each writes its own workings.

Shape suffixes: N problems, D digits.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ablate.tasks.base import Ints
from ablate.tasks.grids import numeral_length
from ablate.tasks.packed import PackedTask

Digits = Literal["uniform", "legacy"]


def operands(generator: np.random.Generator, count: int, max_digits: int, base: int, digits: Digits) -> Ints:
    """Draw `count` pairs, [N, 2]; the length of each operand is uniform in 1, ..., max_digits.

    `uniform`: all numbers of that length are equally likely. `legacy`: each digit is uniform in 0, ..., base and what
    the places add up to is the operand, as in the reference code, whose "digit" can be as large as the base.
    """
    lengths_N2 = generator.integers(1, max_digits + 1, size=(count, 2))
    if digits == "uniform":
        smallest_N2 = np.where(lengths_N2 == 1, 0, base ** (lengths_N2 - 1))
        return generator.integers(smallest_N2, base**lengths_N2)
    digits_N2D = generator.integers(base + 1, size=(count, 2, max_digits))
    used_N2D = np.arange(max_digits) < lengths_N2[:, :, None]
    operands_N2: Ints = np.where(used_N2D, digits_N2D * base ** np.arange(max_digits), 0).sum(axis=2)
    return operands_N2


def largest_operand(max_digits: int, base: int, digits: Digits) -> int:
    """The largest number that `operands` can draw; it draws every one from 0 to this."""
    top = base if digits == "legacy" else base - 1
    return int(top * (base**max_digits - 1) // (base - 1))


@dataclass(frozen=True, kw_only=True)
class TwoOperands(PackedTask):
    """Problems that are pairs (A, B) of numbers with up to `max_digits` digits, drawn by `operands`."""

    max_digits: int
    digits: Digits

    @property
    @abstractmethod
    def radix(self) -> int:
        """The base in which numbers are drawn and written."""

    @property
    def problems(self) -> int:
        """How many pairs (A, B) there are."""
        return (self.largest + 1) ** 2

    def smallest(self) -> Ints:
        """0 and 0."""
        return np.zeros((1, 2), np.int64)

    def propose(self, generator: np.random.Generator, count: int) -> Ints:
        """Draw pairs (A, B)."""
        return operands(generator, count, self.max_digits, self.radix, self.digits)

    @property
    def largest(self) -> int:
        """The largest operand."""
        return largest_operand(self.max_digits, self.radix, self.digits)

    @property
    def width(self) -> int:
        """The digits of the largest operand."""
        return numeral_length(self.largest, self.radix)

"""Multiplication in base b with its partial products, problems packed one after the other.

A problem is `?x=A*B; P x==C` and a newline. P holds B times each digit of A, from the least significant digit on and
without the zeros that shifting would append; all numbers are written in base b. The length of each operand is uniform
in 1, ..., max_digits. What stands after a `;` counts, up to the newline.

Shape suffixes: N problems, D digits, W columns of text.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from ablate.tasks.arithmetic import TwoOperands, largest_operand
from ablate.tasks.base import Ints, require_between, require_choice
from ablate.tasks.grids import numeral_length, numerals, spell
from ablate.tasks.splits import ABSENT


@final
@dataclass(frozen=True, kw_only=True)
class Multiplication(TwoOperands):
    """Sequences of seq_len + 1 characters: inputs are all but the last, targets all but the first.

    With seq_len=60, max_digits=2, base=4, digits=uniform (↵ is the newline), a target where it counts and a dot where
    it is ignored:

        inputs   ?x=33*22; 132 132 x==2112↵?x=1*32; 32 x==32↵?x=20*2; 0 10 x=
        targets  ........ 132 132 x==2112↵........ 32 x==32↵........ 0 10 x==

    `digits`: see `arithmetic.operands`. Problems are told apart by (A, B).

    Raises ValueError naming the key when base is not in 2, ..., 10, max_digits is below 1 or gives products beyond 62
    bits, the longest problem does not fit, or there are too few problems to hold some out.
    """

    alphabet = "0123456789x =\n?*;"
    ending = "\n"
    counts_questions = False

    base: int

    def __post_init__(self) -> None:
        """Judge the parameters."""
        require_choice("digits", self.digits, ("uniform", "legacy"))
        require_between("base", self.base, 2, 10, "a digit is one of 0 to 9")
        most = next(n for n in range(31, 0, -1) if largest_operand(n, self.base, self.digits) ** 2 < 2**62)
        require_between("max_digits", self.max_digits, 1, most, f"a product in base {self.base} must fit in 62 bits")
        super().__post_init__()

    @property
    def radix(self) -> int:
        """The base b."""
        return self.base

    def question(self, problems_NP: Ints) -> Ints:
        """`?x=A*B;`."""
        a_NW, b_NW = (numerals(column_N, self.width, self.base) for column_N in problems_NP.T)
        return spell(self.alphabet, "?x=", a_NW, "*", b_NW, ";")

    def answer(self, problems_NP: Ints) -> Ints:
        """The partial products, `x==C` and the newline."""
        product_NW = numerals(problems_NP.prod(axis=1), numeral_length(self.largest**2, self.base), self.base)
        return spell(self.alphabet, " ", self._partial_products(problems_NP), "x==", product_NW, self.ending)

    def judge(self, question: str, written: str) -> bool:
        """Whether the text after the last `x==` is the product, however right or wrong the partial products are."""
        a, b = (int(numeral, self.base) for numeral in question[3:-1].split("*"))
        return written.rpartition("x==")[1:] == ("x==", np.base_repr(a * b, self.base))

    def _partial_products(self, problems_NP: Ints) -> Ints:
        """B times each digit of A and a space, [N, W]: those of leading zeros are left out."""
        powers_D = self.base ** np.arange(self.width)
        a_ND, b_ND = (column_N[:, None] for column_N in problems_NP.T)
        products = (a_ND // powers_D % self.base * b_ND).reshape(-1)
        width = numeral_length((self.base - 1) * self.largest, self.base)
        text = spell(self.alphabet, numerals(products, width, self.base), " ")
        is_written_ND = (a_ND >= powers_D) | (powers_D == 1)
        return np.where(is_written_ND.reshape(-1, 1), text, ABSENT).reshape(len(problems_NP), -1)

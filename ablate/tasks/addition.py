"""Addition with its workings written out, problems packed one after the other.

A problem is `?x=A+B; W x==S` and an ending. W goes digit by digit from the units; at place i, with digits a and b and
the carry c so far, it says `{a}e{i}+{b}e{i}+{c}e{i}=={a+b+c}e{i}`. The length of each operand is uniform in 1, ...,
max_digits. Every character counts, the random ones of the question too.

Shape suffixes: N problems, D places, W columns of text.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np

from ablate.tasks.arithmetic import TwoOperands
from ablate.tasks.base import Ints, require_between, require_choice
from ablate.tasks.grids import numeral_length, numerals, spell
from ablate.tasks.splits import ABSENT


class _Style(NamedTuple):
    alphabet: str
    joiner: str
    ending: str


_STYLES = {"spaces": _Style("0123456789xe =\n?+;", " ", "\n"), "ands": _Style("0123456789xe =?+;and#", " and ", "#")}


@final
@dataclass(frozen=True, kw_only=True)
class Addition(TwoOperands):
    """Sequences of seq_len + 1 characters: inputs are all but the last, targets all but the first.

    With seq_len=66, max_digits=2, digits=uniform, workings=spaces (↵ is the newline):

        inputs   ?x=81+85; 1e0+5e0+0e0==6e0 8e1+8e1+0e1==16e1 x==166↵?x=1+45; 1e0+5
        targets  x=81+85; 1e0+5e0+0e0==6e0 8e1+8e1+0e1==16e1 x==166↵?x=1+45; 1e0+5e

    `workings`: with `spaces` they are joined by a space and a problem ends with a newline; with `ands` they are joined
    by ` and ` and it ends with `#`. `digits`: see `arithmetic.operands`. Problems are told apart by (A, B).

    Raises ValueError naming the key when max_digits is not in 1, ..., 9 or the longest problem does not fit.
    """

    counts_questions = True

    workings: Literal["spaces", "ands"]

    def __post_init__(self) -> None:
        """Judge the parameters."""
        require_choice("digits", self.digits, ("uniform", "legacy"))
        require_choice("workings", self.workings, tuple(_STYLES))
        require_between("max_digits", self.max_digits, 1, 9, "a place is written as one digit")
        super().__post_init__()

    @property
    def alphabet(self) -> str:
        """Digits, `xe =?+;`, the ending, and the letters of ` and ` where it is used."""
        return _STYLES[self.workings].alphabet

    @property
    def ending(self) -> str:
        """The newline or `#`."""
        return _STYLES[self.workings].ending

    @property
    def radix(self) -> int:
        """Numbers are decimal."""
        return 10

    def question(self, problems_NP: Ints) -> Ints:
        """`?x=A+B;`."""
        a_NW, b_NW = (numerals(column_N, self.width) for column_N in problems_NP.T)
        return spell(self.alphabet, "?x=", a_NW, "+", b_NW, ";")

    def answer(self, problems_NP: Ints) -> Ints:
        """The workings, `x==S` and the ending."""
        sum_NW = numerals(problems_NP.sum(axis=1), numeral_length(2 * self.largest))
        return spell(self.alphabet, " ", self._workings(problems_NP), " x==", sum_NW, self.ending)

    def judge(self, question: str, written: str) -> bool:
        """Whether the text after the last `x==` is the sum, however right or wrong the workings are."""
        a, b = question[3:-1].split("+")
        return written.rpartition("x==")[1:] == ("x==", str(int(a) + int(b)))

    def _workings(self, problems_NP: Ints) -> Ints:
        """The workings, [N, W]: those of all places are written at once, then those of leading zeros left out."""
        powers_D = 10 ** np.arange(self.width)
        a_ND, b_ND = (column_N[:, None] for column_N in problems_NP.T)
        carries_ND = (a_ND % powers_D + b_ND % powers_D) // powers_D
        a, b, carry = (x.reshape(-1, 1) for x in (a_ND // powers_D % 10, b_ND // powers_D % 10, carries_ND))
        place = np.tile(np.arange(self.width), len(problems_NP))[:, None]
        joiner, total = _STYLES[self.workings].joiner, numerals((a + b + carry)[:, 0], 2)
        term = ("e", place, "+")
        text = spell(self.alphabet, joiner, a, *term, b, *term, carry, "e", place, "==", total, "e", place)
        is_written_ND = (np.maximum(a_ND, b_ND) >= powers_D) | (powers_D == 1)
        text_NW = np.where(is_written_ND.reshape(-1, 1), text, ABSENT).reshape(len(problems_NP), -1)
        return text_NW[:, len(joiner) :]

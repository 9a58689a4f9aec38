"""The rest of a string from an index on, problems packed one after the other: `?s='dyjeofuxvejmg'; s[8:]=='vejmg'#`.

The string's length is uniform in shortest, ..., longest, its letters uniform in a-z, and the index uniform among those
that are at least first_index and leave at least shortest_suffix letters. Every character counts, the random ones of the
question too. (The published experiment gives neither lengths nor indexes; the defaults are this project's.)

Shape suffixes: N problems, L letters, P integers of a problem (its letters and the index), W columns of text.
"""

from dataclasses import dataclass
from string import ascii_lowercase, digits
from typing import final

import numpy as np

from ablate.tasks.base import Ints, require_at_least
from ablate.tasks.grids import cut, numeral_length, numerals, spell
from ablate.tasks.packed import PackedTask
from ablate.tasks.splits import ABSENT


@final
@dataclass(frozen=True, kw_only=True)
class SubstringByIndex(PackedTask):
    """Sequences of seq_len + 1 characters: inputs are all but the last, targets all but the first.

    With seq_len=60, shortest=4, longest=12, first_index=1, shortest_suffix=2:

        inputs   ?s='babdzeqtgh'; s[2:]=='bdzeqtgh'#?s='zexuvdkqmrr'; s[7:]==
        targets  s='babdzeqtgh'; s[2:]=='bdzeqtgh'#?s='zexuvdkqmrr'; s[7:]=='

    Problems are told apart by their strings, so a held-out string is not trained on at any index.

    Raises ValueError naming the key when no string has an index to ask for, or the longest problem does not fit.
    """

    alphabet = digits + ascii_lowercase + "?='; []:#"
    ending = "#"
    counts_questions = True

    shortest: int
    longest: int
    first_index: int
    shortest_suffix: int

    def __post_init__(self) -> None:
        """Judge the parameters."""
        require_at_least("first_index", self.first_index, 0, "indexes count from 0")
        require_at_least("shortest_suffix", self.shortest_suffix, 0, "a suffix may be empty")
        smallest = max(1, self.first_index + self.shortest_suffix)
        require_at_least("shortest", self.shortest, smallest, "every string needs an index to ask for")
        require_at_least("longest", self.longest, self.shortest, "task.shortest is not above it")
        super().__post_init__()

    @property
    def problems(self) -> int:
        """How many strings there are."""
        return sum(26**length for length in range(self.shortest, self.longest + 1))

    def smallest(self) -> Ints:
        """The shortest string with its last index: a larger index adds a digit at most, a smaller one a letter."""
        letters_1L = cut(np.full((1, self.longest), self.alphabet.index("a")), np.array([self.shortest]))
        return np.column_stack([letters_1L, [self.shortest - self.shortest_suffix]])

    def propose(self, generator: np.random.Generator, count: int) -> Ints:
        """Draw strings and indexes: [N, longest + 1], the index last."""
        lengths_N = generator.integers(self.shortest, self.longest + 1, size=count)
        letters_NL = generator.integers(26, size=(count, self.longest)) + self.alphabet.index("a")
        indexes_N = generator.integers(self.first_index, lengths_N - self.shortest_suffix + 1)
        return np.column_stack([cut(letters_NL, lengths_N), indexes_N])

    def identity(self, problems_NP: Ints) -> Ints:
        """The string."""
        return problems_NP[:, :-1]

    def question(self, problems_NP: Ints) -> Ints:
        """`?s='...'; s[8:]==`."""
        index_NW = numerals(problems_NP[:, -1], numeral_length(self.longest))
        return spell(self.alphabet, "?s='", problems_NP[:, :-1], "'; s[", index_NW, ":]==")

    def answer(self, problems_NP: Ints) -> Ints:
        """The suffix in quotation marks, and `#`."""
        letters_NL, index_N1 = problems_NP[:, :-1], problems_NP[:, -1:]
        suffix_NL = np.where(np.arange(self.longest) >= index_N1, letters_NL, ABSENT)
        return spell(self.alphabet, "'", suffix_NL, "'", self.ending)

    def judge(self, question: str, written: str) -> bool:
        """Whether it is the suffix, in quotation marks."""
        string, index = question[4:].removesuffix(":]==").split("'; s[")
        return written == f"'{string[int(index) :]}'"

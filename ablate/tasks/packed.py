"""Tasks whose sequences are text problems packed one after the other: what addition, multiplication and
substring_by_index share. A subclass says which problems there are and how a question and its answer are written.

Shape suffixes: N problems, P integers of a problem, W columns of text, B sequences.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from ablate.tasks.base import Batch, Bools, Ints, Split, decode, require_at_least, to_batch, until_stop
from ablate.tasks.grids import pack, texts
from ablate.tasks.splits import ONE_IN, draw, require_enough


@dataclass(frozen=True, kw_only=True)
class PackedTask(ABC):
    """Sequences that start with a problem, are filled with problems, and cut the last one off.

    Raises ValueError when the longest problem does not fit, or there are too few problems to hold some out.
    """

    counts_questions: ClassVar[bool]
    """Whether the characters of questions are targets too."""

    seq_len: int

    def __post_init__(self) -> None:
        """Judge seq_len; a subclass judges its own parameters first."""
        longest = self._text(self.smallest())[0].shape[1]
        require_at_least("seq_len", self.seq_len, longest - 1, "the longest problem must fit")
        require_enough(self.problems, "larger problems")

    @property
    @abstractmethod
    def alphabet(self) -> str:
        """The characters that token ids 0, 1, ... stand for."""

    @property
    @abstractmethod
    def ending(self) -> str:
        """The character that ends each problem."""

    @property
    @abstractmethod
    def problems(self) -> int:
        """How many different problems there are."""

    @abstractmethod
    def smallest(self) -> Ints:
        """A problem with the shortest text, [1, P]."""

    @abstractmethod
    def propose(self, generator: np.random.Generator, count: int) -> Ints:
        """Draw problems of either split, [N, P]."""

    @abstractmethod
    def question(self, problems_NP: Ints) -> Ints:
        """The text of each problem up to where its answer starts, [N, W]."""

    @abstractmethod
    def answer(self, problems_NP: Ints) -> Ints:
        """The rest of the text, the ending included, [N, W]."""

    @abstractmethod
    def judge(self, question: str, written: str) -> bool:
        """Whether `written`, without its ending, answers the question."""

    def identity(self, problems_NP: Ints) -> Ints:
        """What tells problems apart when they are held out."""
        return problems_NP

    @property
    def held_out(self) -> int:
        """About how many problems only evaluation shows."""
        return self.problems // ONE_IN

    @property
    def stop(self) -> int:
        """The token that ends an answer."""
        return self.alphabet.index(self.ending)

    @property
    def most_tokens(self) -> int:
        """The columns of an answer."""
        return int(self.answer(self.smallest()).shape[1])

    def with_length(self, seq_len: int) -> Self:
        """The same problems, more or fewer of them in a sequence."""
        return replace(self, seq_len=seq_len)

    def batch(self, generator: np.random.Generator, size: int, split: Split = "train") -> Batch:
        """Draw `size` sequences: inputs and targets, int64 of shape [size, seq_len]."""
        grid_NW, counted_W = self._text(self._draw(generator, size * self._most_problems, split))
        return to_batch(*pack(grid_NW, counted_W, size, self.seq_len + 1))

    def prompts(self, generator: np.random.Generator, size: int) -> list[list[int]]:
        """Draw `size` questions from the problems that are held out."""
        return texts(self.question(self._draw(generator, size, "eval")))

    def is_right(self, prompt: Sequence[int], generated: Sequence[int]) -> bool:
        """Judge what was generated after a prompt, up to the first stop token; without one it is wrong."""
        written = until_stop(generated, self.stop)
        return written is not None and self.judge(decode(self.alphabet, prompt), decode(self.alphabet, written))

    def _draw(self, generator: np.random.Generator, count: int, split: Split) -> Ints:
        return draw(lambda n: self.propose(generator, n), count, split, self.identity)

    def _text(self, problems_NP: Ints) -> tuple[Ints, Bools]:
        """Question and answer side by side, and which columns count."""
        question_NW, answer_NW = self.question(problems_NP), self.answer(problems_NP)
        grid_NW = np.concatenate([question_NW, answer_NW], axis=1)
        return grid_NW, np.arange(grid_NW.shape[1]) >= (0 if self.counts_questions else question_NW.shape[1])

    @cached_property
    def _most_problems(self) -> int:
        """How many problems fill a sequence when all are as short as can be."""
        return -(-(self.seq_len + 1) // len(texts(self._text(self.smallest())[0])[0]))

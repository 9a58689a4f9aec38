"""Tasks of one source and one answer to a sequence: `source>answer#`, filled up with `#`.

The source's length is uniform in shortest, ..., longest, where longest is the most that leaves room for the answer. The
answer and the first `#` count. What the answer is, and over which symbols, says a subclass.

Shape suffixes: N sources, L symbols of a source, M of an answer, W tokens (one more than positions).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ablate.tasks.base import Batch, Ints, Split, require_between, to_batch, until_stop
from ablate.tasks.grids import cut, pack, spell, texts
from ablate.tasks.splits import ONE_IN, draw, require_enough
from ablate.tasks.symbols import require_symbols, symbols


@dataclass(frozen=True, kw_only=True)
class Transduction(ABC):
    """Raises ValueError when seq_len has no room for a source of `shortest` symbols, or for too few different ones."""

    seq_len: int
    shortest: int

    def __post_init__(self) -> None:
        """Judge the parameters; a subclass judges its own first."""
        if self.longest < 1:
            raise ValueError(f"task.seq_len={self.seq_len}: has no room for a source and its answer; use a larger one")
        require_between("shortest", self.shortest, 1, self.longest, f"what fits in task.seq_len={self.seq_len}")
        require_enough(self._sources, "a larger task.seq_len")

    @property
    @abstractmethod
    def letters(self) -> str:
        """The symbols that sources are made of."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """The most symbols of a source in a sequence of seq_len + 1 tokens."""

    @abstractmethod
    def answer(self, sources_NL: Ints) -> Ints:
        """The answer to each source, [N, M]; ABSENT where source or answer is shorter than the row."""

    def propose(self, generator: np.random.Generator, count: int) -> Ints:
        """Draw symbols of sources, [N, longest]: independent and uniform, unless a subclass says otherwise."""
        return generator.integers(len(self.letters), size=(count, self.longest))

    def number(self, length: int) -> int:
        """How many different sources of that length there are."""
        return int(len(self.letters) ** length)

    @property
    def alphabet(self) -> str:
        """The symbols, `>` and `#`."""
        return self.letters + ">#"

    @property
    def held_out(self) -> int:
        """About how many sources only evaluation shows."""
        return self._sources // ONE_IN

    @property
    def stop(self) -> int:
        """The token of `#`."""
        return len(self.letters) + 1

    @property
    def most_tokens(self) -> int:
        """The length of the longest answer, `#` included."""
        return int(self.answer(np.zeros((1, self.longest), np.int64)).shape[1]) + 1

    def with_length(self, seq_len: int) -> Self:
        """The same task; where seq_len is larger, with sources longer than any of this task."""
        longer = replace(self, seq_len=seq_len)
        if seq_len <= self.seq_len:
            return longer
        if longer.longest == self.longest:
            raise ValueError(
                f"seq_len={seq_len}: the sources that fit, up to {self.longest} symbols, are those that fit "
                f"task.seq_len={self.seq_len}; use a larger one"
            )
        return replace(longer, shortest=self.longest + 1)

    def batch(self, generator: np.random.Generator, size: int, split: Split = "train") -> Batch:
        """Draw `size` sequences: inputs and targets, int64 of shape [size, seq_len]."""
        sources_NL = self._draw(generator, size, split)
        answers_NM = self.answer(sources_NL)
        grid_NW = spell(self.alphabet, sources_NL, ">", answers_NM, "#" * (self.seq_len + 1))
        first = sources_NL.shape[1] + 1
        columns_W = np.arange(grid_NW.shape[1])
        counted_W = (columns_W >= first) & (columns_W <= first + answers_NM.shape[1])
        return to_batch(*pack(grid_NW, counted_W, size, self.seq_len + 1))

    def prompts(self, generator: np.random.Generator, size: int) -> list[list[int]]:
        """Held-out sources, each followed by `>`."""
        return texts(spell(self.alphabet, self._draw(generator, size, "eval"), ">"))

    def is_right(self, prompt: Sequence[int], generated: Sequence[int]) -> bool:
        """Whether what stands before the first `#` is the whole answer."""
        return until_stop(generated, self.stop) == texts(self.answer(np.array([prompt[:-1]])))[0]

    def _draw(self, generator: np.random.Generator, count: int, split: Split) -> Ints:
        def propose(n: int) -> Ints:
            lengths_N = generator.integers(self.shortest, self.longest + 1, size=n)
            return cut(self.propose(generator, n), lengths_N)

        return draw(propose, count, split)

    @property
    def _sources(self) -> int:
        return sum(self.number(length) for length in range(self.shortest, self.longest + 1))


@dataclass(frozen=True, kw_only=True)
class OfSymbols(Transduction):
    """A source of symbols that mean nothing by themselves, and an answer as long as the source.

    Raises ValueError also when `symbols` is not in 2, ..., 20000.
    """

    symbols: int

    def __post_init__(self) -> None:
        """Judge the parameters."""
        require_symbols("symbols", self.symbols)
        super().__post_init__()

    @property
    def letters(self) -> str:
        """As many as `symbols` says."""
        return symbols(self.symbols)

    @property
    def longest(self) -> int:
        """Source, `>`, as much again and `#`."""
        return (self.seq_len - 1) // 2

"""Copy a source in which no symbol comes twice, so that each symbol tells what follows it.

The easy one of the two copy tasks of Zhou et al. 2023 (arXiv:2310.16028), with 150 symbols there; see repeat_copy.
"""

from dataclasses import dataclass
from math import perm
from typing import final

import numpy as np

from ablate.tasks.base import Ints
from ablate.tasks.transduction import OfSymbols


@final
@dataclass(frozen=True, kw_only=True)
class UniqueCopy(OfSymbols):
    """Sequences of seq_len + 1 tokens: inputs are all but the last, targets all but the first.

    With seq_len=15, shortest=1, symbols=26, a target where it counts and a dot where it is ignored:

        inputs   xkcht>xkcht####
        targets  .....xkcht#....

    Raises ValueError naming the key when nothing fits or symbols is not in 2, ..., 20000.
    """

    @property
    def longest(self) -> int:
        """Source, `>`, as much again and `#`; no more than there are symbols."""
        return min(super().longest, self.symbols)

    def propose(self, generator: np.random.Generator, count: int) -> Ints:
        """Draw the first `longest` symbols of a random order of all, [N, longest]."""
        all_NS = np.tile(np.arange(self.symbols), (count, 1))
        return generator.permuted(all_NS, axis=1)[:, : self.longest]

    def number(self, length: int) -> int:
        """How many different sources of that length there are."""
        return perm(self.symbols, length)

    def answer(self, sources_NL: Ints) -> Ints:
        """The source itself."""
        return sources_NL

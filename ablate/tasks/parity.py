"""Say whether a source of bits has an odd number of ones: `0110>0#` (Hahn 2020, arXiv:1906.06755, and many since)."""

from dataclasses import dataclass
from typing import final

from ablate.tasks.base import Ints
from ablate.tasks.transduction import Transduction


@final
@dataclass(frozen=True, kw_only=True)
class Parity(Transduction):
    """Sequences of seq_len + 1 tokens: inputs are all but the last, targets all but the first.

    With seq_len=12, shortest=1, a target where it counts and a dot where it is ignored:

        inputs   0010000>1###
        targets  .......1#...

    Half of the counted targets are `#`, which is easy: an accuracy of .75 is what guessing the parity gives.

    Raises ValueError naming the key when nothing fits.
    """

    letters = "01"

    @property
    def longest(self) -> int:
        """Source, `>`, one bit and `#`."""
        return self.seq_len - 2

    def answer(self, sources_NL: Ints) -> Ints:
        """The number of ones modulo 2."""
        ones_N1: Ints = (sources_NL == 1).sum(axis=1, keepdims=True)
        return ones_N1 % 2

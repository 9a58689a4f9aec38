"""Copy a source in which symbols come again and again, so that a symbol does not tell what follows it.

The hard one of the two copy tasks of Zhou et al. 2023 (arXiv:2310.16028), with two symbols there; see unique_copy.
"""

from dataclasses import dataclass
from typing import final

from ablate.tasks.base import Ints
from ablate.tasks.transduction import OfSymbols


@final
@dataclass(frozen=True, kw_only=True)
class RepeatCopy(OfSymbols):
    """Sequences of seq_len + 1 tokens: inputs are all but the last, targets all but the first.

    With seq_len=15, shortest=1, symbols=2, a target where it counts and a dot where it is ignored:

        inputs   aababb>aababb##
        targets  ......aababb#..

    Raises ValueError naming the key when nothing fits or symbols is not in 2, ..., 20000.
    """

    def answer(self, sources_NL: Ints) -> Ints:
        """The source itself."""
        return sources_NL

"""Sort a source: its symbols in the order of the alphabet, repeated as often as they come.

The order is that of token ids, which a model has to learn (a task of Kazemnejad et al. 2023, arXiv:2305.19466).
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from ablate.tasks.base import Ints
from ablate.tasks.splits import ABSENT
from ablate.tasks.transduction import OfSymbols


@final
@dataclass(frozen=True, kw_only=True)
class Sort(OfSymbols):
    """Sequences of seq_len + 1 tokens: inputs are all but the last, targets all but the first.

    With seq_len=15, shortest=1, symbols=26, a target where it counts and a dot where it is ignored:

        inputs   hjokd>dhjko####
        targets  .....dhjko#....

    Raises ValueError naming the key when nothing fits or symbols is not in 2, ..., 20000.
    """

    def answer(self, sources_NL: Ints) -> Ints:
        """The symbols in order."""
        missing = len(self.letters)
        ordered_NL = np.sort(np.where(sources_NL == ABSENT, missing, sources_NL), axis=1)
        return np.where(ordered_NL == missing, ABSENT, ordered_NL)

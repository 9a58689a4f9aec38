"""Reverse a source: its last symbol first (a task of Kazemnejad et al. 2023, arXiv:2305.19466)."""

from dataclasses import dataclass
from typing import final

import numpy as np

from ablate.tasks.base import Ints
from ablate.tasks.transduction import OfSymbols


@final
@dataclass(frozen=True, kw_only=True)
class Reverse(OfSymbols):
    """Sequences of seq_len + 1 tokens: inputs are all but the last, targets all but the first.

    With seq_len=15, shortest=1, symbols=26, a target where it counts and a dot where it is ignored:

        inputs   hjokd>dkojh####
        targets  .....dkojh#....

    Raises ValueError naming the key when nothing fits or symbols is not in 2, ..., 20000.
    """

    def answer(self, sources_NL: Ints) -> Ints:
        """The symbols from last to first."""
        return np.ascontiguousarray(sources_NL[:, ::-1])

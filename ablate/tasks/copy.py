"""Copy a code from a random offset on, and from its start when its end is reached: a cyclic shift (`01>`).

A sequence is a code of n = (seq_len + 2) // 2 random bits, `>`, and the code rotated by the offset, as far as it fits.
All of the rotated part counts. Its first letters cannot be known: some log2(n) of them say which offset it is.

Shape suffixes: N sequences, L letters of a code.
"""

from dataclasses import dataclass, replace
from typing import Literal, Self, final

import numpy as np

from ablate.tasks.base import Batch, Split, require_at_least, require_choice, to_batch
from ablate.tasks.grids import spell
from ablate.tasks.splits import ONE_IN, draw


@final
@dataclass(frozen=True, kw_only=True)
class Copy:
    """Sequences of seq_len + 1 tokens: inputs are all but the last, targets all but the first.

    With seq_len=24, offsets=uniform, a target where it counts and a dot where it is ignored:

        inputs   1101011010001>0101101000
        targets  .............01011010001

    `offsets` are those that a rotation may have: `uniform` is 0, ..., n - 1; `legacy` leaves the last one out, as the
    reference code does. Problems are told apart by their code, so a held-out code is not trained on at any offset.

    Raises ValueError naming the key when seq_len is below 12: 128 codes are the fewest of which some are held out.
    """

    alphabet = "01>"

    seq_len: int
    offsets: Literal["uniform", "legacy"]

    def __post_init__(self) -> None:
        """Judge the parameters."""
        require_choice("offsets", self.offsets, ("uniform", "legacy"))
        require_at_least("seq_len", self.seq_len, 12, "shorter codes are too few to hold some out for evaluation")

    @property
    def held_out(self) -> int:
        """About how many codes only evaluation shows."""
        return int(2**self._letters) // ONE_IN

    def with_length(self, seq_len: int) -> Self:
        """The same task with longer or shorter codes."""
        return replace(self, seq_len=seq_len)

    def batch(self, generator: np.random.Generator, size: int, split: Split = "train") -> Batch:
        """Draw `size` sequences: inputs and targets, int64 of shape [size, seq_len]."""
        codes_NL = draw(lambda n: generator.integers(2, size=(n, self._letters)), size, split)
        offsets_N1 = generator.integers(self._letters - (self.offsets == "legacy"), size=(size, 1))
        rotated_NL = np.take_along_axis(codes_NL, (np.arange(self._letters) + offsets_N1) % self._letters, axis=1)
        tokens_NW = spell(self.alphabet, codes_NL, ">", rotated_NL)[:, : self.seq_len + 1]
        return to_batch(tokens_NW, np.broadcast_to(np.arange(self.seq_len + 1) > self._letters, tokens_NW.shape))

    @property
    def _letters(self) -> int:
        return (self.seq_len + 2) // 2

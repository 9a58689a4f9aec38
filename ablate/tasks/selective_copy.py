"""Copy the items scattered among blanks, in order (Gu & Dao 2023, Mamba, arXiv:2312.00752, section 4.1.1).

A sequence is a stretch of blanks `_` with `items` random symbols at random places, `>`, and the symbols alone. The copy
counts. (In the paper: 4,096 tokens, 16 items, a vocabulary of 16.)

Shape suffixes: N sequences, K items, S places of the stretch.
"""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from ablate.tasks.base import Batch, Split, require_at_least, to_batch
from ablate.tasks.grids import spell
from ablate.tasks.splits import ONE_IN, draw, require_enough
from ablate.tasks.symbols import require_symbols, symbols


@final
@dataclass(frozen=True, kw_only=True)
class SelectiveCopy:
    """Sequences of seq_len + 1 tokens: inputs are all but the last, targets all but the first.

    With seq_len=24, items=6, symbols=14, a target where it counts and a dot where it is ignored:

        inputs   _j__l__al___g____h>jlalg
        targets  ..................jlalgh

    Problems are told apart by their items in order, so held-out items are not trained on at any places.

    Raises ValueError naming the key when the items do not fit, are too few to hold some out, or symbols is not in 2,
    ..., 20000.
    """

    seq_len: int
    items: int
    symbols: int

    def __post_init__(self) -> None:
        """Judge the parameters."""
        require_symbols("symbols", self.symbols)
        require_at_least("items", self.items, 1, "something must be copied")
        require_at_least("seq_len", self.seq_len, 2 * self.items, "the items, `>` and the items again must fit")
        require_enough(self.symbols**self.items, "larger task.items or task.symbols")

    @property
    def alphabet(self) -> str:
        """The symbols, `_` and `>`."""
        return symbols(self.symbols) + "_>"

    @property
    def held_out(self) -> int:
        """About how many lists of items only evaluation shows."""
        return int(self.symbols**self.items) // ONE_IN

    def with_length(self, seq_len: int) -> Self:
        """The same items among more or fewer blanks."""
        return replace(self, seq_len=seq_len)

    def batch(self, generator: np.random.Generator, size: int, split: Split = "train") -> Batch:
        """Draw `size` sequences: inputs and targets, int64 of shape [size, seq_len]."""
        items_NK = draw(lambda n: generator.integers(self.symbols, size=(n, self.items)), size, split)
        stretch_NS = np.full((size, self.seq_len - self.items), self.symbols)
        places_NK = np.sort(generator.random(stretch_NS.shape).argsort(axis=1)[:, : self.items], axis=1)
        np.put_along_axis(stretch_NS, places_NK, items_NK, axis=1)
        tokens_NW = spell(self.alphabet, stretch_NS, ">", items_NK)
        return to_batch(tokens_NW, np.broadcast_to(np.arange(self.seq_len + 1) > stretch_NS.shape[1], tokens_NW.shape))

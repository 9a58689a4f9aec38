"""Multi-query associative recall (Arora et al. 2023, Zoology, arXiv:2312.04927): what was this key's value?

A sequence starts with `pairs` different keys, each followed by a random value. Then each key comes once more, followed
by its value, at a slot of two tokens; the other slots are blank (`_`). That second value counts. Slots are
drawn without replacement, the j-th of them with weight j ** (power - 1), so that small powers ask soon, as in
natural text. (In the paper: 4,096 keys and as many values, power 0.01, 64 tokens and 4 pairs up to 512 and 64.)

Shape suffixes: N sequences, K pairs, S slots.
"""

from dataclasses import dataclass, replace
from math import comb, inf
from typing import Self, final

import numpy as np

from ablate.tasks.base import Batch, Ints, Split, require_at_least, require_between, to_batch
from ablate.tasks.splits import ONE_IN, draw, require_enough
from ablate.tasks.symbols import MOST, require_symbols, symbols


@final
@dataclass(frozen=True, kw_only=True)
class MQAR:
    """Sequences of seq_len + 1 tokens: inputs are all but the last, targets all but the first.

    With seq_len=24, pairs=3, keys=13, values=13, power=0.01 (keys are a-m, values n-z), a target where it counts and a
    dot where it is ignored:

        inputs   inhwexexhw____________in
        targets  ......x.w.............n.

    Problems are told apart by their set of pairs, whatever its order and the slots.

    Raises ValueError naming the key when the pairs do not fit twice, there are fewer keys than pairs, or power is not
    above 0.
    """

    seq_len: int
    pairs: int
    keys: int
    values: int
    power: float

    def __post_init__(self) -> None:
        """Judge the parameters."""
        require_symbols("values", self.values)
        require_symbols("keys", self.keys, 1)
        require_between("keys", self.keys, 1, MOST - self.values, "keys and values need a character each")
        require_between("pairs", self.pairs, 1, self.keys, "every pair has a key of its own")
        require_at_least("seq_len", self.seq_len, 4 * self.pairs - 1, "all pairs must fit twice")
        if not 0 < self.power < inf:
            raise ValueError(f"task.power={self.power}: must be a number above 0; use task.power=0.01")
        require_enough(self._sets, "larger task.keys or task.values")

    @property
    def alphabet(self) -> str:
        """Keys, values and `_`."""
        return symbols(self.keys + self.values) + "_"

    @property
    def held_out(self) -> int:
        """About how many sets of pairs only evaluation shows."""
        return self._sets // ONE_IN

    def with_length(self, seq_len: int) -> Self:
        """As many pairs, asked for sooner or later."""
        return replace(self, seq_len=seq_len)

    def batch(self, generator: np.random.Generator, size: int, split: Split = "train") -> Batch:
        """Draw `size` sequences: inputs and targets, int64 of shape [size, seq_len]."""
        sets_NK = draw(lambda n: self._sets_of_pairs(generator, n), size, split)
        pairs_NK2 = self._tokens(generator.permuted(sets_NK, axis=1))
        slots_NS2 = np.full((size, (self.seq_len + 1) // 2 - self.pairs, 2), self.keys + self.values)
        asked_NK = self._slots(generator, slots_NS2.shape[:2])
        np.put_along_axis(slots_NS2, asked_NK[:, :, None], pairs_NK2, axis=1)
        rest_N = np.full((size, (self.seq_len + 1) % 2), self.keys + self.values)
        tokens_NW = np.concatenate([pairs_NK2.reshape(size, -1), slots_NS2.reshape(size, -1), rest_N], axis=1)
        columns_W = np.arange(self.seq_len + 1)
        is_asked_NW = (columns_W >= 2 * self.pairs) & (columns_W % 2 == 1) & (tokens_NW < self.keys + self.values)
        return to_batch(tokens_NW, is_asked_NW)

    def _sets_of_pairs(self, generator: np.random.Generator, count: int) -> Ints:
        """Draw sets of pairs in the order of their keys, [N, K]; a pair is one number, key * values + value."""
        keys_NK = generator.random((count, self.keys)).argpartition(self.pairs - 1, axis=1)[:, : self.pairs]
        values_NK = generator.integers(self.values, size=keys_NK.shape)
        return np.sort(keys_NK * self.values + values_NK, axis=1)

    def _tokens(self, sets_NK: Ints) -> Ints:
        """Key and value of each pair, [N, K, 2]."""
        return np.stack([sets_NK // self.values, sets_NK % self.values + self.keys], axis=2)

    def _slots(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Ints:
        """The slot of each pair: the smallest of exponential variables with the weights as rates (Efraimidis 2006)."""
        weights_S = np.arange(1, shape[1] + 1) ** (self.power - 1)
        arrivals_NS = generator.exponential(size=shape) / weights_S
        return arrivals_NS.argsort(axis=1)[:, : self.pairs]

    @property
    def _sets(self) -> int:
        return int(comb(self.keys, self.pairs) * self.values**self.pairs)

"""What a model remembers of the tokens it has read, so that the next one costs one position and not all of them.

Shape suffixes: B sequences, H heads, T new positions, S positions so far, D head width.
"""

from typing import NamedTuple

import torch


class KeysValues(NamedTuple):
    """Keys and values, [B, H, S, D] each, as a scheme stores them."""

    keys: torch.Tensor
    values: torch.Tensor


class LayerCache:
    """Keys and values of one layer at positions 0, ..., length - 1.

    All sequences of a batch are at the same position. Room is made for the next power of two positions, so that taking
    in positions one by one copies each a bounded number of times. Holds no gradients: to be used without them.
    """

    def __init__(self) -> None:
        self.length = 0
        self._room: KeysValues | None = None

    def extend(self, new: KeysValues) -> KeysValues:
        """Take in the next T positions; returns all positions so far."""
        begin, self.length = self.length, self.length + new.keys.shape[2]
        if self._room is None or self._room.keys.shape[2] < self.length:
            self._room = KeysValues(*(self._larger(new[i], self._room and self._room[i], begin) for i in range(2)))
        for room_BHSD, new_BHTD in zip(self._room, new, strict=True):
            room_BHSD[:, :, begin : self.length] = new_BHTD
        return KeysValues(*(room_BHSD[:, :, : self.length] for room_BHSD in self._room))

    def _larger(self, new_BHTD: torch.Tensor, held_BHSD: torch.Tensor | None, begin: int) -> torch.Tensor:
        """Room for the next power of two positions, what is held copied into it."""
        sequences, heads, _, width = new_BHTD.shape
        room_BHSD = new_BHTD.new_empty(sequences, heads, 1 << (self.length - 1).bit_length(), width)
        if held_BHSD is not None:
            room_BHSD[:, :, :begin] = held_BHSD[:, :, :begin]
        return room_BHSD


Cache = list[LayerCache]
"""The memory of a model, one entry a layer in order of depth; empty for a model that looks at the last token only."""

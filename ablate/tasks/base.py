"""What a task is to the rest of the house: a vocabulary and a source of batches, drawn from a generator it is given.

Shape suffixes: B sequences, T positions.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch

IGNORED = -1
"""The target of a position that does not count towards loss or accuracy."""


class Batch(NamedTuple):
    """Token ids to read and to predict, both int64 of shape [B, T]; targets hold IGNORED where none counts."""

    inputs_BT: torch.Tensor
    targets_BT: torch.Tensor


@runtime_checkable
class Task(Protocol):
    """A sequence task.

    A task's constructor takes keyword-only parameters, exactly those of its YAML, and raises ValueError naming the
    parameter and the rule when no sequence of that size could have a target.
    """

    @property
    def alphabet(self) -> str:
        """The characters that token ids 0, 1, ... stand for; its length is the vocabulary."""
        ...

    @property
    def seq_len(self) -> int:
        """The number of positions T of every batch."""
        ...

    def batch(self, generator: np.random.Generator, size: int) -> Batch:
        """Draw `size` sequences. The same generator state gives the same batch; no other randomness is used."""
        ...

"""What a position scheme and a model are to the rest of the house.

Shape suffixes: B sequences, H heads, T query positions, S key positions (S >= T), D head width, C model width,
V vocabulary.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import nn


class Scheme(nn.Module, abc.ABC):
    """How an attention layer knows positions. One instance per layer.

    A concrete scheme is final; its constructor takes `(width, heads, /)` from the model and keyword-only parameters
    from its YAML. Positions: the keys stand at start, ..., start + S - 1 and the queries are the last T of them.
    """

    @abc.abstractmethod
    def forward(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention with the scheme's positions; returns o_BHTD in the dtype of v."""

    def embed(self, x_BTC: torch.Tensor, *, start: int = 0) -> torch.Tensor:
        """Add positions to the token embeddings, for schemes that do it there; others return `x_BTC` unchanged."""
        return x_BTC

    def effective(self) -> Mapping[str, int | float | str]:
        """What the parameters came to, for the run's record (for example the rotated width)."""
        return {}


class SchemeFactory(Protocol):
    """A scheme with its keyword parameters filled in by the config."""

    def __call__(self, width: int, heads: int, /) -> Scheme:
        """Build the scheme of one layer."""
        ...


class Model(Protocol):
    """What training needs of a model: a `torch.nn.Module` with these."""

    def __call__(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        """Token ids [B, T] -> logits [B, T, V]."""
        ...

    def initialise(self, generator_for: Callable[[str], torch.Generator]) -> None:
        """Set every parameter from the generator of its name, so that models share what they have in common."""
        ...

    def effective(self) -> Mapping[str, int | float | str]:
        """What the parameters came to, for the run's record."""
        ...

"""What a position scheme and a model are to the rest of the house.

Shape suffixes: B sequences, H heads, T query positions, S key positions (S >= T), D head width, C model width,
V vocabulary.
"""

import abc
from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from ablate.models.cache import Cache, KeysValues


class Scheme(nn.Module, abc.ABC):
    """How an attention layer knows positions: one instance per layer, or one for all layers where `shared` is true.

    A concrete scheme is final; its constructor takes `(width, heads, /)` from the model and keyword-only parameters
    from its YAML. Positions: the keys stand at start, ..., start + S - 1 and the queries are the last T of them.
    `context` is the number of positions up to which a position stays what it is whatever comes after it, None for any
    number: text that is generated is read in pieces no longer than that.
    """

    shared: bool = False
    context: int | None = None

    def embed(self, x_BTC: torch.Tensor, *, start: int = 0) -> torch.Tensor:
        """Add positions to the token embeddings, for schemes that do it there; others return `x_BTC` unchanged."""
        return x_BTC

    def store(self, k_BHTD: torch.Tensor, v_BHTD: torch.Tensor, *, start: int = 0) -> KeysValues:
        """Keys and values at start, start + 1, ... as all later queries find them; unchanged unless overridden."""
        return KeysValues(k_BHTD, v_BHTD)

    @abc.abstractmethod
    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention to stored keys and values; returns o_BHTD in the dtype of v."""

    def forward(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention with the scheme's positions; returns o_BHTD in the dtype of v."""
        keys, values = self.store(k_BHSD, v_BHSD, start=start)
        return self.attend(q_BHTD, keys, values, start=start, dropout=dropout)

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


@runtime_checkable
class CachedModel(Protocol):
    """What generation needs of a model that remembers what it has read."""

    @property
    def context(self) -> int | None:
        """The most positions that may be read into one cache; None for any number."""
        ...

    def new_cache(self) -> Cache:
        """A memory of nothing."""
        ...

    def __call__(self, tokens_BT: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        """The tokens after those in the cache -> their logits [B, T, V]; the cache then holds them too."""
        ...

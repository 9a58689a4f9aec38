"""A single layer of attention between embedding and output: what heads alone can do. No feed-forward layer, no norm.

Shape suffixes: B sequences, T positions, C model width, V vocabulary.
"""

from collections.abc import Mapping
from typing import cast, final

import torch
from torch import nn

from ablate.models.base import Scheme, SchemeFactory
from ablate.models.cache import Cache, LayerCache
from ablate.models.initialisation import GeneratorFor, Init, check_init, initialise
from ablate.models.layers import Heads, check_dropout, check_heads, check_sizes


@final
class AttentionHeads(nn.Module):
    """Token ids [B, T] -> logits [B, T, V].

    The output layer reads the heads' outputs side by side; nothing is added to them. One head and several have equally
    many parameters. `dropout` applies to the attention weights. Raises ValueError when the sizes do not fit together.
    """

    def __init__(
        self, vocabulary: int, /, *, width: int, heads: int, dropout: float, init: Init, attention: SchemeFactory
    ) -> None:
        check_sizes(width=width, heads=heads)
        check_heads(width, heads)
        check_dropout(dropout)
        check_init(init)
        super().__init__()
        self.init: Init = init
        self.embedding = nn.Embedding(vocabulary, width)
        self.attention = Heads(width, heads, dropout, attention(width, heads))
        self.head = nn.Linear(width, vocabulary)

    @property
    def scheme(self) -> Scheme:
        """How the heads know positions."""
        return cast(Scheme, self.get_submodule("attention.scheme"))

    @property
    def context(self) -> int | None:
        """The most positions that may be read into one cache; None for any number."""
        return self.scheme.context

    def new_cache(self) -> Cache:
        """A memory of nothing."""
        return [LayerCache()]

    def forward(self, tokens_BT: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        """Logits [B, T, V] of the next token at every position; with a cache the tokens come after those in it."""
        memory = cache[0] if cache else None
        x_BTC = self.scheme.embed(self.embedding(tokens_BT), start=memory.length if memory else 0)
        return cast(torch.Tensor, self.head(self.attention(x_BTC, memory)))

    def initialise(self, generator_for: GeneratorFor) -> None:
        """Start every parameter by the model's rule."""
        initialise(self, generator_for, self.init)

    def effective(self) -> Mapping[str, int | float | str]:
        """What the scheme's parameters came to."""
        return self.scheme.effective()

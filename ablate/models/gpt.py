"""The decoder-only transformer. How it knows positions is left to a scheme (`ablate.models.attention`).

Tokens have a learned embedding, the feed-forward layers are ReLU, and there is no position embedding but what the
scheme adds. The layers themselves are in `ablate.models.layers`, how they start in `ablate.models.initialisation`.

Shape suffixes: B sequences, T positions, C model width, V vocabulary.
"""

from collections.abc import Mapping
from itertools import repeat
from typing import cast, final

import torch
from torch import nn

from ablate.models.base import Scheme, SchemeFactory
from ablate.models.cache import Cache, LayerCache
from ablate.models.initialisation import GeneratorFor, Init, check_init, initialise
from ablate.models.layers import (
    Attention,
    Block,
    Mask,
    Norm,
    check_choice,
    check_dropout,
    check_heads,
    check_sizes,
    schemes,
)


@final
class GPT(nn.Module):
    """Token ids [B, T] -> logits [B, T, V].

    `feed_forward` is the hidden width of the feed-forward layers as a multiple of `width`; `dropout` applies to the
    embedding, the attention weights and what every layer adds, and draws from torch's own generator; `tied` shares the
    matrix of the token embedding with the output layer; with `share_layers` every layer is the first one again, all
    with one set of weights. `norm` says where the layer norms stand (`ablate.models.layers.Block`); with `pre` one more
    comes before the output layer. `init` is the rule by which matrices start. With the `dropout_mask` `fixed` the same
    attention weights are dropped at every step and in every layer. Raises ValueError when sizes do not fit together.
    """

    def __init__(
        self,
        vocabulary: int,
        /,
        *,
        width: int,
        layers: int,
        heads: int,
        feed_forward: int,
        dropout: float,
        tied: bool,
        attention: SchemeFactory,
        share_layers: bool = False,
        norm: Norm = "pre",
        init: Init = "xavier",
        dropout_mask: Mask = "fresh",
    ) -> None:
        check_sizes(width=width, layers=layers, heads=heads, feed_forward=feed_forward)
        check_heads(width, heads)
        check_dropout(dropout)
        check_init(init)
        check_choice("norm", norm, Norm)
        check_choice("dropout_mask", dropout_mask, Mask)
        super().__init__()
        self.init: Init = init
        self.embedding = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)
        blocks = [
            Block(width, feed_forward * width, dropout, Attention(width, heads, dropout, scheme, dropout_mask), norm)
            for scheme in schemes(attention, width, heads, 1 if share_layers else layers)
        ]
        self.blocks = nn.ModuleList(blocks * layers if share_layers else blocks)
        self.norm = nn.LayerNorm(width) if norm == "pre" else nn.Identity()
        self.head = nn.Linear(width, vocabulary)
        if tied:
            self.head.weight = self.embedding.weight

    @property
    def scheme(self) -> Scheme:
        """The scheme of the first layer; all layers have the same settings."""
        return cast(Scheme, self.get_submodule("blocks.0.attention.scheme"))

    @property
    def context(self) -> int | None:
        """The most positions that may be read into one cache; None for any number."""
        return self.scheme.context

    def new_cache(self) -> Cache:
        """A memory of nothing, one entry a layer."""
        return [LayerCache() for _ in self.blocks]

    def forward(self, tokens_BT: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        """Logits [B, T, V] of the next token at every position; with a cache the tokens come after those in it."""
        start = cache[0].length if cache else 0
        x_BTC = self.dropout(self.scheme.embed(self.embedding(tokens_BT), start=start))
        for block, memory in zip(self.blocks, cache or repeat(None), strict=False):
            x_BTC = block(x_BTC, memory)
        return cast(torch.Tensor, self.head(self.norm(x_BTC)))

    def initialise(self, generator_for: GeneratorFor) -> None:
        """Start every parameter by the model's rule; a tied embedding is N(0, 1/width), being the output layer too."""
        initialise(self, generator_for, self.init)
        if self.head.weight is self.embedding.weight:
            with torch.no_grad():
                self.embedding.weight.mul_(self.embedding.embedding_dim**-0.5)

    def effective(self) -> Mapping[str, int | float | str]:
        """What the scheme's parameters came to."""
        return self.scheme.effective()

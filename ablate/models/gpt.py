"""The decoder-only transformer. How it knows positions is left to a scheme (`ablate.models.attention`).

Layer norm comes first in every block, the feed-forward layer is ReLU, tokens have a learned embedding, and there is no
position embedding but what the scheme adds.

Shape suffixes: B sequences, T positions, C model width, H heads, D head width, V vocabulary.
"""

from collections.abc import Callable, Mapping
from typing import cast, final

import torch
from torch import nn

from ablate.models.base import Scheme, SchemeFactory


class Projection(nn.Linear):
    """Three projections side by side, for queries, keys and values: one multiplication in place of three."""


class Attention(nn.Module):
    """Multi-head causal self-attention; queries, keys and values come from one projection."""

    def __init__(self, width: int, heads: int, dropout: float, scheme: Scheme) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.qkv = Projection(width, 3 * width)
        self.scheme = scheme
        self.out = nn.Linear(width, width)

    def forward(self, x_BTC: torch.Tensor) -> torch.Tensor:
        """x_BTC -> x_BTC."""
        q_BHTD, k_BHTD, v_BHTD = (self._split(y_BTC) for y_BTC in self.qkv(x_BTC).chunk(3, -1))
        o_BHTD = self.scheme(q_BHTD, k_BHTD, v_BHTD, dropout=self.dropout if self.training else 0.0)
        o_BTC: torch.Tensor = self.out(o_BHTD.transpose(1, 2).flatten(2))
        return o_BTC

    def _split(self, y_BTC: torch.Tensor) -> torch.Tensor:
        return y_BTC.view(*y_BTC.shape[:2], self.heads, -1).transpose(1, 2)


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, width: int, hidden: int, dropout: float, attention: Attention) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BTC: torch.Tensor) -> torch.Tensor:
        """x_BTC -> x_BTC."""
        x_BTC = x_BTC + self.dropout(self.attention(self.attention_norm(x_BTC)))
        update_BTC: torch.Tensor = self.dropout(self.feed_forward(self.feed_forward_norm(x_BTC)))
        return x_BTC + update_BTC


@final
class GPT(nn.Module):
    """Token ids [B, T] -> logits [B, T, V].

    `feed_forward` is the hidden width of the feed-forward layers as a multiple of `width`; `dropout` applies to the
    embedding, the attention weights and what every layer adds, and draws from torch's own generator; `tied` shares the
    matrix of the token embedding with the output layer. Raises ValueError when the sizes do not fit together.
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
    ) -> None:
        _check_sizes(width=width, layers=layers, heads=heads, feed_forward=feed_forward)
        _check_heads(width, heads)
        if not 0.0 <= dropout < 1.0:
            raise ValueError(f"model.dropout={dropout}: must be at least 0 and below 1")
        super().__init__()
        schemes = [attention(width, heads) for _ in range(layers)]
        self.embedding = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(
            *(Block(width, feed_forward * width, dropout, Attention(width, heads, dropout, s)) for s in schemes)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)
        if tied:
            self.head.weight = self.embedding.weight

    @property
    def scheme(self) -> Scheme:
        """The scheme of the first layer; all layers have the same settings."""
        return cast(Scheme, self.get_submodule("blocks.0.attention.scheme"))

    def forward(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        """Logits [B, T, V] of the next token at every position."""
        x_BTC = self.dropout(self.scheme.embed(self.embedding(tokens_BT)))
        return cast(torch.Tensor, self.head(self.norm(self.blocks(x_BTC))))

    def initialise(self, generator_for: Callable[[str], torch.Generator]) -> None:
        """Embedding N(0, 1), matrices Xavier-uniform, biases of linear layers U(±1/√fan in), norms 1 and 0.

        All but the matrices are torch's own defaults; a tied embedding is N(0, 1/width), since it is the output layer
        too. What else a scheme has (a vector) starts at 0. Each parameter draws from the generator of its own name, so
        its start does not depend on which others there are. Generators and parameters must be on one device. Source of
        the bound √(6 / (fan in + fan out)): Glorot and Bengio 2010.
        """
        names = {parameter: name for name, parameter in self.named_parameters()}
        for module in self.modules():
            for parameter in module.parameters(recurse=False):
                if parameter in names:  # a tied matrix once only
                    _initialise(module, parameter, generator_for(names.pop(parameter)))
        if self.head.weight is self.embedding.weight:
            with torch.no_grad():
                self.embedding.weight.mul_(self.embedding.embedding_dim**-0.5)

    def effective(self) -> Mapping[str, int | float | str]:
        """What the scheme's parameters came to."""
        return self.scheme.effective()


@torch.no_grad()
def _initialise(module: nn.Module, parameter: torch.Tensor, generator: torch.Generator) -> None:
    if isinstance(module, nn.Embedding):
        parameter.normal_(generator=generator)
    elif isinstance(module, nn.LayerNorm):
        parameter.fill_(1.0 if parameter is module.weight else 0.0)
    elif parameter.ndim >= 2:
        # Queries, keys and values lie in one matrix; each has the fans, and so the bound, of its own.
        for matrix in parameter.chunk(3 if isinstance(module, Projection) else 1):
            nn.init.xavier_uniform_(matrix, generator=generator)
    elif isinstance(module, nn.Linear):
        bound = module.in_features**-0.5
        parameter.uniform_(-bound, bound, generator=generator)
    else:
        parameter.zero_()


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"model.{name}={size}: must be at least 1")


def _check_heads(width: int, heads: int) -> None:
    if width % heads:
        below, above = width // heads * heads, (width // heads + 1) * heads
        nearest = f"{below} or {above}" if below else f"{above}"
        raise ValueError(
            f"model.width={width} is no multiple of model.heads={heads}: the nearest that are: model.width={nearest}"
        )

"""The layers that the models are built of: attention that leaves positions to a scheme, and a transformer block.

Shape suffixes: B sequences, T positions, C model width, H heads, D head width.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, get_args

import torch
from torch import nn

from ablate.models.base import Scheme, SchemeFactory
from ablate.models.cache import LayerCache

Norm = Literal["pre", "post"]
Mask = Literal["fresh", "fixed"]


class Projection(nn.Linear):
    """Three projections side by side, for queries, keys and values: one multiplication in place of three."""


class Heads(nn.Module):
    """Multi-head causal self-attention up to the heads' outputs, side by side; one projection gives q, k and v.

    With the mask `fixed` dropout drops the same attention weights at every step and in every layer.
    """

    def __init__(self, width: int, heads: int, dropout: float, scheme: Scheme, mask: Mask = "fresh") -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.fixed_mask = mask == "fixed"
        self.qkv = Projection(width, 3 * width)
        self.scheme = scheme

    def forward(self, x_BTC: torch.Tensor, cache: LayerCache | None = None) -> torch.Tensor:
        """x_BTC -> x_BTC; with a cache x holds the positions after those in it, and is taken in."""
        q_BHTD, k_BHTD, v_BHTD = (self._split(y_BTC) for y_BTC in self.qkv(x_BTC).chunk(3, -1))
        dropout = self.dropout if self.training else 0.0
        if cache is None:
            with self._draws(x_BTC.device):
                o_BHTD: torch.Tensor = self.scheme(q_BHTD, k_BHTD, v_BHTD, dropout=dropout)
        else:
            keys, values = cache.extend(self.scheme.store(k_BHTD, v_BHTD, start=cache.length))
            o_BHTD = self.scheme.attend(q_BHTD, keys, values, dropout=dropout)
        return o_BHTD.transpose(1, 2).flatten(2)

    def _draws(self, device: torch.device) -> AbstractContextManager[None]:
        return _same_draws(device) if self.fixed_mask and self.dropout and self.training else nullcontext()

    def _split(self, y_BTC: torch.Tensor) -> torch.Tensor:
        return y_BTC.view(*y_BTC.shape[:2], self.heads, -1).transpose(1, 2)


class Attention(Heads):
    """Multi-head causal self-attention with an output projection."""

    def __init__(self, width: int, heads: int, dropout: float, scheme: Scheme, mask: Mask = "fresh") -> None:
        super().__init__(width, heads, dropout, scheme, mask)
        self.out = nn.Linear(width, width)

    def forward(self, x_BTC: torch.Tensor, cache: LayerCache | None = None) -> torch.Tensor:
        """x_BTC -> x_BTC; with a cache x holds the positions after those in it, and is taken in."""
        o_BTC: torch.Tensor = self.out(super().forward(x_BTC, cache))
        return o_BTC


class Block(nn.Module):
    """Attention, then a ReLU feed-forward layer f, each added to what it reads.

    pre    x + f(norm(x))    the layers read what is normed; the sum stays as it is
    post   norm(x + f(x))    the sum is normed (Vaswani et al. 2017, arXiv:1706.03762)

    Dropout applies to what each layer adds.
    """

    def __init__(self, width: int, hidden: int, dropout: float, attention: Attention, norm: Norm) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm == "pre"

    def forward(self, x_BTC: torch.Tensor, cache: LayerCache | None = None) -> torch.Tensor:
        """x_BTC -> x_BTC; with a cache x holds the positions after those in it, and is taken in."""
        return self._pre(x_BTC, cache) if self.norm_first else self._post(x_BTC, cache)

    def _pre(self, x_BTC: torch.Tensor, cache: LayerCache | None) -> torch.Tensor:
        x_BTC = x_BTC + self.dropout(self.attention(self.attention_norm(x_BTC), cache))
        update_BTC: torch.Tensor = self.dropout(self.feed_forward(self.feed_forward_norm(x_BTC)))
        return x_BTC + update_BTC

    def _post(self, x_BTC: torch.Tensor, cache: LayerCache | None) -> torch.Tensor:
        x_BTC = self.attention_norm(x_BTC + self.dropout(self.attention(x_BTC, cache)))
        y_BTC: torch.Tensor = self.feed_forward_norm(x_BTC + self.dropout(self.feed_forward(x_BTC)))
        return y_BTC


@contextmanager
def _same_draws(device: torch.device) -> Iterator[None]:
    """Within, torch's own generators draw what they draw each time; after, they are where they were."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(0)
        if device.type == "cuda":
            torch.cuda.manual_seed(0)
        yield


def schemes(factory: SchemeFactory, width: int, heads: int, layers: int) -> list[Scheme]:
    """The scheme of each layer: one instance each, or the same for all where it is a shared one."""
    first = factory(width, heads)
    return [first, *(first if first.shared else factory(width, heads) for _ in range(layers - 1))]


def check_sizes(**sizes: int) -> None:
    """Raise ValueError naming the first size of a model that is below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"model.{name}={size}: must be at least 1")


def check_heads(width: int, heads: int) -> None:
    """Raise ValueError when heads do not divide the width, with the nearest widths that they do."""
    if width % heads:
        below, above = width // heads * heads, (width // heads + 1) * heads
        nearest = f"{below} or {above}" if below else f"{above}"
        raise ValueError(
            f"model.width={width} is no multiple of model.heads={heads}: the nearest that are: model.width={nearest}"
        )


def check_dropout(dropout: float) -> None:
    """Raise ValueError for a probability that no layer could be trained with."""
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"model.dropout={dropout}: must be at least 0 and below 1")


def check_choice(name: str, value: str, choices: Any) -> None:
    """Raise ValueError when a value is none of a Literal's."""
    if value not in get_args(choices):
        raise ValueError(f"model.{name}={value}: must be {' or '.join(get_args(choices))}")

"""The scheme `randomised`: sinusoidal positions drawn from a longer range while training, in order."""

from typing import final

import torch

from ablate.models.base import Scheme
from ablate.models.causal import causal_attention
from ablate.models.sinusoid import check_base, sinusoids


@final
class Randomised(Scheme):
    """Absolute positions whose order counts and not their values: a test sequence may be longer than all trained ones.

    x_t + p(n_t), with p of `ablate.models.sinusoid` and n_0 < n_1 < ... < n_{T-1} < `longest`:
    training     T of 0, ..., longest - 1 without replacement, all sets alike, sorted; for each sequence anew
    evaluation   n_t = floor((t + 1/2) · longest / max(length, T)): evenly spread

    and o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of q_m · k_i / √D

    x is the token embedding; q, k, v and o are vectors of width D, per sequence and head. `length` is the trained
    length: a sequence up to that long has the same positions however it goes on, a longer one is spread more densely,
    as draws of its length would be. The draw comes from torch's own generator, that is from the run's dropout stream.
    Source: Ruoss et al. 2023, arXiv:2305.16843, where sinusoids are one of the encodings, and positions are random in
    evaluation too. Raises ValueError for a `longest` below `length`, and for a sequence longer than `longest`.
    """

    shared = True

    def __init__(self, width: int, heads: int, /, *, longest: int, length: int, base: float) -> None:
        check_base(base)
        if length < 1:
            raise ValueError(f"model.attention.length={length}: must be at least 1")
        if longest < length:
            raise ValueError(f"model.attention.longest={longest}: must be at least model.attention.length={length}")
        super().__init__()
        self.context = length
        self._longest = longest
        self._base = base

    def embed(self, x_BTC: torch.Tensor, *, start: int = 0) -> torch.Tensor:
        """x_t + p(n_t); in evaluation for t = start, start + 1, ..."""
        end = start + x_BTC.shape[1]
        if end > self._longest:
            raise ValueError(
                f"model.attention.longest={self._longest}: a sequence has {end} positions; "
                f"use model.attention.longest={end} or more"
            )
        positions = self._drawn(x_BTC) if self.training else self._spread(start, end, x_BTC.device)
        return x_BTC + sinusoids(positions, x_BTC.shape[-1], self._base).to(x_BTC.dtype)

    def _drawn(self, x_BTC: torch.Tensor) -> torch.Tensor:
        """A sorted random set of positions for each sequence, [B, T]: those of the T largest of random numbers."""
        sequences, length, _ = x_BTC.shape
        order = torch.rand(sequences, self._longest, device=x_BTC.device)
        return order.topk(length).indices.sort().values

    def _spread(self, start: int, end: int, device: torch.device) -> torch.Tensor:
        assert self.context is not None
        twice = 2 * torch.arange(start, end, device=device) + 1
        return twice * self._longest // (2 * max(self.context, end))

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention; returns o_BHTD in the dtype of v."""
        return causal_attention(q_BHTD, k_BHSD, v_BHSD, dropout=dropout)

"""The scheme `sinusoidal`: a fixed vector of sines and cosines for each position, added to the token embedding."""

from typing import final

import torch

from ablate.models.base import Scheme
from ablate.models.causal import causal_attention
from ablate.models.sinusoid import check_base, sinusoids


@final
class Sinusoidal(Scheme):
    """Absolute positions, added once where the model begins.

    x_t + p_t, with p_t of `ablate.models.sinusoid`,
    and o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of q_m · k_i / √D

    x is the token embedding; q, k, v and o are vectors of width D, per sequence and head. Embeddings start N(0, 1), so
    p, whose mean square is 1/2, is added without the factor √C by which the paper raises its smaller embeddings.
    Source: Vaswani et al. 2017, arXiv:1706.03762. Raises ValueError for a base that is no positive number.
    """

    shared = True

    def __init__(self, width: int, heads: int, /, *, base: float) -> None:
        check_base(base)
        super().__init__()
        self._base = base

    def embed(self, x_BTC: torch.Tensor, *, start: int = 0) -> torch.Tensor:
        """x_t + p_t at positions t = start, start + 1, ..."""
        positions_T = torch.arange(start, start + x_BTC.shape[1], device=x_BTC.device)
        return x_BTC + sinusoids(positions_T, x_BTC.shape[-1], self._base).to(x_BTC.dtype)

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention; returns o_BHTD in the dtype of v."""
        return causal_attention(q_BHTD, k_BHSD, v_BHSD, dropout=dropout)

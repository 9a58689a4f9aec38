"""The scheme `alibi`: a penalty on the score that grows with distance, at a fixed slope for each head."""

from typing import final

import torch

from ablate.models.base import Scheme
from ablate.models.causal import biased_causal_attention, distances


@final
class Alibi(Scheme):
    """Attention with linear biases.

    o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of q_m · k_i / √D - s_h (m - i)

    q, k, v and o are vectors of width D, per sequence and head. H heads have the slopes s_h = 2^(-8h/H), h = 1, ..., H,
    when H is a power of two; else those of P heads, P the power of two below, and then every other one of 2P heads from
    the first on, until they are H. Source: Press et al. 2021, arXiv:2108.12409, and its code for other H.
    """

    shared = True

    def __init__(self, width: int, heads: int, /) -> None:
        super().__init__()
        self.slopes = slopes(heads)

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention, wherever the positions start; returns o_BHTD in the dtype of v."""
        slopes_H = torch.tensor(self.slopes, device=q_BHTD.device)
        bias_HTS = -slopes_H[:, None, None] * distances(q_BHTD, k_BHSD)
        return biased_causal_attention(q_BHTD, k_BHSD, v_BHSD, bias_HTS, dropout=dropout)


def slopes(heads: int) -> list[float]:
    """The slope of each head."""
    power = 1 << (heads.bit_length() - 1)
    return [*_geometric(power), *_geometric(2 * power)[::2][: heads - power]]


def _geometric(heads: int) -> list[float]:
    return [2.0 ** (-8.0 * head / heads) for head in range(1, heads + 1)]

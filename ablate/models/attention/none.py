"""The scheme `none`: attention that knows order only through its causal mask."""

from typing import final

import torch

from ablate.models.base import Scheme
from ablate.models.causal import causal_attention


@final
class NoPosition(Scheme):
    """No positions at all.

    o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of q_m · k_i / √D

    q, k, v and o are vectors of width D, per sequence and head. Source: Haviv et al. 2022, arXiv:2203.16634; Kazemnejad
    et al. 2023 ("NoPE"), arXiv:2305.19466.
    """

    def __init__(self, width: int, heads: int, /) -> None:
        super().__init__()

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention, wherever the positions start; returns o_BHTD in the dtype of v."""
        return causal_attention(q_BHTD, k_BHSD, v_BHSD, dropout=dropout)

"""The scheme `learned`: a trained vector for each position, added to the token embedding."""

from typing import final

import torch
from torch import nn

from ablate.models.base import Scheme
from ablate.models.causal import causal_attention


@final
class Learned(Scheme):
    """Absolute positions from a table of `length` vectors, added once where the model begins.

    x_t + p_t, and o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of q_m · k_i / √D

    x is the token embedding; q, k, v and o are vectors of width D, per sequence and head. With `random_offset` every
    sequence of a training step stands at t + s, its s uniform in 0, ..., length - T, so that with a `length` beyond the
    trained one all vectors are trained and longer sequences can be read; in evaluation s = 0. The offsets come from
    torch's own generator, that is from the run's dropout stream. Source: Gehring et al. 2017, arXiv:1705.03122; Radford
    et al. 2018 (GPT). Raises ValueError for a length below 1, and for a sequence that is longer.
    """

    shared = True

    def __init__(self, width: int, heads: int, /, *, length: int, random_offset: bool) -> None:
        if length < 1:
            raise ValueError(f"model.attention.length={length}: must be at least 1")
        super().__init__()
        self.context = length
        self.positions = nn.Embedding(length, width)
        self._random_offset = random_offset

    def embed(self, x_BTC: torch.Tensor, *, start: int = 0) -> torch.Tensor:
        """x_t + p_t at positions t = start, start + 1, ..."""
        length, end = self.positions.num_embeddings, start + x_BTC.shape[1]
        if end > length:
            raise ValueError(
                f"model.attention.length={length}: a sequence has {end} positions; use model.attention.length={end}"
            )
        positions_T = torch.arange(start, end, device=x_BTC.device)
        if self.training and self._random_offset:
            positions_T = positions_T + torch.randint(length - end + 1, (len(x_BTC), 1), device=x_BTC.device)
        p_TC: torch.Tensor = self.positions(positions_T)
        return x_BTC + p_TC.to(x_BTC.dtype)

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention; returns o_BHTD in the dtype of v."""
        return causal_attention(q_BHTD, k_BHSD, v_BHSD, dropout=dropout)

"""The scheme `t5`: a trained bias on the score for each bucket of distances and each head."""

import math
from typing import final

import torch
from torch import nn

from ablate.models.base import Scheme
from ablate.models.causal import biased_causal_attention, distances


@final
class T5(Scheme):
    """Relative positions in buckets: each near distance has its own, far ones share.

    o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of q_m · k_i / √D + b_h[bucket(m - i)]

    bucket(n) = n                                                      for n < E = floor(buckets / 2)
              = E + floor((buckets - E) log(n / E) / log(max_distance / E))   beyond, at most buckets - 1

    q, k, v and o are vectors of width D, per sequence and head. One table b for all layers, as in the original; scores
    keep their factor 1/√D, which the original leaves out and makes up for in how queries start. The table starts by the
    model's rule for matrices. Source: Raffel et al. 2020, arXiv:1910.10683, section 2.1 and its code (one direction).
    Raises ValueError for fewer than 2 buckets, or a max_distance within the exact ones.
    """

    shared = True

    def __init__(self, width: int, heads: int, /, *, buckets: int, max_distance: int) -> None:
        if buckets < 2:
            raise ValueError(f"model.attention.buckets={buckets}: must be at least 2")
        if max_distance <= buckets // 2:
            raise ValueError(
                f"model.attention.max_distance={max_distance}: must be above {buckets // 2}, the distances with a "
                "bucket each (half of model.attention.buckets)"
            )
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(buckets, heads))
        self._max_distance = max_distance

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention, wherever the positions start; returns o_BHTD in the dtype of v."""
        # By distance first and by pair then: S rows of the table to add gradients to, not T·S.
        by_distance_SH = self.bias[self._bucket(torch.arange(k_BHSD.shape[-2], device=q_BHTD.device))]
        bias_HTS = by_distance_SH.T[:, distances(q_BHTD, k_BHSD)]
        return biased_causal_attention(q_BHTD, k_BHSD, v_BHSD, bias_HTS, dropout=dropout)

    def _bucket(self, distance_S: torch.Tensor) -> torch.Tensor:
        """The bucket of each distance, int64."""
        buckets = len(self.bias)
        exact = buckets // 2
        growth = (buckets - exact) / math.log(self._max_distance / exact)
        far_S = exact + (growth * (distance_S.clamp(min=exact).double() / exact).log()).long()
        return torch.where(distance_S < exact, distance_S, far_S.clamp(max=buckets - 1))

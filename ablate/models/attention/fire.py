"""The scheme `fire`: a bias on the score that a small network computes from the distance, relative to the position."""

from typing import cast, final

import torch
from torch import nn

from ablate.models.base import Scheme
from ablate.models.causal import biased_causal_attention, distances

LARGEST = 1e15
"""Of c and L, and of their inverses: in float32 neither they nor their product may be lost to 0 or infinity."""


@final
class Fire(Scheme):
    """Functional interpolation for relative positions: distances are measured in the length read so far.

    o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of q_m · k_i / √D + f_h(ψ(m - i) / ψ(max(L, m)))
    ψ(x) = log(|c| x + 1)

    q, k, v and o are vectors of width D, per sequence and head; f is a network 1 -> `hidden` -> H with a ReLU between.
    c and L are trained, from `scale` and `threshold` on: c = scale + δ and L = |1 + ε| threshold, δ and ε from 0 on.
    Every layer has its own f, c and L. Source: Li et al. 2023, arXiv:2310.04418. Raises ValueError for values that are
    not positive, and for a scale or threshold too large or small for float32.
    """

    def __init__(self, width: int, heads: int, /, *, hidden: int, scale: float, threshold: float) -> None:
        if hidden < 1:
            raise ValueError(f"model.attention.hidden={hidden}: must be at least 1")
        for name, value in (("scale", scale), ("threshold", threshold)):
            if not 1 / LARGEST <= value <= LARGEST:
                raise ValueError(
                    f"model.attention.{name}={value}: must be a positive number, from {1 / LARGEST:g} to {LARGEST:g}"
                )
        super().__init__()
        self.network = nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, heads))
        self.scale_change = nn.Parameter(torch.zeros(()))
        self.threshold_change = nn.Parameter(torch.zeros(()))
        self._scale = scale
        self._threshold = threshold

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention; returns o_BHTD in the dtype of v."""
        dtype = self.scale_change.dtype
        last = start + k_BHSD.shape[-2]
        query_T = torch.arange(last - q_BHTD.shape[-2], last, device=q_BHTD.device)
        threshold = (1 + self.threshold_change).abs() * self._threshold
        # Where training has brought L to 0, the first query has no reach, and only itself to read: its share is 0.
        reach_T = self._compress(torch.maximum(query_T.to(dtype), threshold)).clamp(min=torch.finfo(dtype).tiny)
        share_TS = self._compress(distances(q_BHTD, k_BHSD).to(dtype)) / reach_T[:, None]
        bias_TSH = cast(torch.Tensor, self.network(share_TS[..., None]))
        return biased_causal_attention(q_BHTD, k_BHSD, v_BHSD, bias_TSH.permute(2, 0, 1), dropout=dropout)

    def _compress(self, x: torch.Tensor) -> torch.Tensor:
        """ψ(x)."""
        return torch.log1p((self._scale + self.scale_change).abs() * x)

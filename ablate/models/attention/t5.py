"""The scheme `t5`: a trained bias on the score for each bucket of distances and each head."""

import math
from fractions import Fraction
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

    computed exactly, not in floating point, which puts a distance that begins a bucket into the one before.

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
        self._starts = bucket_starts(buckets, max_distance)

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
        return torch.bucketize(distance_S, torch.tensor(self._starts, device=distance_S.device), right=True)


def bucket_starts(buckets: int, max_distance: int) -> list[int]:
    """The smallest distance of each bucket from the second on, counted up; two are equal where a bucket is empty.

    Bucket E + j begins at the smallest n with (n / E)^(buckets - E) >= (max_distance / E)^j.
    """
    exact, far = buckets // 2, buckets - buckets // 2
    ratio = math.log(max_distance / exact) / far
    found = (_first_reaching(exact, max_distance, Fraction(j, far), exact * math.exp(j * ratio)) for j in range(far))
    return [*range(1, exact), *(min(start, FARTHEST) for start in found)]


FARTHEST = 2**62
"""No sequence is as long."""


def _first_reaching(exact: int, max_distance: int, power: Fraction, near: float) -> int:
    """⌈exact · (max_distance / exact)^power⌉, of which `near` is the floating-point value before it is rounded."""
    whole = round(near)
    if abs(near - whole) > 1e-9 * near:
        return math.ceil(near)
    j, far = power.as_integer_ratio()
    reached = whole**far * exact**j >= max_distance**j * exact**far
    return whole if reached else whole + 1

"""Causal softmax attention as the schemes share it. How positions enter is the schemes' business.

Shape suffixes: B sequences, H heads, T query positions, S key positions (S >= T), D head width.
"""

import math

import torch
from torch.nn.functional import scaled_dot_product_attention


def causal_attention(
    q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, dropout: float
) -> torch.Tensor:
    """o_m = Σ_i a_mi v_i with a = softmax of q_m · k_i / √D over the keys i up to m; the queries are the last T keys.

    `dropout` is the probability with which a weight a_mi is dropped. Returns o_BHTD.
    """
    queries, keys = _counts(q_BHTD, k_BHSD)
    if queries == keys:
        return scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, dropout_p=dropout, is_causal=True)
    if queries == 1:
        return scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, dropout_p=dropout)
    # torch's own causal mask lets query 0 see key 0 only, where the first of the last T queries sees S - T + 1 keys.
    mask_TS = torch.ones(queries, keys, dtype=torch.bool, device=q_BHTD.device).tril(keys - queries)
    return scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, attn_mask=mask_TS, dropout_p=dropout)


def biased_causal_attention(
    q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, bias_HTS: torch.Tensor, *, dropout: float
) -> torch.Tensor:
    """The same with a = softmax of q_m · k_i / √D + b_mi; what `bias_HTS` holds for keys after m does not matter."""
    bias_HTS = bias_HTS.to(q_BHTD.dtype).masked_fill(_signed_distances(q_BHTD, k_BHSD) < 0, -math.inf)
    return scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, attn_mask=bias_HTS[None], dropout_p=dropout)


def distances(q_BHTD: torch.Tensor, k_BHSD: torch.Tensor) -> torch.Tensor:
    """How far back each key lies, m - i as int64 [T, S], and 0 for keys after m."""
    return _signed_distances(q_BHTD, k_BHSD).clamp(min=0)


def _signed_distances(q_BHTD: torch.Tensor, k_BHSD: torch.Tensor) -> torch.Tensor:
    queries, keys = _counts(q_BHTD, k_BHSD)
    keys_S = torch.arange(keys, device=q_BHTD.device)
    return keys_S[keys - queries :, None] - keys_S


def _counts(q_BHTD: torch.Tensor, k_BHSD: torch.Tensor) -> tuple[int, int]:
    queries, keys = q_BHTD.shape[-2], k_BHSD.shape[-2]
    assert queries <= keys, f"{queries} queries are more than {keys} keys"
    return queries, keys

"""Causal softmax attention as the schemes share it. How positions enter is the schemes' business.

Shape suffixes: B sequences, H heads, T query positions, S key positions (S >= T), D head width.
"""

import torch
from torch.nn.functional import scaled_dot_product_attention


def causal_attention(
    q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, dropout: float
) -> torch.Tensor:
    """o_m = Σ_i a_mi v_i with a = softmax of q_m · k_i / √D over the keys i up to m; the queries are the last T keys.

    `dropout` is the probability with which a weight a_mi is dropped. Returns o_BHTD.
    """
    queries, keys = q_BHTD.shape[-2], k_BHSD.shape[-2]
    assert queries <= keys, f"{queries} queries are more than {keys} keys"
    if queries == keys:
        return scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, dropout_p=dropout, is_causal=True)
    # torch's own causal mask lets query 0 see key 0 only, where the first of the last T queries sees S - T + 1 keys.
    mask_TS = torch.ones(queries, keys, dtype=torch.bool, device=q_BHTD.device).tril(keys - queries)
    return scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, attn_mask=mask_TS, dropout_p=dropout)

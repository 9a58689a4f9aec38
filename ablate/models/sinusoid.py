"""Sinusoids of positions, the mathematics that the schemes with a fixed vector per position share.

    p_t = (sin(t ω_0), cos(t ω_0), sin(t ω_1), cos(t ω_1), ...),  ω_j = base^(-2j/C)

Source: Vaswani et al. 2017, "Attention is all you need", section 3.5, arXiv:1706.03762.

Shape suffixes: C model width.
"""

import math

import torch

LEAST_BASE = 1e-100
"""Frequencies go up to 1 / base, and their product with a position must be finite."""


def check_base(base: float) -> None:
    """Raise ValueError for a base that gives no frequencies, or some that overflow at far positions."""
    if not LEAST_BASE <= base < math.inf:
        raise ValueError(f"base={base}: must be a positive number, at least {LEAST_BASE}")


def sinusoids(positions: torch.Tensor, width: int, base: float) -> torch.Tensor:
    """The vectors [..., C] of integer positions [...], float32; an odd width leaves the last cosine out."""
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device=positions.device) / width
    angles = positions[..., None].double() * base**-exponents
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)[..., :width].float()

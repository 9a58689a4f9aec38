"""The scheme `xpos`: RoPE whose scores fade with distance. The rotation itself is in `ablate.models.rotary`."""

import math
from collections.abc import Mapping
from typing import final

import torch

from ablate.models.base import Scheme
from ablate.models.cache import KeysValues
from ablate.models.causal import causal_attention
from ablate.models.rotary import Frequencies, Rotation


@final
class XPos(Scheme):
    """Extrapolatable positions: rotated queries grow and rotated keys shrink with their position, pair by pair.

    o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of (R(mθ)q_m ζ^(m/u)) · (R(iθ)k_i ζ^(-i/u)) / √D

    so the product of pair j is that of RoPE times ζ_j^((m - i)/u), with ζ_j = (2j/r + gamma) / (1 + gamma) and u =
    `scale_base`; r and R(mθ) as in `ablate.models.rotary`, and features that are not rotated stay as they are. q, k, v
    and o are vectors of width D, per sequence and head. With gamma 0.4 and u 512 float32 can hold ζ_0^(-i/u) up to
    position 36,000. Source: Sun et al. 2022, "A length-extrapolatable transformer", arXiv:2212.10554. Raises ValueError
    for a percentage, a base, a gamma, a scale or a frequency convention that makes no sense.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        /,
        *,
        rope_percentage: float,
        frequencies: Frequencies,
        base: float,
        gamma: float,
        scale_base: float,
    ) -> None:
        for name, value in (("gamma", gamma), ("scale_base", scale_base)):
            if not 0.0 < value < math.inf:
                raise ValueError(f"model.attention.{name}={value}: must be a positive number")
        super().__init__()
        self.score_rotation = Rotation(width, heads, rope_percentage, frequencies, base, name="rope_percentage")
        rotated = self.score_rotation.width
        pairs = [math.log((2 * j / rotated + gamma) / (1 + gamma)) / scale_base for j in range(rotated // 2)]
        self._rates = [*pairs, *pairs, *[0.0] * (width // heads - rotated)]

    def store(self, k_BHTD: torch.Tensor, v_BHTD: torch.Tensor, *, start: int = 0) -> KeysValues:
        """Rotated keys, scaled down, and values as they are."""
        return KeysValues(self._scaled(self.score_rotation.rotate(k_BHTD, start), start, -1), v_BHTD)

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention; returns o_BHTD in the dtype of v."""
        first_query = start + k_BHSD.shape[-2] - q_BHTD.shape[-2]
        q_BHTD = self._scaled(self.score_rotation.rotate(q_BHTD, first_query), first_query, 1)
        return causal_attention(q_BHTD, k_BHSD, v_BHSD, dropout=dropout)

    def _scaled(self, x_BHTD: torch.Tensor, first: int, direction: int) -> torch.Tensor:
        """x_t ζ^(±t/u) at positions t = first, first + 1, ..."""
        end = first + x_BHTD.shape[2]
        positions_T = torch.arange(first, end, dtype=torch.float64, device=x_BHTD.device)
        rates_D = torch.tensor(self._rates, dtype=torch.float64, device=x_BHTD.device)
        return x_BHTD * torch.exp(direction * positions_T[:, None] * rates_D).to(x_BHTD.dtype)

    def effective(self) -> Mapping[str, int | float | str]:
        """The number of features of a query or key that are rotated."""
        return {"rotary_width": self.score_rotation.width}

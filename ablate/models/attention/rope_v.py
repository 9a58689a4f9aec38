"""The scheme `rope_v`: rotary positions in the scores and, absolute, in the values."""

from collections.abc import Mapping
from typing import final

import torch

from ablate.models.base import Scheme
from ablate.models.cache import KeysValues
from ablate.models.causal import causal_attention
from ablate.models.rotary import Frequencies, Rotation


@final
class RopeV(Scheme):
    """RoPE whose values are rotated by their own positions, never rotated back.

    o_m = Σ_i a_mi R(iφ)v_i,
    with a_mi = softmax over i <= m of R(mθ)q_m · R(iθ)k_i / √D

    q, k, v and o are vectors of width D, per sequence and head; R(mθ) as in `ablate.models.rotary`, with a
    percentage of its own for the values (φ is θ for their rotary width). The output carries the absolute position
    of what was attended to: the arm that tells RoPER's relative distances from mere rotation of values. Raises
    ValueError for a percentage, a base or a frequency convention that makes no sense.
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
        value_percentage: float,
    ) -> None:
        super().__init__()
        self.score_rotation = Rotation(width, heads, rope_percentage, frequencies, base, name="rope_percentage")
        self.value_rotation = Rotation(width, heads, value_percentage, frequencies, base, name="value_percentage")

    def store(self, k_BHTD: torch.Tensor, v_BHTD: torch.Tensor, *, start: int = 0) -> KeysValues:
        """Rotated keys and values."""
        return KeysValues(self.score_rotation.rotate(k_BHTD, start), self.value_rotation.rotate(v_BHTD, start))

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention; returns o_BHTD in the dtype of v."""
        first_query = start + k_BHSD.shape[-2] - q_BHTD.shape[-2]
        q_BHTD = self.score_rotation.rotate(q_BHTD, first_query)
        return causal_attention(q_BHTD, k_BHSD, v_BHSD, dropout=dropout)

    def effective(self) -> Mapping[str, int | float | str]:
        """The numbers of features that are rotated: of a query or key, and of a value."""
        return {"rotary_width": self.score_rotation.width, "value_rotary_width": self.value_rotation.width}

"""The scheme `roper_2022`: RoPER with the double rotation of its reference code from June 2022 to June 2024."""

from collections.abc import Mapping
from typing import final

import torch

from ablate.models.base import Scheme
from ablate.models.cache import KeysValues
from ablate.models.causal import causal_attention
from ablate.models.rotary import Frequencies, Rotation


@final
class Roper2022(Scheme):
    """RoPER as it was first published in code: values are rotated twice and rotated back once.

    o_m = R(-mφ) Σ_i a_mi R(2iφ)v_i = Σ_i a_mi R((2i - m)φ)v_i,
    with a_mi = softmax over i <= m of R(mθ)q_m · R(iθ)k_i / √D

    q, k, v and o are vectors of width D, per sequence and head; R(mθ) as in `ablate.models.rotary`, with a
    percentage of its own for the values (φ is θ for their rotary width). The angle (2i - m)φ = (i - m)φ + iφ is not
    a distance: the absolute position of what was attended to leaks into the output. Kept because published results
    may come from it. Raises ValueError for a percentage, a base or a frequency convention that makes no sense.
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
        """Keys rotated once and values twice."""
        v_BHTD = self.value_rotation.rotate(self.value_rotation.rotate(v_BHTD, start), start)
        return KeysValues(self.score_rotation.rotate(k_BHTD, start), v_BHTD)

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention; returns o_BHTD in the dtype of v."""
        first_query = start + k_BHSD.shape[-2] - q_BHTD.shape[-2]
        q_BHTD = self.score_rotation.rotate(q_BHTD, first_query)
        o_BHTD = causal_attention(q_BHTD, k_BHSD, v_BHSD, dropout=dropout)
        return self.value_rotation.unrotate(o_BHTD, first_query)

    def effective(self) -> Mapping[str, int | float | str]:
        """The numbers of features that are rotated: of a query or key, and of a value."""
        return {"rotary_width": self.score_rotation.width, "value_rotary_width": self.value_rotation.width}

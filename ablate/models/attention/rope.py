"""The scheme `rope`: rotary positions in the scores. The rotation itself is in `ablate.models.rotary`."""

from collections.abc import Mapping
from typing import final

import torch

from ablate.models.base import Scheme
from ablate.models.cache import KeysValues
from ablate.models.causal import causal_attention
from ablate.models.rotary import Frequencies, Rotation


@final
class Rope(Scheme):
    """Queries and keys are rotated by their positions, so a score depends on the distance of the two.

    o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of R(mθ)q_m · R(iθ)k_i / √D

    q, k, v and o are vectors of width D, per sequence and head; R(mθ) as in `ablate.models.rotary`. Source: Su et al.
    2021, arXiv:2104.09864. Raises ValueError for a percentage, a base or a frequency convention that makes no sense.
    """

    def __init__(
        self, width: int, heads: int, /, *, rope_percentage: float, frequencies: Frequencies, base: float
    ) -> None:
        super().__init__()
        self.score_rotation = Rotation(width, heads, rope_percentage, frequencies, base, name="rope_percentage")

    def store(self, k_BHTD: torch.Tensor, v_BHTD: torch.Tensor, *, start: int = 0) -> KeysValues:
        """Rotated keys, and values as they are."""
        return KeysValues(self.score_rotation.rotate(k_BHTD, start), v_BHTD)

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention; returns o_BHTD in the dtype of v."""
        first_query = start + k_BHSD.shape[-2] - q_BHTD.shape[-2]
        q_BHTD = self.score_rotation.rotate(q_BHTD, first_query)
        return causal_attention(q_BHTD, k_BHSD, v_BHSD, dropout=dropout)

    def effective(self) -> Mapping[str, int | float | str]:
        """The number of features of a query or key that are rotated."""
        return {"rotary_width": self.score_rotation.width}

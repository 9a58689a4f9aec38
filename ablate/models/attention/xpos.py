"""The scheme `xpos`: RoPE whose scores fade with distance. The rotation itself is in `ablate.models.rotary`."""

import math
from collections.abc import Mapping
from typing import final

import torch

from ablate.models.base import Scheme
from ablate.models.cache import KeysValues
from ablate.models.causal import causal_attention
from ablate.models.rotary import Frequencies, Rotation

STEEPEST = -1e4
"""The rate per position of a scale that is 0 one position away, in every dtype."""
INVISIBLE = 1e-30
"""Below it the scale of a key adds nothing to a score, but makes numbers that processors are slow with."""
MASK_ROWS = 1024


@final
class XPos(Scheme):
    """Extrapolatable positions: rotated queries grow and rotated keys shrink with their position, pair by pair.

    o_m = Σ_i a_mi v_i, with a_mi = softmax over i <= m of (R(mθ)q_m ζ^(m/u)) · (R(iθ)k_i ζ^(-i/u)) / √D

    so the product of pair j is that of RoPE times ζ_j^((m - i)/u), with ζ_j = (2j/r + gamma) / (1 + gamma) and u =
    `scale_base`; r and R(mθ) as in `ablate.models.rotary`, and features that are not rotated stay as they are. q, k, v
    and o are vectors of width D, per sequence and head. ζ^(-i/u) grows without bound, so queries are read in blocks and
    all is scaled relative to the first query of each, at c: ζ^((m - c)/u) and ζ^((c - i)/u). A block is as long as the
    dtype can hold; with gamma 0.4 and u 512 in float32 one has 9,000 queries. Source: Sun et al. 2022, "A
    length-extrapolatable transformer", arXiv:2212.10554. Raises ValueError for a percentage, a base, a gamma, a scale
    or a frequency convention that makes no sense.
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
        pairs = [
            max(math.log((2 * j / rotated + gamma) / (1 + gamma)) / scale_base, STEEPEST) for j in range(rotated // 2)
        ]
        self._rates = [*pairs, *pairs, *[0.0] * (width // heads - rotated)]

    def store(self, k_BHTD: torch.Tensor, v_BHTD: torch.Tensor, *, start: int = 0) -> KeysValues:
        """Rotated keys, and values as they are."""
        return KeysValues(self.score_rotation.rotate(k_BHTD, start), v_BHTD)

    def attend(
        self, q_BHTD: torch.Tensor, k_BHSD: torch.Tensor, v_BHSD: torch.Tensor, *, start: int = 0, dropout: float = 0.0
    ) -> torch.Tensor:
        """Causal attention; returns o_BHTD in the dtype of v."""
        queries, before = q_BHTD.shape[-2], k_BHSD.shape[-2] - q_BHTD.shape[-2]
        q_BHTD = self.score_rotation.rotate(q_BHTD, start + before)
        step = self._block_length(queries, q_BHTD.dtype)
        blocks = []
        for begin in range(0, queries, step):
            block, end = q_BHTD[:, :, begin : begin + step], before + min(begin + step, queries)
            block, keys = self._scaled(block, 0, 1), self._scaled(k_BHSD[:, :, :end], before + begin, -1)
            blocks.append(causal_attention(block, keys, v_BHSD[:, :, :end], dropout=dropout))
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks, 2)

    def _block_length(self, queries: int, dtype: torch.dtype) -> int:
        """How many queries share a reference: scales within stay below the fourth root of the dtype's largest number.

        Several blocks need a mask of their queries by the keys each, so they are shorter than one alone may be.
        """
        steepest = -min(self._rates)
        longest = math.log(torch.finfo(dtype).max) / 4 / steepest if steepest else math.inf
        return queries if queries <= longest else max(1, min(int(longest), MASK_ROWS))

    def _scaled(self, x_BHTD: torch.Tensor, reference: int, direction: int) -> torch.Tensor:
        """x_t ζ^(±(t - reference)/u) for t = 0, 1, ...; keys far before the reference may come to 0."""
        places_T = torch.arange(x_BHTD.shape[2], dtype=torch.float64, device=x_BHTD.device) - reference
        rates_D = torch.tensor(self._rates, dtype=torch.float64, device=x_BHTD.device)
        scales_TD = torch.exp(direction * places_T[:, None] * rates_D)
        if direction < 0:
            scales_TD = scales_TD.where(scales_TD > INVISIBLE, 0.0)
        return x_BHTD * scales_TD.to(x_BHTD.dtype)

    def effective(self) -> Mapping[str, int | float | str]:
        """The number of features of a query or key that are rotated."""
        return {"rotary_width": self.score_rotation.width}

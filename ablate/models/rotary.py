"""Rotary positions: the mathematics that the rotary schemes share. What they rotate, and when, stands in each scheme.

A head of width D has its first r features (r even, the rotary width) read as r/2 pairs (x_j, x_{j + r/2}).
R(mθ) turns pair j by the angle m·θ_j:

    x_j          ->  x_j cos(m θ_j)  -  x_{j + r/2} sin(m θ_j)
    x_{j + r/2}  ->  x_{j + r/2} cos(m θ_j)  +  x_j sin(m θ_j)

and leaves the features from r on as they are. Because R(mθ)q · R(iθ)k = q · R((i - m)θ)k, rotated queries and keys know
their distance only. Source: Su et al. 2021, "RoFormer", arXiv:2104.09864, but with features paired half a rotary width
apart, as in GPT-NeoX, in place of neighbours.

The rotary width is r = floor(p·D), rounded down to even, where p is the percentage of the head that is rotated (a
fraction, 0 to 1, computed exactly: 0.29 of 100 is 29). p = 0 rotates nothing. The frequencies are, by convention,

    partial     θ_j = base^(-2j/r): the whole range of frequencies is spread over the rotated features
    truncated   θ_j = base^(-2j/D): those of full rotation, of which the r/2 highest are kept and the lowest dropped

Both rotate the first r features; with p = 1 and D even they are the same.

Shape suffixes: B sequences, H heads, T positions, D head width, R rotary width, P pairs (R/2).
"""

from typing import Literal

import torch

from ablate.models.exact import floor_share
from ablate.models.sinusoid import check_base

Frequencies = Literal["partial", "truncated"]


def rotary_width(percentage: float, head_width: int, *, name: str) -> int:
    """The number of features of a head that are rotated; `name` is the config key that errors speak of.

    Raises ValueError for a percentage outside [0, 1], and for one above 0 that leaves no pair to rotate.
    """
    if not 0.0 <= percentage <= 1.0:
        raise ValueError(f"{name}={percentage}: must lie between 0 and 1")
    width = floor_share(percentage, head_width) // 2 * 2
    if percentage > 0.0 and width == 0:
        raise ValueError(f"{name}={percentage}: leaves no pair of features to rotate; {_way_out(head_width)}")
    return width


def _way_out(head_width: int) -> str:
    """What to set instead, rounded up to four digits so that the suggested percentage is accepted."""
    if head_width < 2:
        return f"a head of width {head_width} has no pair: use 0, or wider heads"
    smallest = -(-20_000 // head_width) / 10_000
    return f"in a head of width {head_width} the smallest percentage that rotates one is {smallest} (0 rotates none)"


class Rotation:
    """R(mθ) for the heads of one layer, with the settings checked and the tables of cosines and sines kept.

    The tables are no part of the module's state: they are made at first use, made again when a longer sequence, another
    device or another dtype comes along, and as long as the next power of two, so their memory is bounded by the longest
    sequence. Angles are computed in float64 whatever the model's dtype; only cosines and sines are rounded to it.
    """

    def __init__(
        self, width: int, heads: int, percentage: float, frequencies: Frequencies, base: float, *, name: str
    ) -> None:
        head_width = width // heads
        self.width = rotary_width(percentage, head_width, name=name)
        spread: dict[str, int] = {"partial": self.width, "truncated": head_width}
        if frequencies not in spread:
            raise ValueError(f"frequencies={frequencies!r}: must be one of {', '.join(spread)}")
        check_base(base)
        self._heads = heads
        self._spread = spread[frequencies]
        self._base = base
        self._tables: tuple[torch.Tensor, torch.Tensor] | None = None

    def rotate(self, x_BHTD: torch.Tensor, first: int) -> torch.Tensor:
        """R(mθ)x at positions m = first, ..., first + T - 1; same shape and dtype."""
        return self._turn(x_BHTD, first, 1)

    def unrotate(self, x_BHTD: torch.Tensor, first: int) -> torch.Tensor:
        """R(-mθ)x at positions m = first, ..., first + T - 1; same shape and dtype."""
        return self._turn(x_BHTD, first, -1)

    def _turn(self, x_BHTD: torch.Tensor, first: int, direction: int) -> torch.Tensor:
        if self.width == 0:
            return x_BHTD
        # Heads leave the projection as [B, T, H, D]; in that order every operation runs over one piece of memory.
        x_BTHD = x_BHTD.transpose(1, 2).contiguous()
        x_BTHR = x_BTHD[..., : self.width]
        cos_THR, sin_THR = self._tables_for(x_BTHD, first)
        # Rolling by half the width brings every feature its partner; the sines carry the signs.
        partner_BTHR = x_BTHR.roll(self.width // 2, -1)
        turned_BTHR = torch.addcmul(x_BTHR * cos_THR, partner_BTHR, sin_THR, value=direction)
        if self.width < x_BTHD.shape[-1]:
            turned_BTHR = torch.cat((turned_BTHR, x_BTHD[..., self.width :]), -1)
        return turned_BTHR.transpose(1, 2)

    def _tables_for(self, x_BTHD: torch.Tensor, first: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and signed sines [T, H, R] of the positions of x, on its device and in its dtype."""
        assert first >= 0, f"positions start at 0, not at {first}"
        end = first + x_BTHD.shape[1]
        if self._tables is None or not _serves(self._tables[0], x_BTHD, end):
            self._tables = self._build(1 << (end - 1).bit_length(), x_BTHD.device, x_BTHD.dtype)
        cos_THR, sin_THR = self._tables
        return cos_THR[first:end], sin_THR[first:end]

    # Tables made inside inference mode could not take part in training afterwards.
    @torch.inference_mode(False)
    @torch.no_grad()
    def _build(self, length: int, device: torch.device, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        exponents_P = torch.arange(0, self.width, 2, dtype=torch.float64, device=device) / self._spread
        positions_T = torch.arange(length, dtype=torch.float64, device=device)
        angles_TP = positions_T[:, None] * self._base**-exponents_P
        cos_TP, sin_TP = angles_TP.cos(), angles_TP.sin()
        return self._tile(torch.cat((cos_TP, cos_TP), -1), dtype), self._tile(torch.cat((-sin_TP, sin_TP), -1), dtype)

    def _tile(self, table_TR: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Repeat a table for every head, [T, H, R]: multiplying without broadcasting over heads is faster."""
        return table_TR.to(dtype)[:, None].repeat(1, self._heads, 1)


def _serves(table_THR: torch.Tensor, x_BTHD: torch.Tensor, end: int) -> bool:
    return len(table_THR) >= end and table_THR.device == x_BTHD.device and table_THR.dtype == x_BTHD.dtype

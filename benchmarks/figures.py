"""The arithmetic of the benchmarks: counted FLOPs, medians with ranges, shares. Nothing is measured or shown here."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple


class Size(NamedTuple):
    """What a training step is made of; `overrides` are those of the command line that give it."""

    name: str
    overrides: tuple[str, ...]
    batch: int
    seq_len: int
    width: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int

    @property
    def tokens(self) -> int:
        """Tokens of one step."""
        return self.batch * self.seq_len


class Summary(NamedTuple):
    """The middle and the ends of what the rounds gave; the ends, because on a shared machine they lie far apart."""

    median: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Summary":
        """All three times a positive factor."""
        return Summary(*(factor * value for value in self))


def summarise(values: Iterable[float]) -> Summary:
    """Median and range; raises ValueError when there are no values."""
    values = list(values)
    if not values:
        raise ValueError("no measurement to summarise")
    return Summary(median(values), min(values), max(values))


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> Summary:
    """Summary of the ratios round by round: the two of one round met the same state of the machine."""
    return summarise(above / below for above, below in zip(numerators, denominators, strict=True))


class ImpossibleError(ValueError):
    """A measurement that no machine can have given; the message says what is wrong, in one line."""


def share(rates: Sequence[float], matrix_rates: Sequence[float], flops: float, *, where: str) -> Summary:
    """Summary of what share of the matrix rate (of `flops` each) the steps of each round reach.

    Raises ImpossibleError where one is above 1: the counted operations of training are matrix products too, and nothing
    multiplies faster than the matrix engine, so its clock or that of training did not run over what was counted.
    """
    found = ratios(rates, matrix_rates).scaled(flops)
    if found.high > 1:
        raise ImpossibleError(
            f"{where}: {found.high:,.0%} of the matmul rate, which nothing can exceed: a window was timed in which the "
            "steps it counts were not trained, or the products were held up; measure again on an idle machine"
        )
    return found


def linear_flops(size: Size) -> int:
    """Multiplications and additions of one forward pass in the linear layers, a multiply-add counted as two."""
    per_layer = 4 * size.width**2 + 2 * size.feed_forward * size.width**2
    return 2 * size.tokens * (size.layers * per_layer + size.width * size.vocabulary)


def attention_flops(size: Size) -> int:
    """Those of scores and weighted sums, over the T (T + 1) / 2 pairs that the causal mask leaves."""
    pairs = size.seq_len * (size.seq_len + 1) // 2
    return 2 * 2 * size.width * pairs * size.batch * size.layers


def step_flops(size: Size) -> int:
    """FLOPs that one training step needs: the backward pass has two products for each one of the forward pass.

    Norms, softmax, rotations, the optimiser and what a kernel computes twice are not counted, nor are masked pairs.
    """
    return 3 * (linear_flops(size) + attention_flops(size))

"""Seconds to generate text with and without the key-value cache, for every scheme: `python -m benchmarks.generation`.

The model has the reference size and its starting weights, for how fast text comes does not depend on what it says. Both
ways make the same text, greedily, after a prompt of one token; they take turns, and what is shown is the median over
the rounds. Seconds are those the processor spends on this process, in one thread: a busy machine adds less to them than
to a clock on the wall.
"""

import argparse
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from ablate.config.build import build
from ablate.config.register import config_dir
from ablate.training.generation import generate
from benchmarks.engines import CPU, config_of

SIZE = ("model.width=128", "model.layers=3", "model.heads=4")


class Timing(NamedTuple):
    """Median processor seconds for all texts together."""

    scheme: str
    cached: float
    uncached: float

    @property
    def speedup(self) -> float:
        """How many times faster the cache is."""
        return self.uncached / self.cached


def model_of(scheme: str, tokens: int, size: Sequence[str] = SIZE) -> nn.Module:
    """A model of that size with room for the tokens and their prompt."""
    config = config_of((*size, f"attention={scheme}", f"task.seq_len={max(64, tokens + 1)}"))
    return build(config, CPU).parts.model


def measure(scheme: str, tokens: int, batch: int, rounds: int, size: Sequence[str] = SIZE) -> Timing:
    """Time both ways in turn; raises RuntimeError when their texts differ."""
    model, prompts = model_of(scheme, tokens, size), [[row % 5] for row in range(batch)]
    cached: list[float] = []
    uncached: list[float] = []
    for _ in range(rounds):
        texts = [
            _timed(lambda: generate(model, prompts, tokens, cached=True), cached),
            _timed(lambda: generate(model, prompts, tokens, cached=False), uncached),
        ]
        if texts[0] != texts[1]:
            raise RuntimeError(f"{scheme}: the texts with and without cache differ")
    return Timing(scheme, median(cached), median(uncached))


def _timed(make: Callable[[], list[list[int]]], seconds: list[float]) -> list[list[int]]:
    began = process_time()
    text = make()
    seconds.append(process_time() - began)
    return text


def table(timings: Sequence[Timing], tokens: int, batch: int) -> Table:
    """The timings for a terminal."""
    shown = Table("scheme")
    for column in ("cached, s", "uncached, s", "times faster", "tokens/s, cached"):
        shown.add_column(column, justify="right")
    for timing in timings:
        rate = f"{tokens * batch / timing.cached:,.0f}"
        shown.add_row(timing.scheme, f"{timing.cached:.2f}", f"{timing.uncached:.2f}", f"{timing.speedup:.1f}", rate)
    return shown


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    schemes = sorted(path.stem for path in (config_dir() / "attention").glob("*.yaml"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generation", description=__doc__)
    parser.add_argument("--schemes", nargs="+", choices=schemes, default=schemes, help="default: all")
    parser.add_argument("--tokens", type=int, default=512, help="tokens of each text (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1, help="texts at once (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    timings = [measure(scheme, given.tokens, given.batch, given.rounds) for scheme in given.schemes]
    console = Console(width=100)
    console.print(f"{' '.join(SIZE)}, {given.tokens} tokens, batch {given.batch}, one thread")
    console.print(table(timings, given.tokens, given.batch))


if __name__ == "__main__":
    main()

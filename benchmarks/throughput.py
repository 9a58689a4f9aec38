"""Training speed beside labml-nn's RoPER, in one run: `python -m benchmarks.throughput`.

This module holds the command, the rounds and the table. What a step is stands in `engines`, how it is timed in
`lanes`, what is computed from it in `figures`, and README.md says how to read the table.
"""

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from ablate.config.register import local_workers
from benchmarks import startup
from benchmarks.engines import MATMUL_FLOPS, size_of
from benchmarks.figures import ImpossibleError, Size, Summary, ratios, share, step_flops, summarise
from benchmarks.lanes import Lane, Mode, lanes, modes

OURS, PEER, MATMUL = "ablate", "labml-nn", "matmul"
SIZES = {
    "reference": ("experiment=copy_repeat", "attention=roper"),
    "default": ("attention=roper",),
}
STEPS = {"reference": 3, "default": 100}
MATMUL_STEPS = 10
"""Of MATMUL_FLOPS each: about a second on one core."""


@dataclass(kw_only=True)
class Results:
    """What one size gave: by mode and engine the seconds of each round's window, and seconds a step draws its batch."""

    size: Size
    steps: int
    modes: list[Mode]
    seconds: dict[str, dict[str, list[float]]]
    data_seconds: dict[str, float]

    @property
    def rounds(self) -> int:
        """How many windows each lane had."""
        return len(self.seconds[self.modes[0].name][OURS])

    def rates(self, engine: str, mode: Mode) -> list[float]:
        """Steps per second of all processes together, round by round."""
        steps = mode.processes * _steps(engine, self.steps)
        return [steps / seconds for seconds in self.seconds[mode.name][engine]]

    def tokens(self, engine: str, mode: Mode) -> Summary:
        """Tokens per second."""
        return summarise(self.rates(engine, mode)).scaled(self.size.tokens)

    def matmul_share(self, engine: str, mode: Mode) -> Summary:
        """Share of the matrix engine's FLOPs per second, in the same mode, that the counted FLOPs of training reach.

        Raises ImpossibleError where that is more than all of them.
        """
        where = f"{self.size.name}, {mode.name}, {engine}"
        flops = step_flops(self.size) / MATMUL_FLOPS
        return share(self.rates(engine, mode), self.rates(MATMUL, mode), flops, where=where)

    def data_share(self, mode: Mode) -> float:
        """Share of our step's time that goes into drawing its batch."""
        return self.data_seconds[mode.name] * summarise(self.rates(OURS, mode)).median / mode.processes


def measure(size: Size, steps: int, repeats: int, engines: Sequence[str], ways: Sequence[Mode]) -> Results:
    """Run all rounds of one size; in each round every lane has one window."""
    seconds: dict[str, dict[str, list[float]]] = {mode.name: {engine: [] for engine in engines} for mode in ways}
    with lanes(list(engines), size, list(ways)) as running:
        for _ in range(repeats):
            for lane in running:
                seconds[lane.mode.name][lane.engine].append(lane.measure(_steps(lane.engine, steps)))
        data_seconds = _stop(running)
    return Results(size=size, steps=steps, modes=list(ways), seconds=seconds, data_seconds=data_seconds)


def _steps(engine: str, steps: int) -> int:
    return MATMUL_STEPS if engine == MATMUL else steps


def _stop(running: Sequence[Lane]) -> dict[str, float]:
    """Stop all lanes; return our seconds of drawing a batch, by mode."""
    ended = [(lane, lane.stop()) for lane in running]
    return {lane.mode.name: seconds for lane, seconds in ended if lane.engine == OURS}


def table(results: Results, engines: Sequence[str]) -> Table:
    """Tokens per second of each mode and engine, beside labml-nn in the same mode and in its usual one."""
    found = Table(box=MARKDOWN)
    for heading in ("mode", "engine", "tokens/s", "x same mode", "x labml-nn as run", "of matmul rate", "data"):
        found.add_column(heading, justify="left" if heading in ("mode", "engine") else "right", no_wrap=True)
    for mode in results.modes:
        for engine in engines:
            found.add_row(mode.name, engine, *_cells(results, engine, mode, PEER in engines))
        found.add_row(mode.name, "torch.mm", f"{_matmul_gflops(results, mode)} GFLOP/s", "", "", "", "")
    return found


def headline(results: Results) -> str:
    """What the table is about."""
    size = results.size
    shape = f"seq {size.seq_len}, batch {size.batch}, width {size.width}, layers {size.layers}, heads {size.heads}"
    flops = f"{step_flops(size) / 1e9:.2f} GFLOP a step"
    return f"{size.name}: {shape}, {flops}, {results.steps} steps a window, {results.rounds} rounds"


def _cells(results: Results, engine: str, mode: Mode, beside_peer: bool) -> list[str]:
    usual = results.modes[0]
    rates = results.rates(engine, mode)
    against = [results.rates(PEER, other) for other in (mode, usual)] if beside_peer else []
    compared = [_shown(ratios(rates, other), ".2f") for other in against] or ["", ""]
    data = f"{results.data_share(mode):.1%}" if engine == OURS else ""
    share = _shown(results.matmul_share(engine, mode), ".1%")
    return [_shown(results.tokens(engine, mode), ",.0f"), *compared, share, data]


def _matmul_gflops(results: Results, mode: Mode) -> str:
    return _shown(summarise(results.rates(MATMUL, mode)).scaled(MATMUL_FLOPS / 1e9), ".0f")


def _shown(summary: Summary, form: str) -> str:
    return f"{summary.median:{form}} [{summary.low:{form}}, {summary.high:{form}}]"


def _as_json(results: Results) -> dict[str, Any]:
    return {
        "size": results.size._asdict(),
        "steps": results.steps,
        "step_flops": step_flops(results.size),
        "modes": [mode._asdict() for mode in results.modes],
        "seconds": results.seconds,
        "data_seconds": results.data_seconds,
    }


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    parser.add_argument("--size", choices=[*SIZES, "both"], default="both")
    parser.add_argument("--steps", type=_positive, help=f"training steps of a window (default {STEPS})")
    parser.add_argument("--repeats", type=_positive, default=5, help="rounds, default 5")
    parser.add_argument("--json", type=Path, help="file for all measurements")
    return parser.parse_args(argv)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, at least 1")
    return int(text)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; exit code 1, and no file, where what was measured cannot be."""
    try:
        _measure_all(_arguments(argv))
    except ImpossibleError as error:
        sys.exit(f"impossible measurement, {error}")


def _measure_all(given: argparse.Namespace) -> None:
    console = Console(width=200)
    trained = [OURS, PEER] if importlib.util.find_spec("labml_nn") else [OURS]
    if PEER not in trained:
        console.print("labml-nn is not installed (pip install labml-nn==0.5.1): measured alone")
    ways = modes(local_workers("cpu"))
    content: dict[str, Any] = {"load_before": os.getloadavg()[0], "sizes": {}}
    console.print(f"load average before: {content['load_before']:.2f} (an idle machine is near 0)")
    for name in SIZES if given.size == "both" else [given.size]:
        size = size_of(name, SIZES[name])
        results = measure(size, given.steps or STEPS[name], given.repeats, [*trained, MATMUL], ways)
        console.print(headline(results), table(results, trained))
        content["sizes"][name] = _as_json(results)
    started = [startup.seconds_to_first_step() for _ in range(given.repeats)]
    content["start_up_seconds"] = started
    console.print(f"process start to first training step: {_shown(summarise(started), '.2f')} s")
    if given.json:
        given.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""How often the verdicts are right, withheld and wrong: simulated studies through `analysis.compare`'s own code.

    python -m benchmarks.verdict_rates                          # the table of docs/analysis.md
    python -m benchmarks.verdict_rates --studies 100 --seeds 10 --arms 2
    python -m benchmarks.verdict_rates --levels                 # the constants of analysis/statistics/groups.py

Runs of one seed share a part, so that differences are paired; the spread of a paired difference is the unit (1 SD). The
first variant is better by the effect, the others are copies of the baseline. For each design the shares of studies in
which the first variant is called better, or is not judged on its mean (unstable), and in which any variant is called
better or worse that is not (without an effect the first one too). The values depend on the design alone, so the same
file in a checkout of another version gives the table of before and after.

What the verdict does not rest on (checks by other tests, flags) is left out for speed.
"""

import argparse
import functools
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import analysis.statistics.paired
import analysis.verdicts
from ablate.records import RunRecord, Status
from analysis.comparison import compare
from analysis.statistics.sensitivity import Sensitivity
from analysis.study import LoadedRun, Study, Variant

Array = npt.NDArray[np.float64]
Runs = Callable[[np.random.Generator, int, int, float], Array]
"""Generator, arms, seeds, effect: the final values, an arm a row; NaN for a run that failed."""

OWN = np.sqrt(0.5)
"""Deviation of what a run does not share with those of its seed, so that differences have deviation 1."""


def _shifted(values: Array, effect: float) -> Array:
    values[1] -= effect
    return values


def _with_shared(generator: np.random.Generator, own: Array, effect: float) -> Array:
    return _shifted(own + generator.normal(size=own.shape[1]), effect)


def normal(generator: np.random.Generator, arms: int, seeds: int, effect: float) -> Array:
    """Normal values."""
    return _with_shared(generator, generator.normal(scale=OWN, size=(arms, seeds)), effect)


def student(generator: np.random.Generator, arms: int, seeds: int, effect: float) -> Array:
    """Student t with 3 degrees of freedom (variance 3)."""
    return _with_shared(generator, OWN * generator.standard_t(3, size=(arms, seeds)) / np.sqrt(3), effect)


def lognormal(generator: np.random.Generator, arms: int, seeds: int, effect: float) -> Array:
    """Exponentials of normal values of deviation .8: a long tail of bad runs."""
    spread = np.sqrt((np.exp(0.64) - 1) * np.exp(0.64))
    return _with_shared(generator, OWN * generator.lognormal(0, 0.8, size=(arms, seeds)) / spread, effect)


def counts(generator: np.random.Generator, arms: int, seeds: int, effect: float) -> Array:
    """Errors of 200 answers of which 93 % are right, in units of the deviation of their difference."""
    unit = np.sqrt(2 * 0.93 * 0.07 / 200)
    wrong = np.full(arms, 0.07)
    wrong[1] = max(0.001, 0.07 - effect * unit)
    return np.asarray(generator.binomial(200, wrong[:, None], size=(arms, seeds)) / 200 / unit)


def split(generator: np.random.Generator, arms: int, seeds: int, effect: float) -> Array:
    """The first variant ends 5 deviations above or below the others, each for half of the seeds."""
    values = normal(generator, arms, seeds, effect)
    values[1] += np.where(generator.permutation(seeds) < seeds / 2, 5.0, -5.0)
    return values


def hard_seeds(generator: np.random.Generator, arms: int, seeds: int, effect: float) -> Array:
    """One seed of five is hard for all arms: 10 deviations worse."""
    return normal(generator, arms, seeds, effect) + 10.0 * (generator.random(seeds) < 0.2)


def _failing(share: float) -> Runs:
    def runs(generator: np.random.Generator, arms: int, seeds: int, effect: float) -> Array:
        values = normal(generator, arms, seeds, effect)
        values[generator.random((arms, seeds)) < share] = np.nan
        return values

    return runs


RUNS: dict[str, Runs] = {
    "normal": normal,
    "Student t(3)": student,
    "lognormal": lognormal,
    "counts near a ceiling": counts,
    "variant split astride": split,
    "hard seeds, shared": hard_seeds,
    "1 % of runs fail": _failing(0.01),
    "5 % of runs fail": _failing(0.05),
}


class Rates(NamedTuple):
    """Shares of studies of one design; see the module's docstring."""

    runs: str
    arms: int
    seeds: int
    effect: float
    better: float
    unstable: float
    false: float


def study_of(values: Array) -> Study:
    """The study of these final values, where lower is better."""
    variants = [Variant(f"{arm}", f"{arm}", {"arm": arm}) for arm in range(len(values))]
    loaded = []
    for variant, arm in zip(variants, values, strict=True):
        for seed, value in enumerate(arm):
            failed = bool(np.isnan(value))
            record = RunRecord(
                status=Status.diverged if failed else Status.finished,
                study="simulated",
                cell=variant.cell,
                label=variant.label,
                factors={},
                seed=seed,
                metrics={} if failed else {"eval/loss": float(value)},
            )
            loaded.append(LoadedRun(variant, seed, record))
    return Study("simulated", "memory", tuple(variants), tuple(range(values.shape[1])), tuple(loaded))


def leave_out_what_no_verdict_rests_on() -> None:
    """Checks by other tests (all 2^20 sign flips at 20 seeds) and power cost most of the time."""
    for module, name, result in (
        (analysis.statistics.paired, "sensitivity", Sensitivity()),
        (analysis.statistics.paired, "why_fragile", None),
        (analysis.verdicts, "why_fragile", None),
        (analysis.verdicts, "flags_of", ()),
        (analysis.verdicts, "minimum_detectable_effect", None),
    ):
        setattr(module, name, functools.partial(_always, result))


def _always(result: object, *_: object, **__: object) -> object:
    return result


def rates(name: str, arms: int, seeds: int, effect: float, studies: int) -> Rates:
    """Simulate so many studies of one design; the same values for the same arguments."""
    generator = np.random.default_rng([sorted(RUNS).index(name), arms, seeds, int(10 * effect)])
    found = np.zeros((studies, 3), dtype=bool)
    for row in found:
        values = RUNS[name](generator, arms, seeds, effect)
        if np.isnan(values).all(axis=1).any():
            continue
        verdicts = [str(against.judgement.verdict) for _, against in compare(study_of(values)).others]
        equal = verdicts[1:] if effect else verdicts
        wrong = any(v in ("better", "worse") for v in equal) or bool(effect and verdicts[0] == "worse")
        row[:] = verdicts[0] == "better", verdicts[0] == "unstable", wrong
    return Rates(name, arms, seeds, effect, *map(float, found.mean(axis=0)))


def designs(options: argparse.Namespace) -> Iterator[tuple[str, int, int, float]]:
    """The designs that are asked for."""
    return itertools.product(RUNS, options.arms, options.seeds, options.effects)


def show(found: Sequence[Rates], studies: int, console: Console) -> None:
    """The rates of each design, in per cent, the numbers of seeds beside each other."""
    seeds = sorted({one.seeds for one in found})
    table = Table(title=f"per cent of {studies} studies: called better / unstable / any false verdict")
    for title in ("runs", "arms", "effect (SD)", *(f"n = {n}" for n in seeds)):
        table.add_column(title, no_wrap=True)
    cells = {(one.runs, one.arms, one.effect, one.seeds): one for one in found}
    for name, arms, effect in dict.fromkeys((one.runs, one.arms, one.effect) for one in found):
        shown = [cells[name, arms, effect, n] for n in seeds]
        texts = [f"{100 * one.better:.1f} / {100 * one.unstable:.1f} / {100 * one.false:.1f}" for one in shown]
        table.add_row(name, str(arms), f"{effect:g}", *texts)
    console.print(table)


def group_levels(samples: int = 400_000) -> dict[int, float]:
    """The .5 % point, for normal values, of the largest gap over the deviation within the two parts (two or more)."""
    generator, found = np.random.default_rng(1), {}
    for n in (5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 200):
        many = samples if n <= 20 else samples // 4
        values = np.sort(generator.normal(size=(many, n)), axis=1)
        gaps, row = np.diff(values, axis=1), np.arange(many)
        below = gaps.argmax(axis=1) + 1
        sums, squares = values.cumsum(axis=1), (values**2).cumsum(axis=1)
        low, low_squares = sums[row, below - 1], squares[row, below - 1]
        high, high_squares = sums[:, -1] - low, squares[:, -1] - low_squares
        within = low_squares - low**2 / below + high_squares - high**2 / (n - below)
        ratio = gaps.max(axis=1) / np.sqrt(np.maximum(within, 1e-300) / (n - 2))
        found[n] = float(np.quantile(np.where(np.minimum(below, n - below) > 1, ratio, 0.0), 0.995))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate the designs that are asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdict_rates", description=__doc__)
    parser.add_argument("--studies", type=int, default=1000, help="studies of each design (default: %(default)s)")
    parser.add_argument("--arms", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--seeds", type=int, nargs="+", default=[5, 8, 10, 20])
    parser.add_argument("--effects", type=float, nargs="+", default=[0.0, 1.0, 3.0], help="in SD of a difference")
    parser.add_argument("--json", action="store_true", help="print the rates as JSON lines")
    parser.add_argument("--levels", action="store_true", help="print the constants of analysis/statistics/groups.py")
    options = parser.parse_args(arguments)
    if options.levels:
        print({n: round(value, 2) for n, value in group_levels().items()})
        return 0
    leave_out_what_no_verdict_rests_on()
    found = []
    for design in designs(options):
        found.append(rates(*design, options.studies))
        if options.json:
            print(json.dumps(found[-1]._asdict()), flush=True)
    if not options.json:
        show(found, options.studies, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main())

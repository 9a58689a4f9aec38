"""The command `python -m analysis.plan`: what a study would find, and cost, before a run of it is trained.

    python -m analysis.plan --seeds 10 --arms 4 --margin 0.01 --sd 0.015 --correlation 0.5 --seconds 120 --cores 2
    python -m analysis.plan --seeds 10 --arms 4 --margin 2% --study multirun/copy_repeat --out plan

The SD across seeds is given, or taken from an earlier study with the time per run. Exit codes: 0, and 2 for bad input.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

from ablate.jsonfiles import write_atomic
from analysis import commands, sources
from analysis import formatting as fmt
from analysis.export import to_json
from analysis.planning import Plan, Step, checked, seconds_of_study, spread_of_arms, spread_of_study
from analysis.plots import power_curve
from analysis.plots.base import Plot, render
from analysis.results import MORE_THAN_200, Comparison
from analysis.scale import PLAIN
from analysis.study import StudyError
from analysis.tables import Cell, Column, Table
from analysis.task_sets import compare_tasks
from analysis.tasks import choose_task
from analysis.terminal import print_table

COLUMNS = (
    Column("seeds", "right"),
    Column("power", "right"),
    Column("detectable", "right"),
    Column("runs", "right"),
    Column("time", "right"),
    Column(""),
)


class _Parser(argparse.ArgumentParser):
    """One line for bad input, without the usage."""

    def error(self, message: str) -> NoReturn:
        """Print the line and exit."""
        self.exit(commands.BAD_INPUT, f"error: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the plan, as a table or as JSON, write its figure if asked, and return the exit code."""
    options = _parser().parse_args(arguments)
    return commands.guarded(lambda: _plan(options))


def _number(text: str) -> float:
    """A number as programs write it; Python's own 1_000 is none."""
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _whole(text: str) -> int:
    """A whole number."""
    if "_" in text:
        raise ValueError(text)
    return int(text)


# What argparse says of a value that is none.
_number.__name__, _whole.__name__ = "number", "whole number"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m analysis.plan", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=_whole, required=True, help="planned seeds of each arm")
    parser.add_argument(
        "--arms", type=_whole, default=2, help="variants, the baseline among them (default: %(default)s)"
    )
    parser.add_argument("--margin", required=True, help="smallest difference of interest: 0.01; 2%% with --study")
    parser.add_argument("--sd", type=_number, help="SD across seeds of an arm's final metric")
    parser.add_argument("--correlation", type=_number, help="with --sd: of two arms over shared seeds (default: 0)")
    parser.add_argument("--unpaired", action="store_true", help="with --sd: arms that share no seeds")
    parser.add_argument("--study", type=Path, help="an earlier study or table, for the SD and the time per run")
    parser.add_argument("--metric", help="its final metric (default: the declared one)")
    parser.add_argument("--transform", help="log: by ratios, with a margin in per cent")
    parser.add_argument("--baseline", help="its baseline (default: its plan's first)")
    parser.add_argument("--task", help="one task of a study of several")
    parser.add_argument("--sweep", default="latest", help="latest, all, or the id of a sweep (default: %(default)s)")
    sources.add_options(parser)
    parser.add_argument(
        "--alpha", type=_number, default=0.05, help="of all comparisons together (default: %(default)s)"
    )
    parser.add_argument("--power", type=_number, default=0.8, help="wanted for the margin (default: %(default)s)")
    parser.add_argument("--seconds", type=_number, help="of one run (default: the mean of the study's runs)")
    parser.add_argument("--cores", type=_whole, default=1, help="runs at a time (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument("--out", type=Path, help="folder for the power curve: PNG, SVG, PDF, CSV")
    return parser


def _plan(options: argparse.Namespace) -> int:
    plan = _planned(options)
    if options.out is not None:
        curve = Plot(
            "power_curve", (power_curve.__doc__ or "").splitlines()[0], power_curve.prepare_plan, power_curve.draw
        )
        for extension, content in sorted(render(curve, curve.prepare(plan)).files.items()):
            write_atomic(options.out / f"{curve.name}.{extension}", content)
    if options.json:
        sys.stdout.write(to_json(plan_data(plan)))
        return 0
    console = Console()
    print_table(plan_table(plan), console)
    for sentence in sentences(plan):
        console.print(Text(f"\n{sentence}"))
    if options.out is not None:
        console.print(f"\nfigure: {options.out / 'power_curve.png'}", soft_wrap=True, markup=False, highlight=False)
    return 0


def _planned(options: argparse.Namespace) -> Plan:
    """The plan that the options mean."""
    study = _study(options)
    if study is not None:
        margin, spread, scale = study.question.margin, spread_of_study(study), study.question.scale
        if margin is None:
            raise StudyError(f"--margin {options.margin}: the study's baseline has no finished run; give a number")
    else:
        margin, scale = _margin(options.margin), PLAIN
        spread = spread_of_arms(options.sd, options.correlation or 0.0, paired=not options.unpaired)
    seconds = options.seconds
    if seconds is None and study is not None:
        seconds = seconds_of_study(study)
    return checked(
        Plan(options.seeds, options.arms, margin, spread, options.alpha, options.power, seconds, options.cores, scale)
    )


def _study(options: argparse.Namespace) -> Comparison | None:
    """The earlier study; None when the SD is given. Raises StudyError unless it is one or the other."""
    if (options.study is None) == (options.sd is None):
        raise StudyError("give either --sd, the SD across seeds of an arm, or --study, an earlier study")
    if options.study is None:
        for name in ("metrics", "metric", "transform", "baseline", "task"):
            if getattr(options, name):
                raise StudyError(f"--{name} {getattr(options, name)}: has no effect without --study")
        return None
    for name in ("correlation", "unpaired"):
        if getattr(options, name):
            raise StudyError(f"--{name}: has no effect with --study, whose seeds tell")
    study, metric = sources.load(options), sources.metric_of(options)
    choose_task(study, options.task)
    return compare_tasks(
        study,
        metric,
        baseline=options.baseline,
        direction="lower",  # which of two signs is better has no part in this
        margin=options.margin,
        transform=options.transform,
        task=options.task,
    ).first


def _margin(text: str) -> float:
    """A margin without a study. Raises StudyError for one in per cent and for what is no number."""
    if text.strip().endswith("%"):
        raise StudyError(f"--margin {text}: per cent are of a study's baseline; give a number, or --study")
    try:
        return _number(text)
    except ValueError:
        raise StudyError(f"--margin {text}: is not a number, such as 0.01") from None


def plan_table(plan: Plan) -> Table:
    """What some numbers of seeds give, the planned one and the needed one marked."""
    family = f"{plan.alpha:g} / {plan.comparisons}" if plan.comparisons > 1 else f"{plan.alpha:g}"
    test = "paired t" if plan.spread.paired else "t with two arms"
    caption = (
        f"Power of the {test} for {plan.words(plan.margin)} in a comparison with the baseline, at alpha {family}; "
        f"detectable: found with power {plan.target:g}. {plan.arms} arms; {plan.spread.source}."
    )
    return Table("plan", COLUMNS, [_row(plan, step) for step in plan.table()], caption)


def _row(plan: Plan, step: Step) -> tuple[Cell, ...]:
    marks = [f"power {plan.target:g}"] * (step.seeds == plan.needed) + ["planned"] * (step.seeds == plan.seeds)
    numbers = step.__dict__
    return (
        Cell(str(step.seeds), numbers),
        Cell(fmt.p_value(step.power)),
        Cell(plan.scale.size(step.detectable, 2) if step.detectable is not None else fmt.NOT_AVAILABLE),
        Cell(str(step.runs)),
        Cell(fmt.duration(step.seconds) if step.seconds is not None else fmt.NOT_AVAILABLE),
        Cell(", ".join(marks)),
    )


def sentences(plan: Plan) -> list[str]:
    """The answer in words: power, seeds needed, what can be detected, and the cost."""
    here = plan.step(plan.seeds)
    needed = plan.needed or MORE_THAN_200
    detects = f", and {plan.words(here.detectable)} with power {plan.target:g}" if here.detectable is not None else ""
    lines = [
        f"{plan.seeds} seeds find {plan.words(plan.margin)} with power {here.power:.2f}{detects}. To find the former "
        f"with power {plan.target:g} takes {needed} seeds."
    ]
    if plan.seconds is None:
        return [*lines, f"{here.runs} runs; give --seconds to learn what they cost."]
    total = here.runs * plan.seconds
    wall = f", {fmt.duration(total / plan.cores)} with {plan.cores} runs at a time" if plan.cores > 1 else ""
    cost = f"{here.runs} runs of {fmt.duration(plan.seconds)} take {fmt.duration(total)}{wall}"
    if plan.needed and plan.needed != plan.seeds:
        cost += f"; with {plan.needed} seeds {fmt.duration(plan.needed * plan.arms * plan.seconds)}"
    return [*lines, f"{cost}."]


def plan_data(plan: Plan) -> dict[str, Any]:
    """Every number, unrounded."""
    here = plan.step(plan.seeds)
    return {
        "seeds": plan.seeds,
        "arms": plan.arms,
        "margin": plan.margin,
        "sd": plan.spread.sd,
        "sd_source": plan.spread.source,
        "paired": plan.spread.paired,
        "alpha": plan.alpha,
        "comparisons": plan.comparisons,
        "alpha_per_comparison": plan.level,
        "target_power": plan.target,
        "power": here.power,
        "detectable": here.detectable,
        "seeds_needed": plan.needed or MORE_THAN_200,
        "runs": here.runs,
        "seconds_per_run": plan.seconds,
        "hours": None if here.seconds is None else here.seconds / 3600,
        "cores": plan.cores,
        "wall_hours": None if here.seconds is None else here.seconds / 3600 / plan.cores,
        "curve": [dict(step.__dict__) for step in plan.curve()],
    }


if __name__ == "__main__":
    sys.exit(main())

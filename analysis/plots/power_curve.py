"""Power against the number of seeds, before a study is run.

The probability that one comparison finds a true difference as large as the margin; the planned number of seeds and the
one with the wanted power are marked.
"""

import pandas as pd
from matplotlib.figure import Figure

from analysis.planning import Plan

COLUMNS = ["seeds", "power", "detectable", "runs", "planned", "needed", "target", "margin", "comparisons"]

COLOUR, GREY = "#0072b2", "#777777"


def prepare_plan(plan: Plan) -> pd.DataFrame:
    """One row per number of seeds."""
    fixed = (plan.target, plan.margin, plan.comparisons)
    found = [
        (one.seeds, one.power, one.detectable, one.runs, one.seeds == plan.seeds, one.seeds == plan.needed, *fixed)
        for one in plan.curve()
    ]
    return pd.DataFrame(found, columns=COLUMNS)


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw the curve, the wanted power, the planned seeds as a line and the needed ones as a dot."""
    figure.set_size_inches(6.4, 3.6)
    axes = figure.add_subplot()
    axes.plot(numbers["seeds"], numbers["power"], color=COLOUR)
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("seeds per arm")
    if numbers.empty:
        return
    first = numbers.iloc[0]
    axes.set_ylabel(f"power for a difference of {first['margin']:.3g}")
    axes.axhline(first["target"], color=GREY, linestyle="--", linewidth=1)
    for seeds in numbers.loc[numbers["planned"], "seeds"].astype(int):
        axes.axvline(seeds, color=GREY, linewidth=1)
        axes.annotate(f"planned: {seeds}", (seeds, 0.02), (4, 2), textcoords="offset points", color=GREY)
    needed = numbers[numbers["needed"]]
    axes.plot(needed["seeds"], needed["power"], color=COLOUR, marker="o", linestyle="none")
    count = int(first["comparisons"])
    title = f"{int(needed['seeds'].iloc[0])} seeds for power {first['target']:g}" if len(needed) else "beyond 200 seeds"
    axes.set_title(f"{title}, {count} comparison{'s' if count > 1 else ''}")

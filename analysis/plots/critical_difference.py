"""Mean ranks over tasks, with the critical difference.

A row per variant, the best at the top: its mean rank over the tasks (1 is best). Variants joined by a grey bar cannot
be told apart: their mean ranks differ by no more than Nemenyi's critical difference (the bar at the top), or the
variants do not differ at all by the test of Friedman, Iman and Davenport. Verdicts are on comparisons with the baseline
alone, which is a smaller family.
"""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.over_tasks import Ranking
from analysis.plots.base import rows
from analysis.plots.style import style_of

COLUMNS = ["order", "label", "mean_rank", "baseline", "p_holm", "verdict", "critical_difference", "differ", "tasks"]

GREY = "#777777"


def prepare_ranking(ranking: Ranking) -> pd.DataFrame:
    """One row per variant, the best rank first."""
    found = [
        (
            one.place,
            one.label,
            one.mean_rank,
            one.label == ranking.baseline,
            one.p_holm,
            str(one.verdict) if one.verdict else "baseline",
            ranking.critical,
            ranking.differ,
            len(ranking.tasks),
        )
        for one in ranking.variants
    ]
    return pd.DataFrame(found, columns=COLUMNS).sort_values("mean_rank", kind="stable", ignore_index=True)


def groups(ranks: Sequence[float], reach: float) -> list[tuple[int, int]]:
    """The largest runs of at least two sorted ranks that lie within `reach`, by first and last place."""
    found: list[tuple[int, int]] = []
    for first, lowest in enumerate(ranks):
        last = max(place for place, rank in enumerate(ranks) if rank <= lowest + reach + 1e-9)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def draw(numbers: pd.DataFrame, figure: Figure) -> None:
    """Draw the ranks, the critical difference as a scale, and a bar for each group."""
    variants = rows(numbers)
    if not variants:
        figure.add_subplot()
        return
    count, critical = len(variants), float(variants[0]["critical_difference"])
    ranks = [float(one["mean_rank"]) for one in variants]
    figure.set_size_inches(7.2, 1.6 + 0.3 * count)
    axes = figure.add_subplot()
    axes.errorbar([1 + critical / 2], [-1], xerr=critical / 2, color=GREY, capsize=4, linewidth=1.2)
    axes.annotate(
        f"critical difference {critical:.2f}", (1 + critical, -1), (6, 0), textcoords="offset points", va="center"
    )
    for place, one in enumerate(variants):
        style = style_of(int(one["order"]))
        axes.plot([ranks[place]], [place], color=style.colour, marker=style.marker, markersize=7, linestyle="none")
        axes.hlines(place, 1, ranks[place], color=style.colour, linewidth=0.8, alpha=0.5)
    reach = critical if variants[0]["differ"] else float("inf")
    for level, (first, last) in enumerate(groups(ranks, reach)):
        axes.vlines(count + 0.12 * (level + 1), first - 0.15, last + 0.15, color=GREY, linewidth=3)
    axes.set_yticks(range(count), [_name(one) for one in variants])
    axes.set_ylim(count - 0.4, -1.7)
    axes.set_xlabel("mean rank (1 is best)")
    axes.set_title(f"ranks on {variants[0]['tasks']} tasks")


def _name(one: dict[str, object]) -> str:
    return f"{one['label']} (baseline)" if one["baseline"] else f"{one['label']} ({one['verdict']})"

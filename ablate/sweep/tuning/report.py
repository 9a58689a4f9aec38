"""What a tuning says on the terminal: what it will do; at the end what each variant chose, and what that was worth."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from ablate.jsonfiles import RecordError, read_json
from ablate.numbers import score
from ablate.records import StudyFolder
from ablate.resume import read_or_none
from ablate.screen import Column, ScreenTable, say
from ablate.sweep.search.prepare import Prepared


def announce(console: Console, state: Mapping[str, Any], prepared: Sequence[Prepared]) -> None:
    """Print the variants, the space, the budget and the seeds."""
    first = prepared[0]
    done = sum(one["done"] for one in state["variants"])
    evaluation = state["evaluation_seeds"]
    lines = [
        f"[bold]{escape(str(first.folder.path))}[/bold]: tuning {escape(state['name'])}, "
        f"{len(state['variants'])} variants x {state['budget']} trials x {len(state['tuning_seeds'])} seeds, "
        f"{done} variants done",
        *(f"  {escape(key)}: {escape(text)}" for key, text in state["space"].items()),
        f"  chosen by {first.objectives[0].direction} {state['metric']} on seeds {_list(state['tuning_seeds'])} "
        f"(evaluation.seed={evaluation['tuning']})",
        f"  reported on seeds {_list(state['report_seeds'])} (evaluation.seed={evaluation['report']})",
        f"  kept in {escape(str(first.folder.tuning(state['name']).absolute()))}",
    ]
    for line in lines:
        say(console, Text.from_markup(line))


def _list(seeds: Sequence[int]) -> str:
    if len(seeds) > 3 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def sum_up(console: Console, state: Mapping[str, Any], folder: StudyFolder) -> None:
    """Print what each variant chose, its score where it was chosen and on fresh seeds, and what its search cost."""
    titles = [*state["space"], "where chosen", "fresh seeds", "trials", "steps"]
    columns = [Column("variant"), *(Column(title, "right") for title in titles)]
    console.print()
    console.print(ScreenTable(columns, [_row(one, state, folder) for one in state["variants"]]))
    console.print(
        f"{state['metric']}; 'where chosen' is the best of the trials on the seeds that chose it and flatters; compare "
        "the variants on fresh seeds (table above, and analysis.report)",
        highlight=False,
        soft_wrap=True,
    )


def _row(one: Mapping[str, Any], state: Mapping[str, Any], folder: StudyFolder) -> list[str]:
    chosen = one["chosen"] or {}
    counts = one.get("trials", {})
    values = [_number(chosen.get(key, "–")) for key in state["space"]]
    best = score(one["score"]) if one.get("score") is not None else "none finished"
    counted = ", ".join(f"{count} {word}" for word, count in counts.items())
    return [one["label"], *values, best, _fresh(one, state, folder), counted, _steps(one, folder)]


def _fresh(one: Mapping[str, Any], state: Mapping[str, Any], folder: StudyFolder) -> str:
    """Return the mean over the report's runs of one variant."""
    if state["report_sweep"] is None:
        return "–"
    plan = folder.read_sweep(state["report_sweep"])
    cells = [cell for cell in plan.cells if cell.label == one["label"]]
    records = [read_or_none(folder.run(cell.folder, seed)) for cell in cells for seed in plan.seeds]
    found = [record.metrics.get(state["metric"]) for record in records if record]
    values = [value for value in found if value is not None and math.isfinite(value)]
    return f"{score(math.fsum(values) / len(values))} (n = {len(values)})" if values else "–"


def _steps(one: Mapping[str, Any], folder: StudyFolder) -> str:
    try:
        searched = read_json(folder.search_trials(one["search"]))
    except (FileNotFoundError, RecordError):
        return "–"
    return str(sum(trial["steps"] for trial in searched["trials"]))


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)

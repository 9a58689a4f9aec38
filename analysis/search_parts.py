"""What a report says of searches and tunings: a part each, with sentences, tables and figures.

The best of many trials was chosen for its score, so nothing here is a verdict; those are of runs on other seeds.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ablate.numbers import score
from analysis import formatting as fmt
from analysis.plots.base import Drawn, Earlier, draw_search, draw_tuning
from analysis.searches import Search, Searches, Trial, Tuned, Tuning
from analysis.tables import Cell, Column, Table

MOST_TRIALS = 20
"""Rows in the table of trials."""


@dataclass(frozen=True)
class Part:
    """One search or tuning in the report; its tables and figures lie under `folder`."""

    title: str
    sentences: Sequence[str]
    tables: Sequence[Table]
    drawn: Sequence[Drawn]
    folder: str


def search_parts(found: Searches, earlier: Earlier) -> list[Part]:
    """A part per tuning, then one per search that belongs to none."""
    parts = [_tuning_part(one, earlier) for one in found.tunings]
    return parts + [_search_part(one, earlier) for one in found.searches if one.counted]


def _folder(kind: str, name: str) -> str:
    return f"{kind}-{re.sub(r'[^A-Za-z0-9_.=-]+', '-', name).strip('.-') or kind}/"


# a search -----------------------------------------------------------------------------------------------------------


def _search_part(search: Search, earlier: Earlier) -> Part:
    folder = _folder("search", search.name)
    tables = [_trials_table(search, folder), *_importance_tables(search, folder)]
    return Part(f"Search: {search.name}", _sentences(search), tables, draw_search(search, earlier, folder), folder)


def counts_of(trials: Sequence[Trial]) -> str:
    """How many trials stand how: 20 finished, 9 pruned."""
    states = [one.state for one in trials]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "none"


def _sentences(search: Search) -> list[str]:
    goals = ", ".join(f"{way} {metric}" for way, metric in zip(search.directions, search.metrics, strict=True))
    steps = sum(one.steps for one in search.trials)
    told = [
        f"{len(search.counted)} of {search.n_trials} trials ({counts_of(search.counted)}) to {goals}; sampler "
        f"{search.sampler}, pruner {search.pruner}; each with seeds {', '.join(map(str, search.seeds))}; "
        f"{steps:,} steps of training in all."
    ]
    lost = len(search.trials) - len(search.counted)
    told += [f"{lost} more trials were lost with their process and tried again; they do not count."] if lost else []
    if len(search.metrics) > 1:
        return told
    best = search.best
    if best is None:
        return [*told, "No trial finished."]
    beaten = [one.values[0] for one in search.finished if one is not best]
    second = f"; the next best {score(search.sign * min(search.sign * one for one in beaten))}" if beaten else ""
    told.append(
        f"Best: trial {best.number}, {search.metrics[0]} {score(best.values[0])}{second}. It is the best of "
        f"{len(search.finished)} and was chosen for that, so it flatters: train it with other seeds before it is "
        "compared with anything."
    )
    return told + _edges(search, best)


def _edges(search: Search, best: Trial) -> list[str]:
    """Say where the best lies at the end of what was tried."""
    found = []
    for key in search.numeric:
        tried = sorted({float(one.params[key]) for one in search.counted})
        value = float(best.params[key])
        if len(tried) > 3 and value in (tried[0], tried[-1]):
            which = "smallest" if value == tried[0] else "largest"
            found.append(
                f"{key} of the best is the {which} that was tried ({value:.4g}): a wider space may hold better."
            )
    return found


def _trials_table(search: Search, folder: str) -> Table:
    """The best trials, or all of a few."""
    keys = list(search.space)
    columns = [Column("trial", "right"), Column("status")]
    columns += [Column(metric, "right") for metric in search.metrics]
    columns += [*(Column(key, "right") for key in keys), Column("steps", "right")]
    ranked = sorted(
        search.counted, key=lambda one: (not one.values, search.sign * (one.values or (0.0,))[0], one.number)
    )
    rows = [_trial_row(search, one, keys) for one in ranked[:MOST_TRIALS]]
    rest = f" The best {MOST_TRIALS} of {len(ranked)}." if len(ranked) > MOST_TRIALS else ""
    caption = f"Trials from the best on: mean over the seeds {', '.join(map(str, search.seeds))}.{rest}"
    return Table(f"{folder}trials", columns, rows, caption)


def _trial_row(search: Search, one: Trial, keys: Sequence[str]) -> list[Cell]:
    status = one.state if one.feasible else f"{one.state}, breaks a constraint"
    values = [Cell(score(value), {metric: value}) for metric, value in zip(search.metrics, one.values, strict=False)]
    values = values or [Cell("–", {metric: None}) for metric in search.metrics]
    given = [Cell(parameter(one.params.get(key)), {key: one.params.get(key)}) for key in keys]
    number, steps = Cell(str(one.number), {"trial": one.number}), Cell(f"{one.steps:,}", {"steps": one.steps})
    return [number, Cell(status, {"status": one.state}), *values, *given, steps]


def parameter(value: object) -> str:
    """Return a parameter's value for people."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _importance_tables(search: Search, folder: str) -> list[Table]:
    if not search.importances:
        return []
    metrics = list(search.importances)
    keys = sorted(search.space, key=lambda key: -search.importances[metrics[0]].get(key, 0.0))
    rows = [[Cell(key, {"parameter": key}), *(_share(search.importances[m], key, m) for m in metrics)] for key in keys]
    caption = (
        f"Share of each parameter in what sets the best tenth of {len(search.finished)} finished trials apart from all "
        "of them (PED-ANOVA, Watanabe, Bansal and Hutter 2023). From few trials it is rough."
    )
    columns = [Column("parameter"), *(Column(metric, "right") for metric in metrics)]
    return [Table(f"{folder}importances", columns, rows, caption)]


def _share(shares: Mapping[str, float], key: str, metric: str) -> Cell:
    return Cell(f"{fmt.percent(shares[key])} %" if key in shares else "–", {metric: shares.get(key)})


# a tuning -----------------------------------------------------------------------------------------------------------


def _tuning_part(tuning: Tuning, earlier: Earlier) -> Part:
    folder = _folder("tuning", tuning.name)
    begun = [one for one in tuning.variants if one.search is not None]
    drawn = draw_tuning(tuning, earlier, folder) if begun else []
    return Part(f"Tuning: {tuning.name}", _tuning_sentences(tuning), [_tuned_table(tuning, folder)], drawn, folder)


def _tuning_sentences(tuning: Tuning) -> list[str]:
    space = "; ".join(f"{key}: {text}" for key, text in tuning.space.items())
    seeds = ", ".join(map(str, tuning.tuning_seeds))
    told = [
        f"Each of {len(tuning.variants)} variants had the same search of {tuning.budget} trials over {space}, and "
        f"chose by {tuning.metric} on seeds {seeds}.",
        f"The chosen configs were trained on seeds that chose nothing ({', '.join(map(str, tuning.report_seeds))}) and "
        f"evaluated on other data: sweep {tuning.report_sweep or '(not begun)'}. Only these are compared.",
    ]
    none = [one.label for one in tuning.variants if one.search is not None and one.chosen is None]
    return told + ([f"No trial finished for {', '.join(none)}."] if none else [])


def _tuned_table(tuning: Tuning, folder: str) -> Table:
    keys = list(tuning.space)
    columns = [Column("variant"), *(Column(f"{key} chosen", "right") for key in keys)]
    columns += [Column(title, "right") for title in (f"{tuning.metric} where chosen", "trials", "steps", "seconds")]
    caption = (
        f"What each variant chose and what its search cost. The score where it was chosen is the best of up to "
        f"{tuning.budget} and flatters; the comparison is of the fresh seeds."
    )
    return Table(f"{folder}tuned", columns, [_tuned_row(one, keys) for one in tuning.variants], caption)


def _tuned_row(one: Tuned, keys: Sequence[str]) -> list[Cell]:
    chosen, trials = one.chosen or {}, one.search.trials if one.search else ()
    steps, seconds = sum(trial.steps for trial in trials), sum(trial.seconds for trial in trials)
    return [
        Cell(one.label, {"label": one.label}),
        *(Cell(parameter(chosen.get(key)), {key: chosen.get(key)}) for key in keys),
        Cell("–" if one.score is None else score(one.score), {"score": one.score}),
        Cell(counts_of(one.search.counted) if one.search else "–", {"trials": len(trials)}),
        Cell(f"{steps:,}", {"steps": steps}),
        Cell(f"{seconds:,.0f}", {"seconds": seconds}),
    ]

"""What a search says on the terminal: what it will do, each trial, the table at the end, the best config to paste."""

import shlex
from collections.abc import Sequence
from typing import Any

import optuna
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.plugins.launcher import Launcher
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from ablate.config.labels import plain_value
from ablate.config.register import known_groups
from ablate.jsonfiles import write_atomic
from ablate.numbers import score
from ablate.screen import Column, ScreenTable, say
from ablate.sweep.search import trials
from ablate.sweep.search.export import STATES, state_of
from ablate.sweep.search.prepare import Prepared
from ablate.sweep.search.samplers import short
from ablate.sweep.search.storage import SQLITE, shown

MOST_ROWS = 40
"""Trials in the table at the end; of more, the best ones."""

STYLES = {"finished": "green", "failed": "red"}


def announce(console: Console, prepared: Prepared, launcher: Launcher, done: int) -> None:
    """Print what is searched, how, where it is kept, and what is there already."""
    settings, seeds = prepared.settings, prepared.seeds
    goals = ", ".join(f"{one.direction} {one.metric}" for one in prepared.objectives)
    pruner = short(prepared.pruner) if prepared.pruner else "none"
    lines = [
        f"[bold]{escape(str(prepared.folder.path))}[/bold]: search {escape(repr(settings.study_name))}, "
        f"{prepared.n_trials} trials, {min(done, prepared.n_trials)} done; seeds {', '.join(map(str, seeds))}",
        *(f"  {escape(one.key)}: {escape(str(one))}" for one in prepared.space.parameters),
        f"{goals}; sampler {escape(short(prepared.samplers.node))}; pruner {escape(pruner)}",
        f"{settings.n_jobs} at a time through {type(launcher).__name__}; kept in {escape(shown(prepared.place))}",
        *(f"note: {note}" for note in notes(prepared, launcher)),
    ]
    for line in lines:
        say(console, Text.from_markup(line))


def notes(prepared: Prepared, launcher: Launcher) -> list[str]:
    """Return what a user should know of these settings."""
    settings, found = prepared.settings, []
    if not prepared.samplers.repeatable:
        found.append("without hydra.sweeper.sampler.seed the same search asks for other trials")
    if settings.n_jobs > 1:
        found.append(
            f"the same trials come again with n_jobs={settings.n_jobs} only: fewer results are known when asking"
        )
    if settings.n_jobs > 1 and prepared.pruner:
        found.append("pruning depends on which trial is first, so a search with several at a time is not repeatable")
    if prepared.samplers.limit is not None and prepared.n_trials < settings.n_trials:
        found.append(f"the grid has {prepared.n_trials} combinations")
    if type(launcher).__name__ == "BasicLauncher" and settings.n_jobs > 1:
        found.append("hydra/launcher=basic trains one run after the other, whatever n_jobs says")
    elif settings.n_jobs > 1:
        found.append("the next trials are asked for when all of those in progress are over")
    if prepared.place.startswith(SQLITE) and settings.n_jobs > 1:
        found.append("SQLite bears few writers and no network folder; the default journal, or PostgreSQL, bears both")
    return found


def trial_line(console: Console, prepared: Prepared, one: FrozenTrial) -> None:
    """Print how a trial ended."""
    word = state_of(one)
    shown_values = ", ".join(f"{key}={_number(value)}" for key, value in one.params.items())
    value = "  " + ", ".join(_goals(prepared, one)) if one.state is TrialState.COMPLETE else ""
    reason = f"  {' '.join(str(one.user_attrs[trials.REASON]).split())}" if trials.REASON in one.user_attrs else ""
    style = STYLES.get(word, "yellow")
    rest = f"{value}  {shown_values}{reason}"
    say(console, Text.assemble(f"trial {one.number} ", (word, style), rest))


def _goals(prepared: Prepared, one: FrozenTrial) -> list[str]:
    return [f"{goal.metric} {score(value)}" for goal, value in zip(prepared.objectives, one.values, strict=True)]


def sum_up(console: Console, study: optuna.Study, prepared: Prepared) -> None:
    """Print the table of trials, and the best as overrides; write the best as YAML."""
    counted = trials.counted(study)
    console.print(trial_table(counted, prepared), highlight=False)
    counts = {word: sum(state_of(one) == word for one in counted) for word in STATES.values()}
    console.print(", ".join(f"{count} {word}" for word, count in counts.items() if count), highlight=False)
    best = best_trials(study)
    if not best:
        console.print(no_best(counted, prepared), style="red", highlight=False, markup=False, soft_wrap=True)
        return
    for one in best:
        overrides = shlex.join(prepared.space.overrides(one.params))
        title = "best" if len(prepared.objectives) == 1 else "on the front"
        console.print(f"{title}: trial {one.number}, {', '.join(_goals(prepared, one))}", highlight=False)
        console.print(f"  {overrides}", highlight=False, soft_wrap=True, markup=False)
    if len(prepared.objectives) == 1:
        _write_best(console, prepared, best[0])


def no_best(counted: Sequence[FrozenTrial], prepared: Prepared) -> str:
    """Return why there is no best config, and what to do about trials that were pruned."""
    kept = " and kept hydra.sweeper.constraints" if prepared.constraints else ""
    pruned = sum(one.state is TrialState.PRUNED for one in counted)
    if not pruned:
        return f"no trial finished{kept}, so there is no best config"
    what = f"all {pruned} trials were pruned" if pruned == len(counted) else f"no trial finished{kept}, {pruned} pruned"
    return (
        f"{what}, so there is no best config; the same command with hydra/sweeper/pruner=none and a new "
        "hydra.sweeper.study_name trains them to their ends"
    )


def best_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return the best finished trial that keeps its constraints; with several objectives, those that none beats."""
    if not any(trials.is_feasible(one) for one in trials.finished(trials.all_trials(study))):
        return []
    return [study.best_trial] if len(study.directions) == 1 else list(study.best_trials)


def trial_table(counted: Sequence[FrozenTrial], prepared: Prepared) -> ScreenTable:
    """Return the trials in their order, or the best of many."""
    columns = [Column("trial", "right"), Column("status")]
    columns += [Column(goal.metric, "right") for goal in prepared.objectives]
    columns += [Column(key) for key in prepared.space.keys]
    columns += [Column("constraints", wraps=True)] if prepared.constraints else []
    rows = list(counted)
    if len(rows) > MOST_ROWS:
        sign = 1 if prepared.objectives[0].direction == "minimize" else -1
        rows = sorted(trials.finished(rows), key=lambda one: sign * one.values[0])[:MOST_ROWS]
    cells = []
    for one in rows:
        values = one.values if one.state is TrialState.COMPLETE else []
        scores = [score(value) for value in values] or ["–"] * len(prepared.objectives)
        given = [_number(one.params.get(key, "–")) for key in prepared.space.keys]
        kept = [_kept(one)] if prepared.constraints else []
        cells.append([str(one.number), state_of(one), *scores, *given, *kept])
    return ScreenTable(columns, cells)


def _kept(one: FrozenTrial) -> str:
    """Return the constraints that a trial broke, or that it kept all."""
    if one.state is not TrialState.COMPLETE:
        return "–"
    return ", ".join(f"not {name}" for name, excess in one.constraints.items() if excess > 0) or "kept"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _write_best(console: Console, prepared: Prepared, best: FrozenTrial) -> None:
    """Write the best as an experiment, with the command that trains it."""
    path = prepared.folder.search_best(prepared.settings.study_name)
    title = f"{', '.join(_goals(prepared, best))}: trial {best.number} of search {prepared.settings.study_name}"
    text = as_experiment(title, prepared.space.overrides(best.params))
    write_atomic(path, text.encode())
    folder = path.absolute().parents[1]
    console.print(
        f"written to {path}; python -m ablate.run --config-dir {shlex.quote(str(folder))} experiment={path.stem}",
        highlight=False,
        soft_wrap=True,
        markup=False,
    )


def as_experiment(title: str, overrides: Sequence[str]) -> str:
    """Return overrides as the YAML of conf/experiment/: groups in the defaults list, values as nested keys."""
    groups: list[Any] = []
    values: dict[str, Any] = {}
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        key = str(override.key_or_group)
        if key == "experiment":  # the group that this file is chosen from
            groups.insert(0, {"/experiment@_global_": plain_value(override.value())})
            continue
        if key in known_groups():
            groups.append({f"override /{key}": plain_value(override.value())})
            continue
        node = values
        *parents, last = key.split(".")
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = plain_value(override.value())
    content = {**({"defaults": [*groups, "_self_"]} if groups else {}), **values}
    return f"# @package _global_\n# {title}\n" + yaml.safe_dump(content, sort_keys=False, allow_unicode=True)

"""A tuning from its first trial to its verdict: a search for each variant, then one sweep of what they chose.

The searches are those of `ablate.sweep.search`, one after the other, alike in space, sampler, budget and seeds; the
sweep is `ablate.sweep.grid`'s, with seeds and evaluation data that chose nothing. What was done stands in
`tuning/<name>.json` and is written after every part, so the same command goes on where it was stopped.
"""

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import optuna
from hydra.core.config_loader import ConfigLoader
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig
from rich.console import Console

from ablate import locks
from ablate.config.errors import ConfigError, refuse
from ablate.jsonfiles import RecordError, read_json, write_json
from ablate.records import SweepPlan
from ablate.sweep.cells import Cell, Composer
from ablate.sweep.grid import FAILED, INTERRUPTED, Sweep
from ablate.sweep.plan import Plan, command_line, merge, new_sweep
from ablate.sweep.search import trials
from ablate.sweep.search.export import state_of
from ablate.sweep.search.prepare import Prepared, prepare
from ablate.sweep.search.report import best_trials
from ablate.sweep.search.samplers import short
from ablate.sweep.search.search import Search
from ablate.sweep.search.storage import differences
from ablate.sweep.tuning import report
from ablate.sweep.tuning.question import (
    EVALUATION,
    Question,
    Variant,
    read_question,
    read_tuning,
    with_default_space,
)


def run_tuning(loader: ConfigLoader, launcher: Launcher, config: DictConfig, arguments: Sequence[str]) -> None:
    """Check everything, tune, compare and sum up; ends the process with the exit code unless all is well."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    console = Console()
    try:
        tuner = Tuner(loader, launcher, config, arguments, console)
        report.announce(console, tuner.state, tuner.prepared)
        if tuner.prepared[0].first.config.sweep.dry_run:
            return
        code = tuner.run()
    except ConfigError as error:
        refuse(str(error))
    if code:
        sys.exit(code)


class Tuner:
    """One tuning in progress; `state` is the content of its file."""

    def __init__(
        self,
        loader: ConfigLoader,
        launcher: Launcher,
        config: DictConfig,
        arguments: Sequence[str],
        console: Console,
    ) -> None:
        """Check every variant's search and read what was done before; raises ConfigError."""
        self.loader, self.launcher, self.config, self.console = loader, launcher, config, console
        self.arguments, self.stopped = list(arguments), False
        self.settings = read_tuning(config)
        self.report_seeds = self.settings.fresh_seeds()
        self.composer = Composer(loader, config, self.report_seeds[0])
        self.question = self._question()
        self.prepared = [self._prepare(variant) for variant in self.question.variants]
        if len({one.folder.path for one in self.prepared}) > 1:
            raise ConfigError("study: these variants belong to several studies; name one with study=NAME")
        self.folder = self.prepared[0].folder
        self.path = self.folder.tuning(self.settings.study_name)
        self.evaluation = int(self.prepared[0].first.config.evaluation.seed)
        self.state = self._read_state()

    def run(self) -> int:
        """Tune what is not tuned yet, train the chosen configs on the fresh seeds, and return the exit code."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locks.hold(self.path.with_suffix(".lock")) as mine:
            if not mine:
                raise ConfigError(f"hydra.sweeper.study_name={self.settings.study_name}: this tuning goes on elsewhere")
            self._save()
            codes = [self._tune(place) for place in range(len(self.prepared))]
            if self.stopped:
                return max(codes)
            if all(one["chosen"] is None for one in self.state["variants"]):
                report.sum_up(self.console, self.state, self.folder)
                return FAILED
            code = self._compare()
        report.sum_up(self.console, self.state, self.folder)
        lost = any(one["chosen"] is None for one in self.state["variants"])
        return code or max(codes) or FAILED * lost

    # what is asked ----------------------------------------------------------------------------------------------------

    def _question(self) -> Question:
        question = read_question(self.loader, self.arguments, self.settings)
        if question.space or self.settings.params:
            return question
        given = [[*question.fixed, *one.overrides] for one in question.variants]
        rates = [float(self.composer.cell(overrides, []).config.optimizer["lr"]) for overrides in given]
        return with_default_space(question, rates)

    def _prepare(self, variant: Variant) -> Prepared:
        """Check the search of one variant; they differ in nothing but the variant."""
        settings = replace(self.settings, seeds=self.settings.tuning_seeds(), study_name=variant.search)
        try:
            return prepare(self.loader, self.config, self.question.arguments(variant), settings, list(variant.factors))
        except ConfigError as error:
            raise ConfigError(f"{variant.label}: {error}") from error

    def _identity(self) -> dict[str, dict[str, str]]:
        """Return what must stay the same for two calls to be one tuning, in words."""
        first, settings = self.prepared[0], self.settings
        shared = {key: value for key, value in first.identity().items() if key in ("space", "objectives", "seeds")}
        given = dict(one.partition("=")[::2] for one in self._kept(first.space.fixed))
        fixed = {key: value for key, value in given.items() if key not in self.question.variants[0].factors}
        return {
            **shared,
            "variants": {"variants": ", ".join(one.label for one in self.question.variants)},
            "fixed": fixed,
            "budget": {"hydra.sweeper.n_trials (budget)": str(first.n_trials)},
            "report": {"hydra.sweeper.report_seeds": ", ".join(map(str, self.report_seeds))},
            "search": {
                "hydra/sweeper/sampler": short(first.samplers.node),
                "hydra/sweeper/pruner": short(first.pruner) if first.pruner else "none",
                "hydra.sweeper.constraints": "; ".join(settings.constraints),
            },
        }

    @staticmethod
    def _kept(overrides: Sequence[str]) -> list[str]:
        """Leave out where and how runs are carried out, which changes no result."""
        return [one for one in overrides if not one.startswith(("runtime.", "sweep.", "study=", "hydra"))]

    def _read_state(self) -> dict[str, Any]:
        """Return what the tuning's file says, or what it will say; raises ConfigError when it asks something else."""
        identity = self._identity()
        try:
            state: dict[str, Any] = read_json(self.path)
        except FileNotFoundError:
            return self._new_state(identity)
        except RecordError as error:
            raise ConfigError(
                f"{error}; remove it, or choose another name=...: finished runs are used again"
            ) from error
        if faults := differences(state["identity"], identity):
            raise ConfigError(
                f"name={self.settings.study_name}: was begun with another tuning ({'; '.join(faults)}); give the "
                "command it was begun with, or another name=... (finished runs are used again)"
            )
        return state

    def _new_state(self, identity: dict[str, dict[str, str]]) -> dict[str, Any]:
        first = self.prepared[0]
        return {
            "name": self.settings.study_name,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": command_line(),
            "identity": identity,
            "budget": first.n_trials,
            "metric": first.objectives[0].metric,
            "direction": first.objectives[0].direction,
            "space": {one.key: str(one) for one in first.space.parameters},
            "tuning_seeds": first.seeds,
            "report_seeds": self.report_seeds,
            "evaluation_seeds": {"tuning": self.evaluation, "report": self.evaluation + 1},
            "variants": [self._open(variant) for variant in self.question.variants],
            "report_sweep": None,
        }

    @staticmethod
    def _open(variant: Variant) -> dict[str, Any]:
        return {
            "label": variant.label,
            "factors": variant.factors,
            "overrides": variant.overrides,
            "search": variant.search,
            "done": False,
            "chosen": None,
        }

    def _save(self) -> None:
        write_json(self.path, self.state)

    # choosing ---------------------------------------------------------------------------------------------------------

    def _tune(self, place: int) -> int:
        """Search for one variant and note what it chose; returns the search's exit code, 0 for one that was done."""
        variant = self.state["variants"][place]
        if variant["done"]:
            return 0
        if self.stopped:
            return 0
        self.console.rule(f"{variant['label']}: {place + 1} of {len(self.prepared)}", style="dim")
        arguments = self.question.arguments(self.question.variants[place])
        search = Search(self.prepared[place], self.launcher, self.console, arguments)
        try:
            code = search.run()
            self.stopped = code == INTERRUPTED or search.broken
            if not self.stopped:
                self._note(variant, search)
        finally:
            search.close()
        return code

    def _note(self, variant: dict[str, Any], search: Search) -> None:
        """Keep what a search chose, and whether it is through."""
        variant.update(_chosen(search), done=len(trials.counted(search.study)) >= self.state["budget"])
        self._save()

    # comparing --------------------------------------------------------------------------------------------------------

    def _compare(self) -> int:
        """Train the chosen configs on the fresh seeds as one sweep, and return its exit code."""
        parts = zip(self.prepared, self.question.variants, self.state["variants"], strict=True)
        cells = [self._cell(one, variant, known["chosen"]) for one, variant, known in parts if known["chosen"]]
        factors = list(self.question.variants[0].factors)
        merged = merge([cell.planned for cell in cells], factors)
        sweep = self._known_sweep([cell.cell for cell in merged]) or self._new_sweep(merged, cells)
        self.state["report_sweep"] = sweep.id
        self._save()
        sources = {cell.planned.cell: cell.source for cell in cells}
        running = Sweep(Plan(sweep, self.folder, cells[0].config, sources, sweep.seeds), self.launcher, self.console)
        self.console.rule("chosen configs on fresh seeds", style="dim")
        running.announce()
        return running.run()

    def _cell(self, prepared: Prepared, variant: Variant, chosen: dict[str, Any]) -> Cell:
        """Return a variant's cell with what it chose, evaluated on data that chose nothing."""
        kept = [one for one in prepared.space.overrides(chosen) if not one.startswith(f"{EVALUATION}=")]
        return self.composer.cell([*kept, f"{EVALUATION}={self.evaluation + 1}"], list(variant.factors))

    def _new_sweep(self, merged: list[Any], cells: list[Cell]) -> SweepPlan:
        sweep = new_sweep(merged, self.report_seeds, cells, self.arguments)
        sweep.notes.append(
            f"each variant with what {self.state['budget']} trials on seeds "
            f"{', '.join(map(str, self.state['tuning_seeds']))} chose for it (tuning {self.settings.study_name})"
        )
        return sweep

    def _known_sweep(self, cells: Sequence[str]) -> SweepPlan | None:
        """Return the report's sweep where it was begun with these cells."""
        with contextlib.suppress(FileNotFoundError, RecordError):
            plan = self.folder.read_sweep(self.state["report_sweep"] or "none")
            if [cell.cell for cell in plan.cells] == list(cells):
                return plan
        return None


def _chosen(search: Search) -> dict[str, Any]:
    """Return what a search chose, from finite trials, and what it cost."""
    counted = trials.counted(search.study)
    best = best_trials(search.study)
    words = [state_of(one) for one in counted]
    return {
        "chosen": dict(best[0].params) if best else None,
        "trial": best[0].number if best else None,
        "score": best[0].value if best else None,
        "trials": {word: words.count(word) for word in dict.fromkeys(words)},
    }

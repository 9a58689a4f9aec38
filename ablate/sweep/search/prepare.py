"""Everything that can be known to be wrong with a search before anything runs, and what the search is made of."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig, OmegaConf
from optuna.pruners import NopPruner, WilcoxonPruner

from ablate.config import build, preflight
from ablate.config.errors import ConfigError
from ablate.config.labels import factors_of
from ablate.config.schema import Until
from ablate.config.signature import check_node
from ablate.records import StudyFolder
from ablate.sweep.cells import Cell, Composer
from ablate.sweep.plan import check_shared
from ablate.sweep.search.constraints import Constraint, read_constraints
from ablate.sweep.search.objective import Objective, final_metrics, objectives_of
from ablate.sweep.search.samplers import Samplers, make_pruner
from ablate.sweep.search.settings import Settings
from ablate.sweep.search.space import Space, read_space
from ablate.sweep.search.storage import address
from ablate.training import scoring

Options = TypeVar("Options", bound=Settings)


class Prepared(NamedTuple):
    """A checked search. `pruner` is its node, null for none; `place` where trials are kept.

    `by_seed` says that the pruner judges a trial after each of its seeds, not a run at its evaluations. `variant`
    are the fixed keys that a trial's label names beside the searched ones.
    """

    settings: Settings
    space: Space
    composer: Composer
    first: Cell
    seeds: list[int]
    objectives: list[Objective]
    samplers: Samplers
    pruner: dict[str, Any] | None
    by_seed: bool
    place: str
    constraints: list[Constraint]
    variant: list[str]

    @property
    def folder(self) -> StudyFolder:
        """The study's folder."""
        return StudyFolder(self.first.study)

    @property
    def factors(self) -> list[str]:
        """The keys that a trial's label names."""
        return [*self.variant, *self.space.keys]

    @property
    def n_trials(self) -> int:
        """Trials in total: as many as asked for, or as there are."""
        return min(self.settings.n_trials, self.samplers.limit or self.settings.n_trials)

    def identity(self) -> dict[str, dict[str, Any]]:
        """Return what must stay the same for two calls to be one search, in words and numbers."""
        kept = {"hydra.sweeper.constraints": "; ".join(map(str, self.constraints))} if self.constraints else {}
        return {
            "space": {one.key: str(one) for one in self.space.parameters},
            "fixed": {key: str(value) for key, value in factors_of(self.space.fixed).items()},
            "objectives": {
                "hydra.sweeper.metric": ", ".join(f"{one.direction} {one.metric}" for one in self.objectives)
            },
            "seeds": {"seeds": ", ".join(map(str, self.seeds))},
            "study": {"study": self.folder.path.name},
            **({"constraints": kept} if kept else {}),
        }


def prepare(
    loader: ConfigLoader,
    config: DictConfig,
    arguments: Sequence[str],
    settings: Settings | None = None,
    variant: Sequence[str] = (),
) -> Prepared:
    """Check settings, space, cells, objectives, sampler and pruner, in this order; raises ConfigError in one line.

    Without `settings` they are those of `hydra.sweeper`; `variant` names fixed keys that belong into labels.
    """
    settings = settings or read_settings(config, Settings)
    space = read_space(loader, arguments, settings.params)
    seeds = _seeds(settings, space)
    composer = Composer(loader, config, seeds[0])
    first = check_cells(composer, space)
    metrics = scoring.final_metrics(build.trial_task(first.config.task), first.config.evaluation)
    objectives = objectives_of(settings, first.config.sweep, metrics)
    constraints = read_constraints(settings.constraints, final_metrics(metrics))
    samplers = Samplers(settings.sampler, space, len(objectives))
    composed = composer.compose(first.planned.overrides)
    node = OmegaConf.to_container(composed.hydra.sweeper.pruner, resolve=True)
    pruner, by_seed = _pruner(node, objectives, first, seeds)
    preflight.check_writable(first.study)
    place = address(settings.storage, StudyFolder(first.study), settings.study_name)
    return Prepared(
        settings=settings,
        space=space,
        composer=composer,
        first=first,
        seeds=seeds,
        objectives=objectives,
        samplers=samplers,
        pruner=pruner,
        by_seed=by_seed,
        place=place,
        constraints=constraints,
        variant=list(variant),
    )


def read_settings(config: DictConfig, kind: type[Options]) -> Options:
    """Return the checked options of `hydra.sweeper`: those of a search, or of what is made of searches."""
    node = OmegaConf.to_container(config.hydra.sweeper, resolve=False)
    assert isinstance(node, dict)
    check_node("hydra.sweeper", {**node, "sampler": {}, "pruner": None})
    settings = kind(**{str(key): value for key, value in node.items() if not str(key).startswith("_")})
    settings.check()
    return settings


def _seeds(settings: Settings, space: Space) -> list[int]:
    """Return the seeds of every trial, from `hydra.sweeper.seeds` or from `seed=` on the command line."""
    given = space.seeds or [0]
    if settings.seeds is None:
        if len(set(given)) < len(given):
            raise ConfigError(f"seed={','.join(map(str, given))}: a seed counts once")
        return given
    if len(given) > 1 or (space.seeds and isinstance(settings.seeds, list)):
        raise ConfigError(f"hydra.sweeper.seeds={settings.seeds}: seed= names the seeds already; leave one of them out")
    return settings.chosen_seeds(given[0])


def check_cells(composer: Composer, space: Space) -> Cell:
    """Compose and check every choice and end of the space; returns the first cell.

    Raises ConfigError with one line per distinct fault. A choice that does not fit with the first values of the other
    parameters may fit with their last ones; trials that combine what does not fit fail, and say so.
    """
    found, faults = [], dict[str, None]()
    for sample in space.samples():
        tried = [_try(composer, overrides, space) for overrides in sample]
        good = next((cell for cell in tried if isinstance(cell, Cell)), None)
        if good is None:
            faults.setdefault(str(tried[0]))
        else:
            found.append(good)
    if faults:
        raise ConfigError("\n".join(faults))
    if len({cell.study for cell in found}) > 1:
        raise ConfigError("study: these trials belong to several studies; name one with study=NAME")
    check_shared(found)
    if found[0].config.sweep.until is Until.decided:
        raise ConfigError("sweep.until=decided: adds seeds to a grid; a search has hydra.sweeper.seeds")
    return found[0]


def _try(composer: Composer, overrides: list[str], space: Space) -> Cell | ConfigError:
    try:
        return composer.cell(overrides, space.keys)
    except ConfigError as error:
        return error


def _pruner(
    node: Any, objectives: Sequence[Objective], first: Cell, seeds: Sequence[int]
) -> tuple[dict[str, Any] | None, bool]:
    """Return the pruner's node, null for the one that never prunes, and whether it judges seed by seed.

    Raises ConfigError where it could not work.
    """
    made = make_pruner(node)
    if isinstance(made, NopPruner):
        return None, False
    if len(objectives) > 1:
        raise ConfigError("hydra/sweeper/pruner: prunes by one objective, and there are several; leave it out")
    if isinstance(made, WilcoxonPruner):
        _check_enough_seeds(node, seeds)
        return dict(node), True
    training = first.config.training
    if not objectives[0].metric.startswith("eval/"):
        raise ConfigError(
            f"hydra/sweeper/pruner: {objectives[0].metric} is known at the end of a run only; leave it out"
        )
    if training.eval_every >= training.steps:
        raise ConfigError(
            f"training.eval_every={training.eval_every}: must be below training.steps={training.steps} with a pruner, "
            "which judges at evaluations before the last"
        )
    return dict(node), False


def _check_enough_seeds(node: Mapping[str, Any], seeds: Sequence[int]) -> None:
    """Refuse a signed-rank test that no result could pass before the last seed: its p is at least 2^-n for n seeds."""
    least, threshold = 2.0 ** -(len(seeds) - 1), float(node.get("p_threshold", 0.1))
    if least >= threshold:
        enough = math.floor(-math.log2(threshold)) + 2
        raise ConfigError(
            f"hydra/sweeper/pruner=wilcoxon: {len(seeds) - 1} seeds before the last give no p below {least:g}, so "
            f"p_threshold={threshold:g} prunes nothing; give hydra.sweeper.seeds={enough} or more"
        )

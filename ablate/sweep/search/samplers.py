"""Optuna's samplers and pruners from their nodes, checked by a rehearsal; nothing here names one of them.

A sampler is made anew for every trial, with a seed drawn from the configured one and the trial's place in the search.
So a search that was stopped goes on with the trials it would have had. (A constructor that keeps its place by its own
seed, such as a Sobol sequence's, is given the configured seed each time.)
"""

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, GridSampler
from optuna.trial import FrozenTrial, TrialState

from ablate.config.errors import ConfigError
from ablate.config.signature import SPECIAL, check_node, locate
from ablate.sweep.search.space import Space

KEEPS_SEED = ("qmc_type", "search_space")
"""Parameters of constructors whose seed fixes an order that all trials share."""

REHEARSED = 3


class Grid(GridSampler):
    """Optuna's grid, for ask-and-tell: the search itself ends when every combination was tried."""

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Do nothing; Optuna's own would stop a loop that is not there."""


class Samplers:
    """Makes the sampler of each trial from `hydra.sweeper.sampler`."""

    def __init__(self, node: Any, space: Space, objectives: int) -> None:
        """Check everything that can be known; raises ConfigError."""
        _check("hydra.sweeper.sampler", node, BaseSampler, "hydra/sweeper/sampler=tpe")
        self.node, self.space = node, space
        self.parameters = inspect.signature(locate("hydra.sweeper.sampler", node["_target_"])).parameters
        self.limit = space.size() if "search_space" in self.parameters else None
        self._rehearse(objectives)

    @property
    def repeatable(self) -> bool:
        """Whether the same search asks for the same trials again."""
        return self.node.get("seed") is not None

    def at(self, index: int) -> BaseSampler:
        """Return the sampler of the trial at this place of the search, from 0 on."""
        given: dict[str, Any] = {}
        if "search_space" in self.parameters:
            given["search_space"] = self.space.grid()
        seed = self.node.get("seed")
        if seed is not None and not any(name in self.parameters for name in KEEPS_SEED):
            given["seed"] = int(np.random.SeedSequence([seed, index]).generate_state(1)[0])
        sampler = make({**self.node, **given})
        assert isinstance(sampler, BaseSampler)
        return sampler

    def _rehearse(self, objectives: int) -> None:
        """Ask for a few trials of a study in memory: a missing package or an option that does not fit shows here."""
        study = optuna.create_study(directions=["minimize"] * objectives)
        try:
            for index in range(min(REHEARSED, self.limit or REHEARSED)):
                study.sampler = self.at(index)
                trial = ask(study, self.space)
                study.tell(trial, [float(index)] * objectives)
        except ConfigError:
            raise
        except ImportError as error:
            package = error.name or "a package"
            raise ConfigError(
                f"hydra.sweeper.sampler={short(self.node)}: needs {package} (pip install {package})"
            ) from error
        except Exception as error:  # whatever Optuna raises, it is about these values
            raise ConfigError(f"hydra.sweeper.sampler={short(self.node)}: {' '.join(str(error).split())}") from error


def ask(study: optuna.Study, space: Space) -> optuna.Trial:
    """Ask the study's sampler for the next trial of the space."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # choices of an independent sampler, experimental classes: chosen by the user
        return study.ask(space.distributions)


def make_pruner(node: Any) -> optuna.pruners.BasePruner:
    """Make the pruner of `hydra.sweeper.pruner`; raises ConfigError."""
    _check("hydra.sweeper.pruner", node, optuna.pruners.BasePruner, "hydra/sweeper/pruner=median")
    try:
        pruner = make(node)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"hydra.sweeper.pruner={short(node)}: {' '.join(str(error).split())}") from error
    assert isinstance(pruner, optuna.pruners.BasePruner)
    return pruner


def _check(path: str, node: Any, kind: type, spelling: str) -> None:
    if not isinstance(node, Mapping) or "_target_" not in node:
        raise ConfigError(f"{path}={node}: is a group; write {spelling} (with a slash)")
    check_node(path, node, foreign=True)
    if not issubclass_of(path, node, kind):
        raise ConfigError(f"{path}._target_={node['_target_']}: is no {kind.__name__} of Optuna")


def issubclass_of(path: str, node: Mapping[str, Any], kind: type) -> bool:
    """Whether a node's target is a class of this kind."""
    target = locate(path, node["_target_"])
    return inspect.isclass(target) and issubclass(target, kind)


def make(node: Mapping[str, Any]) -> Any:
    """Call a node's target with its values, inner nodes first."""
    given = {key: _inner(value) for key, value in node.items() if key not in SPECIAL}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # experimental classes
        return locate("hydra.sweeper", node["_target_"])(**given)


def _inner(value: Any) -> Any:
    return make(value) if isinstance(value, Mapping) and "_target_" in value else value


def short(node: Mapping[str, Any]) -> str:
    """Return a node in words: TPESampler(seed=0)."""
    given = ", ".join(f"{key}={_text(value)}" for key, value in node.items() if key not in SPECIAL)
    return f"{str(node['_target_']).rpartition('.')[2]}({given})"


def _text(value: Any) -> str:
    return short(value) if isinstance(value, Mapping) and "_target_" in value else str(value)

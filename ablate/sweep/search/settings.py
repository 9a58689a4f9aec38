"""What `hydra.sweeper` says of a search: the fields of conf/hydra/sweeper/optuna.yaml, and the rules for their values.

Imports the standard library only beside the errors: Hydra reads this module at every start.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ablate.config.errors import ConfigError, nearest

DIRECTIONS = ("minimize", "maximize")


@dataclass(kw_only=True)
class Settings:
    """Options of a search; their meaning stands beside them in conf/hydra/sweeper/optuna.yaml."""

    n_trials: int = 20
    n_jobs: int = 1
    seeds: int | list[int] | None = None
    metric: str | list[str] | None = None
    direction: str | list[str] | None = None
    study_name: str = "search"
    storage: str | None = None
    timeout: int | float | None = None
    max_failure_rate: int | float = 1.0
    constraints: list[str] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    sampler: dict[str, Any] = field(default_factory=dict)
    pruner: dict[str, Any] | None = None

    def check(self) -> None:
        """Raise ConfigError for a value that no search could use."""
        for name in ("n_trials", "n_jobs"):
            _refuse(name, getattr(self, name), "must be at least 1", unless=getattr(self, name) >= 1)
        _refuse("timeout", self.timeout, "must be above 0 seconds", unless=self.timeout is None or self.timeout > 0)
        rate = self.max_failure_rate
        _refuse("max_failure_rate", rate, "must lie between 0 and 1", unless=0 <= rate <= 1)
        named = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*", self.study_name)
        _refuse("study_name", self.study_name, "letters, digits and _ . + = - only", unless=named is not None)
        for direction in as_list(self.direction):
            known = direction in DIRECTIONS
            _refuse("direction", direction, nearest(direction, DIRECTIONS), unless=known)
        metrics, directions = as_list(self.metric), as_list(self.direction)
        fits = not directions or len(directions) == max(1, len(metrics))
        rule = f"one direction for each metric: {len(directions)} for {max(1, len(metrics))}"
        _refuse("direction", self.direction, rule, unless=fits)

    def chosen_seeds(self, first: int) -> list[int]:
        """Return the seeds of every trial: those named, or so many from `first` on; raises ConfigError."""
        if isinstance(self.seeds, list):
            valid = bool(self.seeds) and min(self.seeds) >= 0 and len(set(self.seeds)) == len(self.seeds)
            _refuse("seeds", self.seeds, "must be different whole numbers of at least 0", unless=valid)
            return list(self.seeds)
        count = 1 if self.seeds is None else self.seeds
        _refuse("seeds", count, "must be at least 1", unless=count >= 1)
        return list(range(first, first + count))


def as_list(value: str | Sequence[str] | None) -> list[str]:
    """Return one or several texts as a list; none for null."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _refuse(name: str, value: Any, rule: str, *, unless: bool) -> None:
    if not unless:
        raise ConfigError(f"hydra.sweeper.{name}={value}: {rule}")

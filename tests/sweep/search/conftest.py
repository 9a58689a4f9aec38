"""A search of tiny runs in this process, one after the other."""

from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from optuna.storages import InMemoryStorage

from ablate.sweep.search.storage import close_storage, open_storage

LR = "optimizer.lr=tag(log,interval(1e-4,1e-2))"


@pytest.fixture
def search(cli: Callable, tiny: list[str]) -> Callable:
    """Run a tiny search in this process."""

    def command(*arguments: str):
        return cli("-m", "hydra/launcher=basic", "hydra/sweeper=optuna", *tiny, *arguments)

    return command


def stored(place: str | Path = "multirun/copy_repeat/search/search.journal", name: str = "search") -> optuna.Study:
    """The study in a storage, as it is kept; a copy where a server keeps it, so that no connection stays open."""
    storage = open_storage(str(place))
    if not str(place).startswith("postgresql"):
        return optuna.load_study(study_name=name, storage=storage)
    copied = InMemoryStorage()
    optuna.copy_study(from_study_name=name, from_storage=storage, to_storage=copied)
    close_storage(storage)
    return optuna.load_study(study_name=name, storage=copied)


def states(study: optuna.Study) -> list[str]:
    """How the trials stand, in order; lost ones as such."""
    return ["lost" if "lost" in one.user_attrs else one.state.name.lower() for one in study.trials]

"""A search of tiny runs in this process, one after the other."""

from collections.abc import Callable
from pathlib import Path

import optuna
import pytest

from ablate.sweep.search.storage import open_storage

LR = "optimizer.lr=tag(log,interval(1e-4,1e-2))"


@pytest.fixture
def search(cli: Callable, tiny: list[str]) -> Callable:
    """Run a tiny search in this process."""

    def command(*arguments: str):
        return cli("-m", "hydra/launcher=basic", "hydra/sweeper=optuna", *tiny, *arguments)

    return command


def stored(place: str | Path = "multirun/copy_repeat/search/search.journal", name: str = "search") -> optuna.Study:
    """The study in a storage, as it is kept."""
    return optuna.load_study(study_name=name, storage=open_storage(str(place)))


def states(study: optuna.Study) -> list[str]:
    """How the trials stand, in order; lost ones as such."""
    return ["lost" if "lost" in one.user_attrs else one.state.name.lower() for one in study.trials]

"""Every sampler and pruner of conf/, made and asked; the same search asks for the same trials."""

import importlib.util

import optuna
import pytest
import yaml

from ablate.config.errors import ConfigError
from ablate.config.register import config_dir
from ablate.sweep.search.samplers import Grid, Samplers, ask, make_pruner
from ablate.sweep.search.space import read_space

FOLDER = config_dir() / "hydra/sweeper"
SAMPLERS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((FOLDER / "sampler").glob("*.yaml"))}
PRUNERS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((FOLDER / "pruner").glob("*.yaml"))}
NEEDS = {"cmaes": "cmaes"}
SPACE = read_space(None, ["a.lr=range(1,9)", "a.width=32,64", "a.rate=range(0,1,0.25)"], {})


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def trials(node, count: int, split: int | None = None) -> list[dict]:
    """The values of so many trials; with `split` the study is left and taken up again there."""
    study = optuna.create_study()
    for part in (range(split or count), range(split or count, count)):
        samplers = Samplers(node, SPACE, 1)
        for index in part:
            study.sampler = samplers.at(index)
            trial = ask(study, SPACE)
            study.tell(trial, float(trial.params["a.lr"]))
    return [one.params for one in study.trials]


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_asks_for_the_same_trials_again_also_when_taken_up_in_the_middle(name):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        with pytest.raises(ConfigError, match=f"needs {NEEDS[name]}"):
            Samplers(SAMPLERS[name], SPACE, 1)
        return
    found = trials(SAMPLERS[name], 14)
    assert trials(SAMPLERS[name], 14) == found
    assert trials(SAMPLERS[name], 14, split=7) == found
    assert len({tuple(one.values()) for one in found}) > 5


def test_another_seed_asks_for_other_trials():
    assert trials({**SAMPLERS["random"], "seed": 1}, 5) != trials(SAMPLERS["random"], 5)


def test_the_grid_has_every_combination_once():
    found = trials(SAMPLERS["grid"], 64)
    assert Samplers(SAMPLERS["grid"], SPACE, 1).limit == 64
    assert len({tuple(sorted(one.items())) for one in found}) == 64


def test_a_grid_of_an_interval_is_refused():
    with pytest.raises(ConfigError, match=r"a.x=interval\(0.0,1.0\): a grid needs values"):
        Samplers(SAMPLERS["grid"], read_space(None, ["a.x=interval(0,1)"], {}), 1)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("tpe", "is a group; write hydra/sweeper/sampler=tpe"),
        ({"_target_": "optuna.samplers.TPESampler", "sed": 1}, "has no key 'sed'; did you mean seed"),
        ({"_target_": "optuna.samplers.TPESamplr"}, "cannot be imported"),
        ({"_target_": "optuna.pruners.NopPruner"}, "is no BaseSampler"),
        ({"_target_": "optuna.samplers.NSGAIISampler", "population_size": 1}, "greater than or equal to 2"),
        ({"_target_": "optuna.samplers.RandomSampler", "seed": -1}, "non-negative"),
    ],
)
def test_a_sampler_that_cannot_be_made_is_refused(node, message):
    with pytest.raises(ConfigError, match=message):
        Samplers(node, SPACE, 1)


def test_the_grid_is_optunas_for_a_search_that_ends_by_itself():
    assert issubclass(Grid, optuna.samplers.GridSampler)


@pytest.mark.parametrize("name", PRUNERS)
def test_every_pruner_is_made_or_says_what_it_lacks(name):
    steps = {"${training.eval_every}": 2, "${training.steps}": 8}
    node = {key: steps.get(value, value) if isinstance(value, str) else value for key, value in PRUNERS[name].items()}
    if name == "threshold":
        with pytest.raises(ConfigError, match="Either lower or upper must be specified"):
            make_pruner(node)
        node["upper"] = 3.0
    assert isinstance(make_pruner(node), optuna.pruners.BasePruner)

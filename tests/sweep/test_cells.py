"""Cells composed with shared choices are the cells that Hydra composes one by one."""

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode

from ablate.config.errors import ConfigError
from ablate.config.register import config_dir, plain
from ablate.sweep.cells import Composer

COMBINATIONS = [
    ["attention=rope", "optimizer.lr=0.1"],
    ["attention=rope", "optimizer.lr=0.2"],
    ["attention=roper", "optimizer.lr=0.1", "rope_percentage=0.5"],
    ["attention=roper", "model.attention.value_percentage=0.25", "model.width=64"],
    ["optimizer.betas=[0.5,0.9]", "training.grad_clip=null", "study=other"],
    ["optimizer.betas=[0.8,0.9]", "++optimizer.lr=0.5", "+optimizer.amsgrad=true"],
    ["~optimizer.eps", "training.precision=bf16", "runtime.output_dir='a b'"],
    ["experiment=copy_repeat", "task.seq_len=128"],
    ["ablation=tied_head", "model.layers=1", "schedule=cosine", "training.steps=10"],
]


@pytest.fixture
def composer():
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        yield Composer(loader, loader.load_configuration("config", [], RunMode.MULTIRUN), seed=3)
    GlobalHydra.instance().clear()


def test_shared_choices_compose_to_what_hydra_composes(composer):
    for overrides in COMBINATIONS:
        alone = composer.loader.loader.load_sweep_config(composer.master, [*overrides, "seed=3"])
        shared = composer.compose(overrides)
        assert plain(shared) == plain(alone), overrides
        assert shared.hydra.sweep == alone.hydra.sweep
        assert shared.hydra.runtime.choices == alone.hydra.runtime.choices
    assert len(composer.loader._composed) < len(COMBINATIONS)


def test_a_cell_leaves_the_shared_config_as_it_was(composer):
    first = composer.cell(["optimizer.lr=0.1"], ["optimizer.lr"])
    composer.cell(["optimizer.lr=0.2", "training.steps=5"], ["optimizer.lr"])
    assert composer.cell(["optimizer.lr=0.1"], ["optimizer.lr"]) == first


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.stepz=1"], "training.stepz=1: no such key; did you mean training.steps"),
        (["training.steps=abc"], "training.steps=abc: Value 'abc'"),
        (["attention=none", "model.attention.base=3"], "no such key in attention=none"),
        (["model.width=33"], "model.width=33"),
    ],
)
def test_what_cannot_be_set_is_explained_as_hydras_own_error(composer, overrides, message):
    with pytest.raises(ConfigError, match=message):
        composer.cell(overrides, [])


def test_a_cell_without_the_checks_is_the_checked_one(composer):
    for overrides in COMBINATIONS[:4]:
        factors = ["optimizer.lr", "attention"]
        planned, source = composer.unchecked(overrides, factors)
        checked = composer.cell(overrides, factors)
        assert (planned, source) == (checked.planned, checked.source)


def test_a_cell_without_the_checks_still_has_to_compose(composer):
    with pytest.raises(ConfigError, match="attention=ropee: no such option; did you mean"):
        composer.unchecked(["attention=ropee"], [])

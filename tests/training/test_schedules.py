"""Learning rates against the formula, and the configs of conf/schedule and conf/optimizer."""

import inspect
import math
from pathlib import Path

import pytest
import torch
from hydra.utils import get_object
from omegaconf import OmegaConf
from torch import nn

from ablate.training.schedules import warmup_cosine

CONF = Path(__file__).parents[2] / "conf"


def rates(schedule_of, steps):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=2.0)
    schedule, found = schedule_of(optimizer), []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


def test_warmup_then_half_a_cosine():
    found = rates(lambda o: warmup_cosine(o, steps=20, warmup_fraction=0.2, final_fraction=0.1), 22)
    assert found[:5] == pytest.approx([2 * k / 5 for k in range(1, 6)])
    assert found[12] == pytest.approx(2 * (1 + 0.1) / 2)
    assert found[16] == pytest.approx(2 * (0.1 + 0.9 * (1 + math.cos(0.75 * math.pi)) / 2))
    assert found[20:] == pytest.approx([0.2, 0.2])
    assert found[4:21] == sorted(found[4:21], reverse=True)


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_no_warmup_and_nothing_but_warmup(fraction):
    found = rates(lambda o: warmup_cosine(o, steps=10, warmup_fraction=fraction, final_fraction=0.0), 10)
    assert found == sorted(found, reverse=fraction == 0)
    assert found[0] == (2.0 if fraction == 0 else pytest.approx(2 / 11))


@pytest.mark.parametrize("key", ["warmup_fraction", "final_fraction"])
@pytest.mark.parametrize("value", [-0.1, 1.5])
def test_a_fraction_outside_zero_and_one_is_refused(key, value):
    fractions = {"warmup_fraction": 0.1, "final_fraction": 0.1, key: value}
    with pytest.raises(ValueError, match=rf"schedule\.{key}={value}: must lie between 0 and 1"):
        rates(lambda o: warmup_cosine(o, steps=10, **fractions), 1)


@pytest.mark.parametrize(
    "path", [p for group in ("schedule", "optimizer") for p in sorted((CONF / group).glob("*.yaml"))], ids=str
)
def test_every_config_names_parameters_of_its_target(path):
    config = OmegaConf.load(path)
    parameters = inspect.signature(get_object(config._target_)).parameters
    assert config._partial_ is True
    assert set(config) - {"_target_", "_partial_"} <= {
        name for name, parameter in parameters.items() if parameter.kind is not parameter.POSITIONAL_ONLY
    }


def test_the_defaults_are_those_of_the_reference_size():
    adam = OmegaConf.load(CONF / "optimizer" / "adam.yaml")
    assert (adam._target_, adam.lr) == ("torch.optim.Adam", 3e-3)
    constant = OmegaConf.load(CONF / "schedule" / "constant.yaml")
    factor, total = constant.factor, constant.total_iters
    found = rates(lambda o: torch.optim.lr_scheduler.ConstantLR(o, factor=factor, total_iters=total), 5)
    assert found == [2.0] * 5

"""Config -> objects: the one module that calls Hydra's `instantiate`.

Positional parameters come from here (the task's vocabulary, the model's parameters, the optimiser), keyword-only ones
from the config.
"""

from typing import Any, NamedTuple

import torch
from hydra.utils import get_object, instantiate
from torch import nn

from ablate.config.schema import Device, RunConfig
from ablate.training.seeds import initialise
from ablate.training.trainer import Parts


class Built(NamedTuple):
    """A run's objects and what its parameters came to."""

    parts: Parts
    parameters: int
    effective: dict[str, Any]


def build(config: RunConfig, device: torch.device) -> Built:
    """Build the objects of a run, the model initialised from the run's seed and on `device`."""
    task = instantiate(config.task, _convert_="all")
    model = instantiate(config.model, len(task.alphabet), _convert_="all")
    initialise(model, config.seed if config.seeds.init is None else config.seeds.init)
    model.to(device)
    optimizer = instantiate(config.optimizer, _convert_="all")(model.parameters())
    schedule = instantiate(config.schedule, _convert_="all")(optimizer)
    parts = Parts(model=model, task=task, optimizer=optimizer, schedule=schedule)
    return Built(parts, sum(parameter.numel() for parameter in model.parameters()), effective(model))


def effective(model: nn.Module) -> dict[str, Any]:
    """Return what the model's parameters came to, for the record (the rotated width, say)."""
    report = getattr(model, "effective", None)
    return dict(report()) if callable(report) else {}


def trial_task(node: dict[str, Any]) -> Any:
    """Build the task only, to let its constructor judge the values."""
    return instantiate(node, _convert_="all")


def trial_model(node: dict[str, Any], vocabulary: int) -> Any:
    """Build the model, to let its constructor judge the values.

    Not on torch's meta device, which would spare memory: it imports torch's compiler, a second at every start.
    """
    return instantiate(node, vocabulary, _convert_="all")


def trial_optimizer(node: dict[str, Any]) -> Any:
    """Build the optimiser over one stand-in parameter, to let its constructor judge the values."""
    target, stand_in = get_object(node["_target_"]), [nn.Parameter(torch.zeros(1))]
    if not (isinstance(target, type) and issubclass(target, torch.optim.Optimizer)):
        return instantiate(node, _convert_="all")(stand_in)
    values = {key: value for key, value in node.items() if not key.startswith("_")}
    return _without_compiler(target)(stand_in, **values)


def _without_compiler(optimizer: Any) -> Any:
    """The same class, but that registering parameters does not import torch's compiler, as torch does to mark it."""

    def add_param_group(self: torch.optim.Optimizer, param_group: dict[str, Any]) -> None:
        self.param_groups.append({**self.defaults, **param_group})

    return type(optimizer.__name__, (optimizer,), {"add_param_group": add_param_group})


def trial_schedule(node: dict[str, Any], optimizer: Any) -> Any:
    """Build the schedule over that optimiser, to let its constructor judge the values."""
    return instantiate(node, _convert_="all")(optimizer)


def choose_device(wanted: Device) -> torch.device:
    """Return the CPU or the first visible GPU; `ablate.devices` spreads runs over several."""
    if wanted is Device.cpu or not torch.cuda.is_available():
        if wanted is Device.cuda:
            raise ValueError("runtime.device=cuda: torch sees no CUDA device here; use runtime.device=auto or cpu")
        return torch.device("cpu")
    return torch.device("cuda", 0)

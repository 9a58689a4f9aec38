"""How every parameter of a model starts: by what it is, and from the generator of its own name.

    embeddings     N(0, 1), positions included
    matrices       xavier       U(±√(6 / (fan in + fan out)))    Glorot and Bengio 2010
                   he_uniform   U(±√(6 / fan in)), and half of that for queries, keys and values   He et al. 2015
    biases         U(±1/√(fan in))
    layer norms    1 and 0
    anything else  0: a vector or number of a scheme is what it adds to its starting value

Because a parameter draws from a generator of its own, its start does not depend on which others there are.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import nn

from ablate.models.layers import Projection

Init = Literal["xavier", "he_uniform"]
GeneratorFor = Callable[[str], torch.Generator]


class _Rule(NamedTuple):
    """What fills a matrix, and by how much those of queries, keys and values are scaled after."""

    fill: Callable[..., torch.Tensor]
    projection_scale: float


_RULES: dict[str, _Rule] = {
    "xavier": _Rule(nn.init.xavier_uniform_, 1.0),
    "he_uniform": _Rule(nn.init.kaiming_uniform_, 0.5),
}


def check_init(init: str) -> None:
    """Raise ValueError for a rule there is none of."""
    if init not in _RULES:
        raise ValueError(f"model.init={init}: must be one of {', '.join(_RULES)}")


def initialise(model: nn.Module, generator_for: GeneratorFor, init: Init) -> None:
    """Set every parameter of the model; generators and parameters must be on one device."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            if parameter in names:  # a shared parameter once only
                _fill(module, parameter, generator_for(names.pop(parameter)), _RULES[init])


@torch.no_grad()
def _fill(module: nn.Module, parameter: torch.Tensor, generator: torch.Generator, rule: _Rule) -> None:
    if isinstance(module, nn.Embedding):
        parameter.normal_(generator=generator)
    elif isinstance(module, nn.LayerNorm):
        parameter.fill_(1.0 if parameter is module.weight else 0.0)
    elif isinstance(module, Projection) and parameter.ndim >= 2:
        # Queries, keys and values lie in one matrix; each has the fans, and so the bound, of its own.
        for matrix in parameter.chunk(3):
            rule.fill(matrix, generator=generator).mul_(rule.projection_scale)
    elif parameter.ndim >= 2:
        rule.fill(parameter, generator=generator)
    elif isinstance(module, nn.Linear):
        bound = module.in_features**-0.5
        parameter.uniform_(-bound, bound, generator=generator)
    else:
        parameter.zero_()

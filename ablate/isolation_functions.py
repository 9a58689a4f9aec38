"""Functions that a run replaced in torch, numpy, Python or this project, which `isolation` puts back after it.

Looked at are the functions and classes of the modules in PYTHON and OTHERS and of all modules of this project, and what
torch's and this project's classes hold. Lists and dicts that were changed in place are not seen.
"""

import builtins
import inspect
import json
import math
import os
import random
import sys
import time
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from ablate.isolation import Setting

PYTHON: tuple[ModuleType, ...] = (builtins, math, random, time, json, os)
OTHERS: tuple[ModuleType, ...] = (
    *(torch, torch.linalg, torch.random, torch.autograd, torch.optim, torch.optim.lr_scheduler),
    *(nn, nn.functional, nn.init, nn.utils),
    *(np, np.random, np.linalg),
)
OURS = "ablate."
CONSTANTS = (property, classmethod, staticmethod)


class Place(NamedTuple):
    """An attribute of a module or class."""

    owner: Any
    name: str


class Snapshot:
    """What modules and classes held."""

    def __init__(self) -> None:
        ours = [module for name, module in list(sys.modules.items()) if name.startswith(OURS)]
        owners = (*PYTHON, *_of_libraries(), *(owner for module in ours for owner in (module, *_classes(module))))
        self.held = [(owner, _copy(owner)) for owner in owners]

    def replaced(self) -> dict[Place, Any]:
        """Return what is another object now or gone, with what it was; what was added since makes no difference."""
        found: dict[Place, Any] = {}
        for owner, before in self.held:
            now = vars(owner)
            if not _is_equal(before, now):
                changed = [name for name, value in before.items() if not _is_same(value, now.get(name))]
                found |= {Place(owner, name): before[name] for name in changed}
        found.pop(Place(torch, "Storage"), None)  # follows the default dtype
        return found


_copies: dict[Any, dict[str, Any]] = {}


def _copy(owner: Any) -> dict[str, Any]:
    """Return what a module or class holds now, copied only where it changed: comparing takes a fourth of the time."""
    if owner not in _copies or not _is_equal(_copies[owner], vars(owner)):
        _copies[owner] = dict(vars(owner))
    return _copies[owner]


def _is_equal(before: dict[str, Any], now: Any) -> bool:
    """Whether nothing changed, as far as one comparison of Python's shows; it takes most of the time."""
    try:
        return bool(before == now)
    except Exception:  # an array, say, is not comparable so
        return False


@cache
def _of_libraries() -> tuple[Any, ...]:
    """Return the modules and the classes of torch's layers, optimisers and schedules, which are a few hundred."""
    classes = {found: None for module in (nn, torch.optim, torch.optim.lr_scheduler) for found in _classes(module)}
    return (*OTHERS, torch.Tensor, *classes)


@cache
def _classes(module: ModuleType) -> list[type]:
    package = module.__name__.split(".")[0]
    return [one for one in vars(module).values() if inspect.isclass(one) and one.__module__.startswith(package)]


def _is_same(before: Any, now: Any) -> bool:
    """Whether nothing was replaced: torch puts a wrapper around an optimiser's `step` once, and counts in globals."""
    if now is before or not (callable(before) or isinstance(before, CONSTANTS)):
        return True
    return bool(getattr(now, "hooked", False) and getattr(now, "__wrapped__", None) is before)


def _write(before: Snapshot) -> None:
    for place, value in before.replaced().items():
        setattr(place.owner, place.name, value)


REPLACED = Setting("replaced functions", Snapshot, _write, differs=lambda before: bool(before.replaced()))

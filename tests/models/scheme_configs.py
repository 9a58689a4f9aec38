"""Builds the schemes from the YAML files of conf/attention, as the config would, without Hydra."""

import importlib
from functools import partial
from pathlib import Path

from omegaconf import OmegaConf

FOLDER = Path(__file__).parents[2] / "conf" / "attention"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
ROTARY = ["rope", "rope_v", "roper", "roper_2022", "xpos"]
VALUE_ROTARY = ["rope_v", "roper", "roper_2022"]


def parameters(name, rope_percentage=1.0, seq_len=512, **changes):
    """The resolved keys of a YAML, with some replaced; a key that the YAML lacks is an error."""
    scheme = OmegaConf.load(FOLDER / f"{name}.yaml")
    root = OmegaConf.create(
        {"rope_percentage": rope_percentage, "task": {"seq_len": seq_len}, "model": {"attention": scheme}}
    )
    OmegaConf.set_struct(root, True)
    root.model.attention.update(changes)
    return OmegaConf.to_container(root, resolve=True)["model"]["attention"]


def factory(name, **changes):
    """What the config hands to a model: the class with its keyword parameters filled in."""
    keywords = parameters(name, **changes)
    module, _, class_name = keywords.pop("_target_").rpartition(".")
    assert keywords.pop("_partial_") is True
    return partial(getattr(importlib.import_module(module), class_name), **keywords)

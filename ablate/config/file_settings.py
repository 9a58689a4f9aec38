"""What a file of a config group (conf/experiment/x.yaml) sets for Hydra itself: launcher, sweeper, `hydra.*`, params.

Hydra passes over these where the file comes from a group: the launcher that config.yaml names wins over `override
/hydra/launcher`, and a file that is swept (`experiment=a,b`) is read for its runs only. Here they become overrides of
the command line, whose own values win; swept files that differ in one are refused.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from ablate.config.arguments import ALIASES, groups_in
from ablate.config.errors import ConfigError

PARAMS = "hydra.sweeper.params."
PER_RUN = "runtime.checkpoint_every"
"""The one key of `runtime` in which the runs of a sweep may differ."""


def settings_of_files(overrides: Sequence[str], conf: Sequence[Path], *, multirun: bool) -> list[str]:
    """Return the overrides that the chosen files of config groups ask for and that `overrides` do not give themselves.

    `conf` are the folders with config groups. Raises ConfigError where swept files ask for different values.
    """
    given = {override.lstrip("+").partition("=")[0] for override in overrides}
    found: dict[str, str] = {}
    for group, options in _chosen(overrides, conf):
        read = {option: dict(_settings(conf, group, option)) for option in options}
        asked = _agreed(group, read, given)
        for key, value in asked.items():
            swept = key.removeprefix(PARAMS)
            if swept != key and multirun and swept not in given:
                found.setdefault(swept, f"{swept}={value}")
            elif swept == key and key not in given and (len(options) > 1 or "/" in key):
                found.setdefault(key, f"{key}={value}")
    return list(found.values())


def _chosen(overrides: Sequence[str], conf: Sequence[Path]) -> Iterator[tuple[str, list[str]]]:
    """Yield each group that the command line names, with its options."""
    groups = {group for folder in conf for group in groups_in(folder)}
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        group = ALIASES.get(key, key)
        if group in groups:
            yield group, _options(conf, group, value)


def _options(conf: Sequence[Path], group: str, value: str) -> list[str]:
    """The options that a value names: `a`, `a,b`, `choice(a,b)` or `glob(a*)`."""
    inner = re.sub(r"^(choice|shuffle|sort|glob)\((.*)\)$", r"\2", value.strip())
    if value.startswith("glob("):
        return sorted({file.stem for folder in conf for file in (folder / group).glob(f"{inner}.yaml")})
    return list(dict.fromkeys(option.strip(" \"'") for option in inner.split(",") if "=" not in option))


def _agreed(group: str, read: Mapping[str, Mapping[str, str]], given: Collection[str]) -> Mapping[str, str]:
    """The settings that all files share; raises ConfigError for one in which they differ and that is not given."""
    if not read:  # such as a pattern that no file fits, which Hydra refuses
        return {}
    first, *others = read.items()
    for option, settings in others:
        for key in [*first[1], *(key for key in settings if key not in first[1])]:
            one, other = (asked.get(key, "unset") for asked in (first[1], settings))
            if one != other and key.removeprefix(PARAMS) not in given:
                raise ConfigError(
                    f"{key}: holds for a whole sweep, and the swept files differ: {one} in {group}={first[0]}, "
                    f"{other} in {group}={option}; give it on the command line and leave it out of the files"
                )
    return first[1]


def _settings(conf: Sequence[Path], group: str, option: str) -> Iterator[tuple[str, str]]:
    """Yield key and value of what a file, or one that it is made of, sets for Hydra; later ones win."""
    path = next((p for folder in conf if (p := folder / group / f"{option}.yaml").is_file()), None)
    content = _content(path) if path else {}
    for entry in content.get("defaults") or []:
        if isinstance(entry, str) and entry != "_self_":
            inner = entry.split("@")[0]
            where, _, name = (inner.strip("/") if inner.startswith("/") else f"{group}/{inner}").rpartition("/")
            yield from _settings(conf, where, name) if (where, name) != (group, option) else ()
        elif isinstance(entry, dict):
            for key, value in entry.items():
                if match := re.fullmatch(r"override\s+/(hydra/\S+)", str(key)):
                    yield match[1], str(value)
    for name in ("hydra", "runtime"):
        node = content.get(name)
        read = _leaves(node, f"{name}.") if isinstance(node, dict) else ()
        yield from ((key, value) for key, value in read if key != PER_RUN)


def _content(path: Path) -> dict[str, Any]:
    try:
        read = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    except (yaml.YAMLError, OSError):  # Hydra says what is wrong with the file
        return {}
    return {str(key): value for key, value in read.items()} if isinstance(read, dict) else {}


def _leaves(node: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in node.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{name}.")
        else:
            yield name, str(value) if name.startswith(PARAMS) and value is not None else _written(value)


def _written(value: Any) -> str:
    """A value as Hydra's grammar reads it back."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    return json.dumps(value, ensure_ascii=False)

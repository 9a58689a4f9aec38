"""Composing many configs of one sweep: those with the same choice of files share the reading and merging of files.

Hydra takes a tenth of a second to compose a config, most of it for the files. Combinations that differ in plain values
only (`optimizer.lr=1e-3,3e-3`, `seed=0..9`) have the same files: they are composed once, and the values set on copies.
The plan does so for its cells, and each worker process for its runs, which is most of what lies between two of them.
"""

import copy
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf

from ablate.config.explain import EXPECTED
from ablate.config.schema import RunConfig

RESOLVER = re.compile(r"\$\{(?!cell:|name_of:|local_workers:)[\w.]+:")
"""A value that a resolver makes, such as `${now:%Y}` or `${oc.env:LR}`; our own depend on the config only."""


class SharingLoader:
    """Hydra's loader of configs, one `load_sweep_config` apart: for the configs of a single sweep.

    Sent to a process that has it already, it is the one that is there, with what it has composed.
    """

    _here: ClassVar[dict[str, "SharingLoader"]] = {}

    def __init__(self, loader: ConfigLoader, token: str | None = None) -> None:
        self.loader, self.token = loader, token or uuid.uuid4().hex
        self._parser = OverridesParser.create(config_loader=loader)
        self._parsed: dict[str, Override] = {}
        self._composed: dict[tuple[str, ...], DictConfig] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what makes it, not what it has composed."""
        return SharingLoader.known, (self.loader, self.token)

    @classmethod
    def known(cls, loader: ConfigLoader, token: str) -> "SharingLoader":
        """Return this process's own of that token."""
        if token not in cls._here:
            cls._here[token] = cls(loader, token)
        return cls._here[token]

    def __getattr__(self, name: str) -> Any:
        """All else is Hydra's."""
        return getattr(self.loader, name)

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """Return what Hydra's method of this name returns, and raise what it raises."""
        shared, changes = self.shared(master_config, sweep_overrides)
        config = copy.deepcopy(shared)
        try:
            set_values(config, changes)
        except EXPECTED:  # Hydra's own error for it is the one that gets explained
            return self.loader.load_sweep_config(master_config, sweep_overrides)
        own = [override for override in self._parse(sweep_overrides) if not override.is_hydra_override()]
        config.hydra.overrides.task = [override.input_line for override in own]
        config.hydra.job.override_dirname = _dirname(own, config.hydra.job.config.override_dirname)
        return config

    def shared(self, master: DictConfig, overrides: Sequence[str]) -> tuple[DictConfig, list[Override]]:
        """Return the config that combinations with these choices of files share, and the values to set on a copy."""
        parsed = self._parse(overrides)
        changes = [override for override in parsed if _is_plain_value(override)]
        choices = tuple(str(override.input_line) for override in parsed if override not in changes)
        if choices not in self._composed:
            self._composed[choices] = self.loader.load_sweep_config(master, list(choices))
        return self._composed[choices], changes

    def _parse(self, overrides: Sequence[str]) -> list[Override]:
        for line in overrides:
            if line not in self._parsed:
                (self._parsed[line],) = self._parser.parse_overrides([line])
        return [self._parsed[line] for line in overrides]


def set_values(config: DictConfig, changes: Sequence[Override]) -> None:
    """Set the values of overrides that choose no file."""
    for override in changes:
        OmegaConf.update(config, str(override.key_or_group), override.value(), merge=True)


def _is_plain_value(override: Override) -> bool:
    """Whether the override sets one key of the config to a value and so cannot change which files are read."""
    key = str(override.key_or_group)
    in_section = key.split(".", maxsplit=1)[0] in RunConfig.__dataclass_fields__ and "." in key
    sets_one = override.type is OverrideType.CHANGE and override.package is None and not override.is_sweep_override()
    return sets_one and (in_section or key == "seed")


def _dirname(overrides: Sequence[Override], words: DictConfig) -> str:
    """Return the overrides as a name for a folder, which Hydra calls `hydra.job.override_dirname`."""
    lines = [str(one.input_line) for one in overrides if one.key_or_group not in words.exclude_keys]
    return str(words.item_sep).join(sorted(lines)).replace("=", str(words.kv_sep))


def made_by_resolvers(composed: DictConfig, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys and values that resolvers made in `values`, the resolved `composed`.

    In another process, or a moment later, they would make others.
    """
    raw = OmegaConf.to_container(OmegaConf.masked_copy(composed, list(values)), resolve=False)
    found = dict(_made(raw, values, ""))
    return {key: value for key, value in found.items() if key != "seed" and not key.startswith("runtime.")}


def _made(raw: Any, value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(raw, Mapping) and isinstance(value, Mapping):
        for name, inner in raw.items():
            yield from _made(inner, value[name], f"{key}.{name}" if key else str(name))
    elif RESOLVER.search(str(raw)):
        yield key, value


def settled(overrides: Sequence[str], made: Mapping[str, Any]) -> list[str]:
    """Return the overrides with the values of `made` in place of what makes them; the caller's own stay last."""
    kept = [line for line in overrides if not (line.partition("=")[0] in made and RESOLVER.search(line))]
    return [*(f"{key}={_as_text(value)}" for key, value in made.items()), *kept]


def _as_text(value: Any) -> str:
    """Return a value in Hydra's grammar of overrides."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{_as_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_as_text, value)) + "]"
    if isinstance(value, str):
        return '"' + re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + ('\\"' if found[2] else ""), value) + '"'
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

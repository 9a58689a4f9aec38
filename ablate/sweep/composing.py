"""Composing many configs of one sweep: those with the same choice of files share the reading and merging of files.

Hydra takes a tenth of a second to compose a config, most of it for the files. Combinations that differ in plain values
only (`optimizer.lr=1e-3,3e-3`, `seed=0..9`) have the same files: they are composed once, and the values set on copies.
The plan does so for its cells, and each worker process for its runs, which is most of what lies between two of them.
"""

import copy
import uuid
from collections.abc import Sequence
from typing import Any, ClassVar

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf

from ablate.config.explain import EXPECTED
from ablate.config.schema import RunConfig


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

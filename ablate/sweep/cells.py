"""One combination of overrides -> one checked cell, composed as the run itself will be.

Hydra takes a tenth of a second to compose a config, most of it for the choice of files. Combinations that differ in
plain values only (`optimizer.lr=1e-3,3e-3`) share those choices: they are composed once, and the values set on copies.
"""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf

from ablate import provenance
from ablate.config import ablation, preflight
from ablate.config.errors import ConfigError
from ablate.config.explain import EXPECTED, explain
from ablate.config.identity import cell_folder, cell_identity
from ablate.config.labels import factors_of, label_of
from ablate.config.register import plain, to_run_config
from ablate.config.schema import RunConfig
from ablate.records import PlannedCell


class Cell(NamedTuple):
    """A checked cell: what the plan will say of it, its config, its study's folder, its code's fingerprint."""

    planned: PlannedCell
    config: RunConfig
    study: Path
    source: str


class Composer:
    """Composes the cells of one sweep, all with its first seed."""

    def __init__(self, loader: ConfigLoader, master: DictConfig, seed: int) -> None:
        self.loader, self.master, self.seed = loader, master, seed
        self._parser = OverridesParser.create(config_loader=loader)
        self._composed: dict[tuple[str, ...], DictConfig] = {}

    def cell(self, overrides: list[str], factors: Sequence[str]) -> Cell:
        """Return the cell of these overrides; raises ConfigError in one line when it cannot be run."""
        try:
            composed = self.compose(overrides)
            values = plain(composed)
        except (*EXPECTED, ValueError) as error:
            raise ConfigError(explain(error, overrides)) from error
        typed = to_run_config(composed)
        preflight.check(typed)
        _check_folder(composed, values, self.seed)
        _check_importable(composed, values)
        ablation.check(composed, overrides, values)
        study, source = Path(str(composed.hydra.sweep.dir)), provenance.source_fingerprint(values)
        return Cell(_planned(composed, overrides, values, factors), typed, study, source)

    def unchecked(self, overrides: list[str], factors: Sequence[str]) -> tuple[PlannedCell, str]:
        """Return a cell and its code's fingerprint in a tenth of the time, for values of a space that was checked.

        Raises ConfigError when it cannot be composed; values that cannot be combined fail in the run.
        """
        try:
            composed, changes = self._shared(overrides)
            values = plain(composed, lambda own: _change(own, changes))
        except (*EXPECTED, ValueError) as error:
            raise ConfigError(explain(error, overrides)) from error
        return _planned(composed, overrides, values, factors), provenance.source_fingerprint(values)

    def compose(self, overrides: Sequence[str]) -> DictConfig:
        """Compose as Hydra does, sharing the choice of files between combinations."""
        shared, changes = self._shared(overrides)
        config = copy.deepcopy(shared)
        try:
            _change(config, changes)
        except EXPECTED:  # Hydra's own error for it is the one that gets explained
            return self.loader.load_sweep_config(self.master, [*overrides, f"seed={self.seed}"])
        return config

    def _shared(self, overrides: Sequence[str]) -> tuple[DictConfig, list[Override]]:
        """Return the config that combinations with these choices of files share, and the values to set on a copy."""
        parsed = self._parser.parse_overrides([*overrides, f"seed={self.seed}"])
        changes = [override for override in parsed if _is_plain_value(override)]
        choices = tuple(str(override.input_line) for override in parsed if override not in changes)
        if choices not in self._composed:
            self._composed[choices] = self.loader.load_sweep_config(self.master, list(choices))
        return self._composed[choices], changes


def _change(config: DictConfig, changes: Sequence[Override]) -> None:
    for override in changes:
        OmegaConf.update(config, str(override.key_or_group), override.value(), merge=True)


def _is_plain_value(override: Override) -> bool:
    """Whether the override sets one key of the config to a value and so cannot change which files are read."""
    key = str(override.key_or_group)
    in_section = key.split(".", maxsplit=1)[0] in RunConfig.__dataclass_fields__ and "." in key
    return override.type is OverrideType.CHANGE and override.package is None and (in_section or key == "seed")


def _planned(
    composed: DictConfig, overrides: list[str], values: Mapping[str, Any], factors: Sequence[str]
) -> PlannedCell:
    found = factors_of(overrides)
    swept = {key: value for key, value in found.items() if key in factors}
    shown = swept or {key: value for key, value in found.items() if key == "attention"}
    return PlannedCell(
        cell=cell_identity(values),
        label=label_of(shown) if shown else _choice(composed),
        factors=swept,
        folder=cell_folder(values),
        overrides=overrides,
    )


def _choice(composed: DictConfig) -> str:
    """What a sweep of one cell is called: its scheme, or its model where that has none to choose."""
    choices = composed.hydra.runtime.choices
    return str(choices.get("attention") or choices.get("model") or "default")


def _check_folder(composed: DictConfig, values: Mapping[str, Any], seed: int) -> None:
    """Refuse what would tear a cell apart: a folder of the user's own making, or a config that hangs on the seed."""
    if composed.hydra.sweep.subdir != f"runs/{cell_folder(values)}/seed={seed}":
        raise ConfigError(
            "hydra.sweep.subdir: is made from the run's identity, so that a run is found again; leave it out"
        )
    if composed.runtime.sweep_id is not None:
        raise ConfigError(f"runtime.sweep_id={composed.runtime.sweep_id}: is set by a sweep for its runs, leave it out")
    composed.seed = seed + 1
    other = cell_identity(plain(composed))
    composed.seed = seed
    if other != cell_identity(values):
        raise ConfigError(
            "seed: another key refers to it, so every seed would be a cell of its own; use seeds.* instead"
        )


def _check_importable(composed: DictConfig, values: Any) -> None:
    """Refuse classes of the script that was started: in the launcher's own processes `__main__` is another."""
    if composed.hydra.runtime.choices.get("hydra/launcher") == "basic":
        return
    for key, value in values.items():
        if isinstance(value, dict):
            _check_importable(composed, value)
        elif key == "_target_" and str(value).startswith("__main__."):
            raise ConfigError(
                f"_target_={value}: other processes cannot import what stands in the script that is run; move it to a "
                "module on PYTHONPATH, or use hydra/launcher=basic"
            )

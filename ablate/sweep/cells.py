"""One combination of overrides -> one checked cell, composed as the run itself will be."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.config_loader import ConfigLoader
from omegaconf import DictConfig, OmegaConf

from ablate import provenance
from ablate.config import ablation, preflight
from ablate.config.errors import ConfigError
from ablate.config.explain import EXPECTED, explain
from ablate.config.identity import cell_folder, cell_identity
from ablate.config.labels import factors_of, label_of
from ablate.config.register import check_stands_alone, plain, to_run_config
from ablate.config.schema import RunConfig
from ablate.records import PlannedCell
from ablate.sweep import options
from ablate.sweep.composing import RESOLVER, SharingLoader, made_by_resolvers, set_values, settled


class Cell(NamedTuple):
    """A checked cell: what the plan will say of it, its config, its study's folder, its code's fingerprint."""

    planned: PlannedCell
    config: RunConfig
    study: Path
    source: str


class Composer:
    """Composes the cells of one sweep, all with its first seed."""

    def __init__(self, loader: ConfigLoader, master: DictConfig, seed: int) -> None:
        self.loader = loader if isinstance(loader, SharingLoader) else SharingLoader(loader)
        self.master, self.seed = master, seed
        self.elsewhere = options.trains_elsewhere(options.resolved(master))

    def cell(self, overrides: list[str], factors: Sequence[str]) -> Cell:
        """Return the cell of these overrides; raises ConfigError in one line when it cannot be run."""
        try:
            composed = self.compose(overrides)
            check_stands_alone(composed)
            values = plain(composed)
            made = made_by_resolvers(composed, values)
            for key, value in made.items():
                OmegaConf.update(composed, key, value)
        except (*EXPECTED, ValueError) as error:
            raise ConfigError(explain(error, overrides)) from error
        typed = to_run_config(composed)
        source = provenance.source_fingerprint(values)  # first, while none of the code is imported
        preflight.check(typed, device_is_here=not self.elsewhere)
        _check_folder(composed, values, self.seed)
        _check_importable(composed, values)
        ablation.check(composed, overrides, values)
        study = Path(str(composed.hydra.sweep.dir))
        planned = _planned(composed, overrides, values, factors)
        planned.overrides = settled(overrides, made)
        return Cell(planned, typed, study, source)

    def unchecked(self, overrides: list[str], factors: Sequence[str]) -> tuple[PlannedCell, str]:
        """Return a cell and its code's fingerprint in a tenth of the time, for values of a space that was checked.

        Raises ConfigError when it cannot be composed; values that cannot be combined fail in the run.
        """
        if any(RESOLVER.search(line) for line in overrides):
            cell = self.cell(overrides, factors)
            return cell.planned, cell.source
        try:
            composed, changes = self.loader.shared(self.master, self._seeded(overrides))
            values = plain(composed, lambda own: set_values(own, changes))
        except (*EXPECTED, ValueError) as error:
            raise ConfigError(explain(error, overrides)) from error
        return _planned(composed, overrides, values, factors), provenance.source_fingerprint(values)

    def compose(self, overrides: Sequence[str]) -> DictConfig:
        """Compose as Hydra does."""
        return self.loader.load_sweep_config(self.master, self._seeded(overrides))

    def _seeded(self, overrides: Sequence[str]) -> list[str]:
        return [*overrides, f"seed={self.seed}"]


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

"""An ablation arm (`conf/ablation/<arm>.yaml`) is one named departure from the baseline, and it must take effect.

An arm that changes nothing, or whose values another override cancels, is refused: a table with an arm that is the
baseline under another name is worse than no table. An empty file is the baseline itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ablate.config.errors import ConfigError
from ablate.config.explain import compose_cell, flat_keys
from ablate.config.identity import identity_config
from ablate.config.register import config_folders, plain
from ablate.jsonfiles import canonical_json


def check(config: DictConfig, overrides: Sequence[str], values: Mapping[str, Any]) -> None:
    """Refuse an arm without effect; `values` is the resolved config."""
    arm = config.hydra.runtime.choices.get("ablation")
    if several := next((o for o in overrides if o.startswith("ablation=[")), None):
        raise ConfigError(f"{several}: one arm at a time; write an arm that holds both departures")
    if arm is None or (wanted := _arm(str(arm))) is None:
        return
    final = OmegaConf.create(dict(values))
    with_arm = OmegaConf.merge(
        final, {key: value for key, value in wanted.items_ex(resolve=False) if key != "defaults"}
    )
    for key in _leaf_keys(wanted):
        want, have = OmegaConf.select(with_arm, key), OmegaConf.select(final, key)
        if canonical_json(_plain(want)) != canonical_json(_plain(have)):
            raise ConfigError(f"ablation={arm}: {key}={want} is cancelled by another override ({key}={have})")
    without = plain(compose_cell([o for o in overrides if o.partition("=")[0] != "ablation"]))
    if canonical_json(identity_config(without)) == canonical_json(identity_config(values)):
        raise ConfigError(f"ablation={arm}: changes nothing; the config is the same without it")


def _arm(name: str) -> DictConfig | None:
    """Return an arm's own values; None for an empty arm (the baseline)."""
    files = [folder / "ablation" / f"{name}.yaml" for folder in config_folders()]
    content = next((OmegaConf.load(file) for file in files if file.is_file()), None)
    return content if isinstance(content, DictConfig) and len(content) else None


def _leaf_keys(arm: DictConfig) -> list[str]:
    """Keys with a value of their own; an arm's `defaults` (another option of a group) are judged by their effect."""
    keys = [key for key in flat_keys(arm) if not key.startswith("defaults")]
    return [key for key in keys if not any(other.startswith(f"{key}.") for other in keys)]


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else getattr(value, "name", value)

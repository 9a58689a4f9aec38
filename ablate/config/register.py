"""What Hydra must know before it composes: the typed root, the resolvers, and where conf/ is.

Importing this module registers them, which is how worker processes get them too (a worker imports the module of the
function it runs). Nothing here composes or checks a config.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from ablate import capacity
from ablate.config.arguments import config_dirs, given, groups_in
from ablate.config.errors import ConfigError, nearest
from ablate.config.identity import cell_folder, target_name
from ablate.config.schema import RunConfig


def config_dir() -> Path:
    """Return the folder of conf/: inside an installed package, at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def config_folders() -> list[Path]:
    """Return the folders with config groups: conf/ and the user's own from --config-dir."""
    return [config_dir(), *config_dirs(given)]


def known_groups() -> list[str]:
    """Return the names of all config groups, Hydra's own left out."""
    return [group for folder in config_folders() for group in groups_in(folder)]


def plain(config: DictConfig, change: Callable[[DictConfig], None] = lambda own: None) -> dict[str, Any]:
    """Return the resolved config without Hydra's own node, as dicts, lists, numbers and text.

    `change` may set values of the copy that is made before anything is resolved.
    """
    own = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    change(own)
    return cast(dict[str, Any], OmegaConf.to_container(own, resolve=True, enum_to_str=True))


def given_overrides(hydra: Any) -> list[str]:
    """Return the overrides of Hydra's node as they were written; iterating over them would resolve what they hold."""
    return cast(list[str], OmegaConf.to_container(hydra.overrides.task, resolve=False))


def check_stands_alone(config: DictConfig) -> None:
    """Raise ConfigError for a key that refers to Hydra's own settings: they differ from job to job."""
    raw = OmegaConf.to_container(OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]))
    for key, value in _leaves(raw, ""):
        if "${hydra:" in str(value):
            raise ConfigError(f"{key}={value}: differs from job to job; a run's config stands by itself")


def _leaves(node: Any, key: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(node, dict):
        yield key, node
        return
    for name, inner in node.items():
        yield from _leaves(inner, f"{key}.{name}" if key else str(name))


def to_run_config(config: DictConfig) -> RunConfig:
    """Return the typed sections and plain leaves of a composed config; raises ConfigError for a key that was added."""
    known = {item.name: item.type for item in fields(RunConfig)}
    values = OmegaConf.to_container(
        OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]), resolve=True
    )
    assert isinstance(values, dict)
    for key, value in ((str(key), value) for key, value in values.items()):
        _refuse_unknown(key, known)
        section = known[key]
        if is_dataclass(section) and isinstance(value, dict):
            for inner in value:
                _refuse_unknown(f"{key}.{inner}", [f"{key}.{item.name}" for item in fields(section)])
    typed = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(RunConfig), values))
    assert isinstance(typed, RunConfig)
    return typed


def _refuse_unknown(key: str, known: Iterable[str]) -> None:
    if key not in known:
        raise ConfigError(f"{key}: no such key; {nearest(key, known)}")


def local_workers(device: str, runs_per_device: int = 1, threads: int = 1) -> int:
    """Return how many runs train at once here: so many per visible GPU, or one for each `threads` usable cores."""
    import torch  # noqa: PLC0415  (a second of start-up that only the local launcher needs)

    if str(device) != "cpu" and torch.cuda.is_available():
        return torch.cuda.device_count() * max(1, int(runs_per_device))
    return max(1, capacity.cores() // max(1, int(threads)))


def _cell(_root_: DictConfig) -> str:
    return cell_folder(plain(_root_))


def _name_of(target: str) -> str:
    return target_name({"_target_": target}, "study")


def register() -> None:
    """Register schema and resolvers; calling it again changes nothing."""
    ConfigStore.instance().store(name="schema", node=RunConfig)
    OmegaConf.register_new_resolver("cell", _cell, replace=True)
    OmegaConf.register_new_resolver("name_of", _name_of, replace=True)
    OmegaConf.register_new_resolver("local_workers", local_workers, replace=True)


register()

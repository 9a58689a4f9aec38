"""Words for people: a cell's factors from its overrides, and a short label from its factors. Nothing parses a label."""

from collections.abc import Iterable, Mapping
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser

from ablate.config.schema import RunConfig

LEAVES = ("model", "task", "optimizer", "schedule")
NOT_FACTORS = ("seed", "study", "runtime", "sweep", "hydra")


def factors_of(overrides: Iterable[str]) -> dict[str, Any]:
    """Return {key: value} of the overrides that make a cell what it is (not its seed, not where or how it runs)."""
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    return {
        override.key_or_group: "null" if override.is_delete() else _level(override.value())
        for override in parsed
        if override.key_or_group.split(".")[0].split("/")[0] not in NOT_FACTORS
    }


def _level(value: Any) -> Any:
    """A level that is null is the text `null`: None is kept for a factor that does not apply."""
    return "null" if value is None else plain_value(value)


def plain_value(value: Any) -> Any:
    """Turn what Hydra's parser returns into numbers, text, lists and dicts."""
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, dict):
        return {str(plain_value(key)): plain_value(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | int | float) else str(getattr(value, "text", value))


def label_of(factors: Mapping[str, Any]) -> str:
    """Return a short name: a group's value as it is (`roper`), other factors as `lr=0.001`."""
    present = {key: value for key, value in factors.items() if value is not None}
    short = [key.rpartition(".")[2] for key in present]
    words = []
    for key, value in present.items():
        name = key.rpartition(".")[2]
        if _is_group(key):
            words.append(str(value))
        else:
            words.append(f"{name if short.count(name) == 1 else key}={_text(value)}")
    return " ".join(words) or "default"


def _is_group(key: str) -> bool:
    """A group is a key without a dot that is no value of the root; the leaves of the root are groups too."""
    return "." not in key and (key in LEAVES or key not in RunConfig.__dataclass_fields__)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_text(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_text(item)}" for key, item in value.items()) + "}"
    return f"{value:g}" if isinstance(value, float) else str(value)

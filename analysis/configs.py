"""Resolved configs as the analysis reads them: flat dotted keys, and the keys in which cells differ.

Values are compared by canonical JSON, so 1 and 1.0 are one value and the text "1" another. Sections that are not
part of a cell, or only repeat what another key says, are left out.

Values are those that JSON has. What YAML has beyond them becomes text: a date as it is written (Hydra knows no dates
either), inf, -inf and nan by these names, bytes as UTF-8, a set as its sorted members, and keys of any type.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from ablate.jsonfiles import canonical_json
from ablate.records import RunFolder
from analysis.formatting import factor_value

LEFT_OUT = ("seed", "runtime", "sweep", "study", "rope_percentage")


# libyaml's loader, where PyYAML was built with it, is ten times as fast.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """YAML 1.1 as PyYAML reads it, but with 1e-3 a number and dates as text, as in the program that wrote the file."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_yaml_str)


def read_config(run: RunFolder) -> dict[str, Any]:
    """The resolved config of a run as flat dotted keys; empty when it cannot be read."""
    return _read_flat(run.config)


def read_hydra_config(run: RunFolder) -> dict[str, Any]:
    """The config that Hydra wrote beside a run, likewise; interpolations are not resolved."""
    return _read_flat(run.hydra_config)


def _read_flat(file: Path) -> dict[str, Any]:
    parsed = _read(file)
    return dict(_flat(parsed, "")) if isinstance(parsed, Mapping) else {}


def _read(file: Path) -> Any:
    try:
        return _parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None


def _parse(text: str) -> Any:
    """Raises YAMLError for what is no YAML, ValueError for a value that its tag forbids (!!int of no number)."""
    return _plain(yaml.load(text, Loader=_Loader))


def _plain(value: Any) -> Any:
    """The value as JSON can hold it, by the rule above."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set):
        return f"{{{', '.join(sorted(map(str, value)))}}}"
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return value if _in_json(value) else str(value)


def _in_json(value: Any) -> bool:
    return math.isfinite(value) if isinstance(value, float) else value is None or isinstance(value, str | int)


def read_overrides(run: RunFolder) -> dict[str, Any]:
    """The overrides of a run that Hydra started, values by key; a deleted key is null. Empty when it cannot be read."""
    parsed = _read(run.hydra_overrides)
    lines = [line for line in parsed if isinstance(line, str)] if isinstance(parsed, list) else []
    split = [(line.lstrip("+~"), line.startswith("~")) for line in lines]
    return {line.partition("=")[0]: None if gone else _scalar(line.partition("=")[2]) for line, gone in split}


def _scalar(text: str) -> Any:
    try:
        return _parse(text)
    except (ValueError, yaml.YAMLError):
        return text


def first_readable(paths: Iterable[Path]) -> dict[str, Any]:
    """The config of the first of these run folders that has one; empty when none has."""
    return next((config for path in paths if (config := read_config(RunFolder(path)))), {})


def _flat(value: Any, prefix: str) -> Iterable[tuple[str, Any]]:
    """Leaves of nested mappings; lists are leaves."""
    if not isinstance(value, Mapping):
        yield prefix, value
        return
    for key, item in value.items():
        yield from _flat(item, f"{prefix}.{key}" if prefix else str(key))


def differing(
    flat: Mapping[str, Mapping[str, Any]], left_out: Collection[str | None] = LEFT_OUT
) -> dict[str, dict[str, Any]]:
    """For each cell the keys in which any two cells differ; a key that a cell lacks is absent from its factors.

    Keys and sections of keys that are `left_out` are no factors.
    """
    said = dict.fromkeys(key for config in flat.values() for key in config)
    keys = [key for key in said if not {key, key.split(".")[0]} & set(left_out)]
    swept = [key for key in keys if len({_compared(config, key) for config in flat.values()}) > 1]
    return {cell: {key: config[key] for key in swept if key in config} for cell, config in flat.items()}


def _compared(config: Mapping[str, Any], key: str) -> str | None:
    return canonical_json(config[key]) if key in config else None


def short_description(factors: Mapping[str, Any]) -> str:
    """Factors in a few words for a label: steps=100, width=32."""
    return ", ".join(f"{name.rpartition('.')[2]}={factor_value(value)}" for name, value in factors.items())

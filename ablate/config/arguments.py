"""The command line before Hydra reads it: what people may write that Hydra takes otherwise.

* `model/attention=x` is `attention=x` (Hydra knows a group by one path only).
* Text stays text: `study=1E23` would become a number, `attention=1` would not name a group's option.
* In a sweep, a value of a swappable leaf is handed over as a one-value choice. Hydra checks plain values against the
  default choice of every group, so `attention=rope,none model.attention.base=500` would depend on which option is the
  default; a choice is checked per cell instead, by the sweeper.

Works on strings and the names of files; composes nothing.
"""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from ablate.config.errors import ConfigError

ALIASES = {"model/attention": "attention"}
TEXT_KEYS = ("study", "runtime.output_dir", "runtime.note")
VALUED = (
    "-c",
    "--cfg",
    "-p",
    "--package",
    "-cp",
    "--config-path",
    "-cn",
    "--config-name",
    "-cd",
    "--config-dir",
    "--experimental-rerun",
)
"""Hydra's options that take a value."""

LEAVES = ("model", "task", "optimizer", "schedule")
_OVERRIDE = re.compile(r"(?P<sign>[+~]{0,2})(?P<key>[A-Za-z_][\w./@:-]*)=(?P<value>.*)", re.DOTALL)
_PLAIN = re.compile(r"[\w.+-]+")


given: list[str] = []
"""The command line as it was given, for the records."""


def translate(arguments: Sequence[str], conf: Sequence[Path]) -> list[str]:
    """Return the command line as Hydra should see it; `conf` are the folders with config groups. Remembers it as given.

    Raises ConfigError for a group that is set to null.
    """
    given[:] = arguments
    groups = [group for folder in conf for group in groups_in(folder)]
    options, overrides = apart(arguments)
    multirun = is_multirun(options)
    return [*options, *(_translate(override, groups, multirun) for override in overrides)]


def translated(overrides: Sequence[str], groups: Sequence[str]) -> list[str]:
    """Return overrides of a sweep as Hydra should see them."""
    return [_translate(override, groups, multirun=True) for override in overrides]


def is_multirun(options: Sequence[str]) -> bool:
    """Whether these options ask for a sweep."""
    return bool({"-m", "--multirun"} & set(options))


def apart(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options first: Hydra's parser stops reading overrides at an option that stands between them."""
    options, overrides, last = [], [], []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument in ("-i", "--info"):  # its value may be missing, so it would take the override behind it for one
            last = [argument, *([rest.pop(0)] if rest and "=" not in rest[0] else [])]
        elif not argument.startswith("-"):
            overrides.append(argument)
        else:
            options += [argument, *([rest.pop(0)] if argument in VALUED and rest else [])]
    return options, [*overrides, *last]


def config_dirs(arguments: Sequence[str]) -> list[Path]:
    """Return the folders that `--config-dir` adds to conf/."""
    named = itertools.pairwise(arguments)
    apart = [value for option, value in named if option in ("-cd", "--config-dir")]
    joined = [a.partition("=")[2] for a in arguments if a.startswith(("--config-dir=", "-cd="))]
    return [Path(folder).absolute() for folder in (*apart, *joined)]


def groups_in(conf: Path) -> list[str]:
    """Return the names of the config groups under conf/, Hydra's own left out."""
    return sorted(
        folder.relative_to(conf).as_posix()
        for folder in conf.rglob("*")
        if folder.is_dir() and any(folder.glob("*.yaml")) and folder.relative_to(conf).parts[0] != "hydra"
    )


def _translate(argument: str, groups: Sequence[str], multirun: bool) -> str:
    match = _OVERRIDE.fullmatch(argument)
    if match is None or argument.startswith("-"):
        return argument
    sign, key, value = match["sign"], ALIASES.get(match["key"], match["key"]), match["value"]
    if key in groups and "null" in re.split(r"[,()\s]+", value):
        raise ConfigError(f"{key}={value}: a group needs an option, not null; leave {key}= out{_baseline(key)}")
    if not sign and (key in TEXT_KEYS or key in groups):
        value = keep_text(value)
    elif multirun and not sign and _is_leaf_value(key, value):
        value = f"choice({value})"
    return f"{sign}{key}={value}"


def _is_leaf_value(key: str, value: str) -> bool:
    return "." in key and key.split(".", maxsplit=1)[0] in LEAVES and value not in ("", "null") and not _is_sweep(value)


def _baseline(key: str) -> str:
    return ", or name the arm that changes nothing: ablation=baseline" if key == "ablation" else ""


def keep_text(value: str) -> str:
    """Quote a value that Hydra's grammar would read as a number, a truth value or null, unless it means null."""
    if not _PLAIN.fullmatch(value) or value == "null":
        return value
    looks_typed = re.fullmatch(r"[+-]?[\d_.]+(e[+-]?\d+)?|true|false|nan|inf|[+-]inf", value, re.IGNORECASE)
    return f'"{value}"' if looks_typed else value


def _is_sweep(value: str) -> bool:
    """Whether the value has a comma outside brackets and quotes, or is one of Hydra's sweep functions."""
    if re.match(r"(choice|range|interval|glob|sort|shuffle|tag)\(", value):
        return True
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", value)
    while (inner := re.sub(r"\[[^\[\]]*\]|\{[^{}]*\}|\([^()]*\)", "", bare)) != bare:
        bare = inner
    return "," in bare

"""Hydra's own options (`-m`, `--cfg job`): each refusal in one line, where Hydra prints its usage or a traceback."""

import difflib
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from ablate.config.errors import ConfigError, nearest

FLAGS = {
    "-h": "--help", "-c": "--cfg", "-p": "--package", "-r": "--run", "-m": "--multirun", "-sc": "--shell-completion",
    "-cp": "--config-path", "-cn": "--config-name", "-cd": "--config-dir", "-i": "--info",
}  # fmt: skip
LONG = {*FLAGS.values(), "--hydra-help", "--version", "--resolve", "--experimental-rerun"}
CHOICES = {
    "--cfg": ("job", "hydra", "all"),
    "--info": ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
}
NEEDS_VALUE = ("--cfg", "--package", "--config-path", "--config-name", "--config-dir", "--experimental-rerun")
MODES = ("--run", "--multirun", "--cfg", "--info", "--shell-completion")
COMMAND = "python -m ablate.run"


def check(options: Sequence[str], overrides: Sequence[str], accepted: Callable[[Sequence[str]], bool]) -> None:
    """Raise ConfigError for an option that Hydra does not have, or that has no effect or is not allowed with another.

    `accepted` says whether a command line would be accepted.
    """
    given = _named(options, overrides, accepted)
    if "--config-path" in given:
        _refuse_config_path(given["--config-path"])
    for flag in ("--resolve", "--package"):
        if flag in given and not {"--cfg", "--help"} & set(given):
            raise ConfigError(f"{flag}: has no effect without --cfg job")
    if "--shell-completion" in given and not any(o.startswith(("install=", "uninstall=", "query=")) for o in overrides):
        raise ConfigError("--shell-completion: needs one of install=bash, uninstall=bash, query=bash (or zsh, fish)")
    _refuse_two_modes(given, overrides, accepted)


def _named(
    options: Sequence[str], overrides: Sequence[str], accepted: Callable[[Sequence[str]], bool]
) -> dict[str, str | None]:
    """The options by their long names, with their values; raises ConfigError for an unknown one, and a wrong value."""
    found: dict[str, str | None] = {}
    rest = list(options)
    while rest:
        written = rest.pop(0)
        name, equals, value = written.partition("=")
        flag = FLAGS.get(name, name)
        if flag not in LONG:
            raise ConfigError(f"{written}: no such option{_meant(written, overrides, accepted)}")
        takes = flag in NEEDS_VALUE or flag in CHOICES
        given = value if equals else rest.pop(0) if takes and rest and not rest[0].startswith("-") else None
        if given is None and flag in NEEDS_VALUE:
            raise ConfigError(f"{name}: needs a value; {', '.join(CHOICES.get(flag, ('a folder or a name',)))}")
        if given is not None and flag in CHOICES and given not in CHOICES[flag]:
            raise ConfigError(f"{name} {given}: {nearest(given, CHOICES[flag])}")
        if flag == "--config-dir" and not Path(str(given)).is_dir():
            raise ConfigError(f"{name} {given}: no such folder")
        found[flag] = given
    return found


def _meant(written: str, overrides: Sequence[str], accepted: Callable[[Sequence[str]], bool]) -> str:
    bare = written.lstrip("-")
    if "=" in bare and accepted([*overrides, bare]):
        return f"; write {shlex.quote(bare)}"
    if difflib.get_close_matches(written, [*LONG, *FLAGS], n=1, cutoff=0.7):
        return f"; {nearest(written, LONG if written.startswith('--') else [*FLAGS, *LONG])}"
    return f"; {nearest(written.lower(), FLAGS)}" if written.lower() in FLAGS else "; keys are written KEY=VALUE"


def _refuse_config_path(folder: str | None) -> None:
    rule = "would leave out this project's own config files; a folder of yours is added to them with --config-dir"
    raise ConfigError(f"--config-path {folder}: {rule}")


def _refuse_two_modes(
    given: dict[str, str | None], overrides: Sequence[str], accepted: Callable[[Sequence[str]], bool]
) -> None:
    modes = [flag for flag in MODES if flag in given]
    if len(modes) < 2:
        return
    other = next(flag for flag in reversed(modes) if flag != "--multirun")
    shown = f"{other} {given[other]}" if given[other] else other
    text = f"{shown}: not together with {next(flag for flag in modes if flag != other)}"
    if other == "--cfg" and "--multirun" in modes:
        text += ", a config is that of one run"
        dry = ["-m", *overrides, "sweep.dry_run=true"]
        if accepted(overrides):
            text += f"; for the list of a sweep's runs write {COMMAND} {shlex.join(dry)}"
    raise ConfigError(text)

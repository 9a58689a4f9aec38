"""Hydra's and OmegaConf's complaints, told in one line: the key, the value, the rule, the nearest valid choice."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ablate.config import options as hydra_options
from ablate.config.advice import corrections, rule_for, typed_corrections
from ablate.config.arguments import ALIASES, apart, config_dirs, given, is_multirun, translated
from ablate.config.errors import ConfigError, nearest
from ablate.config.options import COMMAND
from ablate.config.register import config_dir, known_groups, to_run_config
from ablate.sweep.search.settings import Settings

EXPECTED = (HydraException, OmegaConfBaseException)
OPEN_HYDRA_NODES = (
    "hydra.job.env_set",
    "hydra.job_logging",
    "hydra.hydra_logging",
    "hydra.callbacks",
    "hydra.sweeper.params",
    "+hydra.sweeper.sampler.",  # the sweeper checks these two against Optuna's constructors
    "+hydra.sweeper.pruner.",
)
"""Hydra's nodes whose keys are the user's to add."""

SEARCH_OPTIONS = {"report_seeds", *(item.name for item in fields(Settings))}
"""Keys of `hydra.sweeper` that are no good anywhere else."""


def explain(error: BaseException, overrides: Sequence[str]) -> str:
    """Return one line for an exception that composing with `overrides` raised."""
    text = str(error) if str(error) else str(error.__cause__ or error)
    if isinstance(error, OverrideParseException):
        return _grammar(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _missing_option(str(error.missing_cfg_file), error.options or [])
    return (
        _several(text)
        or _overridden(text, overrides, error)
        or _unresolved(text)
        or " ".join(text.split())
        or type(error).__name__
    )


def _several(text: str) -> str | None:
    """Say that several values make a sweep."""
    match = re.search(r"(?:Sweep parameters|Ambiguous value for argument) '(.+?)'( requires --multirun|\s+1\.)", text)
    if match is None:
        return None
    command = f": {COMMAND} -m {shlex.join(given)}" if accepted(apart(given)[1]) else ""
    return f"{match[1]}: several values need -m{command}"


def _overridden(text: str, overrides: Sequence[str], error: BaseException) -> str | None:
    """Say what is wrong with one override: a key that is there already, is unknown, or holds another type."""
    if match := re.search(r"Multiple values for (\S+)\. To override", text):
        return f"+{match[1]}: is there already; write it without +"
    if match := re.search(r"Could not override '([^']+)'\.?\s*(No match in the defaults list)?", text):
        return _unknown_key(match[1], overrides, error)
    if match := re.search(r"Error merging override (.+)", text):
        shown, reason = match[1].strip(), _reason(error)
        if "is not a subclass of" in reason:
            return _node_as_value(_key(shown), overrides)
        key, _, value = shown.partition("=")
        return f"{shown}: {reason}{_proposed(shown, typed_corrections(key, value))}"
    return None


def _unresolved(text: str) -> str | None:
    match = re.search(r"raised while resolving interpolation: (.+?)\s+full_key: (\S+)", text, re.DOTALL)
    if match is None:
        return None
    reason = match[1].strip('"')
    return f"{match[2]}: {reason}"


def _grammar(error: OverrideParseException) -> str:
    key = error.override.partition("=")[0]
    written = next((one for one in apart(given)[1] if one.partition("=")[0] == key), error.override)
    proposed = _proposed(written, corrections(written))
    if "=" not in written and not proposed:
        plain = re.fullmatch(r"[\w./@]+", written)
        return f"{written}: has no value; write {written}=VALUE" if plain else f"{written}: not understood; KEY=VALUE"
    return f"{written}: not understood{proposed or f'; {rule_for(written)}'}"


def _proposed(written: str, meant: Iterable[str]) -> str:
    """Return the first correction that would be accepted in place of what was written, as advice; else nothing."""
    options, others = apart(given)
    others = [one for one in others if one.partition("=")[0] != written.partition("=")[0] and one != written]
    for one in meant:
        if one != written and accepted([*others, one]):
            if _is_value_sweep(one) and not is_multirun(options) and '"' not in one:
                return f"; several values need -m: {COMMAND} -m {shlex.join([*options, *others, one])}"
            return f"; write {shlex.quote(one)}"
    return ""


def accepted(overrides: Sequence[str]) -> bool:
    """Whether a run or sweep of these overrides would be accepted, tried on the first and last value of each key."""
    from ablate.config import preflight  # noqa: PLC0415  (torch, needed only to try advice)
    from ablate.sweep.plan import levels_of  # noqa: PLC0415  (as above)

    try:
        groups = known_groups()
        parsed = OverridesParser.create().parse_overrides(list(translated(overrides, groups)))
        searched = any(one.startswith(("hydra/sweeper=optuna", "hydra/sweeper=tune")) for one in overrides)
        levels = [_ends_of(one) if searched else levels_of(one) for one in parsed]
        for place in (0, -1):
            cell = [one[place] for one in levels]
            preflight.check(to_run_config(compose_cell(cell)))
    except (*EXPECTED, ConfigError, ValueError, TypeError, AttributeError):
        return False
    return True


def _ends_of(override: Override) -> list[str]:
    """The levels of one override of a search, of an interval both ends."""
    from ablate.sweep.plan import levels_of  # noqa: PLC0415  (as above)

    value = override.value()
    if not isinstance(value, IntervalSweep):
        return levels_of(override)
    if value.start is None or value.end is None or not value.start < value.end:
        raise ConfigError("no interval")
    return [f"{override.get_key_element()}={end}" for end in (value.start, value.end)]


def check_options(options: Sequence[str], overrides: Sequence[str]) -> None:
    """Refuse what is wrong with Hydra's own options."""
    hydra_options.check(options, overrides, accepted)


def _missing_option(path: str, options: Sequence[str]) -> str:
    group, _, option = path.rpartition("/")
    if not group:
        return f"{option}: no such config; leave out --config-name"
    return f"{group}={option}: no such option; {nearest(option, options)}" + (
        f" (options: {', '.join(options)})" if options else ""
    )


def _unknown_key(key: str, overrides: Sequence[str], error: BaseException) -> str:
    shown = next((o for o in overrides if _key(o) == key), key)
    groups = [*known_groups(), *ALIASES]
    if "/" in key:
        return f"{shown}: no such group; {nearest(key, groups)}"
    if key in SEARCH_OPTIONS:
        return f"{shown}: no such key; did you mean hydra.sweeper.{key}? (with hydra/sweeper=optuna)"
    known = known_keys(overrides, key)
    return f"{shown}: no such key{_owner(key, known)}; {_hint(key, known, groups)}"


def _node_as_value(key: str, overrides: Sequence[str]) -> str:
    """Say that a key takes no value, without the value, so that a sweep over it is told once."""
    known = list(known_keys(overrides, key))
    values = [other for other in known if "." not in other and not any(one.startswith(f"{other}.") for one in known)]
    return f"{key}: holds keys, not a value; {nearest(key, [one for one in known if _parent(one) == key] + values)}"


def _owner(key: str, known: Mapping[str, str]) -> str:
    """Say which option lacks the key, when the key's node is an option's."""
    return f" in {known[_parent(key)]}" if known.get(_parent(key)) else ""


def _hint(key: str, known: Mapping[str, str], groups: Sequence[str]) -> str:
    """Return the keys of that name in other nodes, else the nearest of the same node, else the nearest of all."""
    if elsewhere := [other for other in known if other.rpartition(".")[2] == key.rpartition(".")[2]]:
        return f"did you mean {' or '.join(elsewhere[:3])}?"
    if _parent(key) in known:
        return nearest(key, [other for other in known if _parent(other) == _parent(key)])
    return nearest(key, [*known, *groups])


def known_keys(overrides: Sequence[str], wrong: str) -> dict[str, str]:
    """Return every key of the config without the wrong override, with the group choice that made a node."""
    kept = [o for o in overrides if _key(o) != wrong and not _is_value_sweep(o)]
    try:
        config = compose_cell(kept)
    except EXPECTED:  # another key is wrong too; what the options hold is known all the same
        groups = _choices(compose_cell([]))
        config = compose_cell([o for o in kept if _key(o) in groups])
    choices = {
        "model.attention" if group == "attention" else group: f"{group}={choice}"
        for group, choice in _choices(config).items()
    }
    return {key: choices.get(key, "") for key in flat_keys(config)}


def _key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]


def _parent(key: str) -> str:
    return key.rpartition(".")[0]


def _is_value_sweep(override: str) -> bool:
    return "," in override or "(" in override


def _choices(config: DictConfig) -> dict[str, str]:
    """Return {group: choice} of a composed config."""
    return {str(k): str(v) for k, v in OmegaConf.select(config, "hydra.runtime.choices").items() if "/" not in str(k)}


def flat_keys(config: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of a config, nodes included, Hydra's own left out."""
    for key in config:
        path = f"{prefix}{key}"
        if path == "hydra" or str(key).startswith("_"):
            continue
        yield path
        node = config._get_node(key)
        if OmegaConf.is_dict(node) and not node._is_none() and not node._is_interpolation():
            yield from flat_keys(node, f"{path}.")


def compose_cell(overrides: Sequence[str]) -> DictConfig:
    """Compose a run's config with Hydra's node, outside a Hydra run."""
    before, settings = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(config_dir()), version_base="1.3"):
            return compose("config", [*_search_path(), *overrides], return_hydra_config=True)
    finally:
        GlobalHydra.instance().hydra, HydraConfig.instance().cfg = before, settings


def _search_path() -> list[str]:
    """The override that finds the user's own --config-dir too."""
    folders = [f'"file://{folder}"' for folder in config_dirs(given)]
    return [f"hydra.searchpath=[{','.join(folders)}]"] if folders else []


def check_hydra_keys(overrides: Sequence[str]) -> None:
    """Refuse a misspelt `hydra.` key, which Hydra itself would accept and ignore."""
    given = [o.partition("=")[0] for o in overrides if o.lstrip("+~").startswith("hydra.")]
    if not given:
        return
    groups = [o for o in overrides if o.startswith("hydra/")]
    config = compose_cell(groups)
    known = [f"hydra.{key}" for key in flat_keys(config.hydra)]
    for written in given:
        key = written.lstrip("+~")
        if key not in known and not key.startswith(OPEN_HYDRA_NODES) and not written.startswith(OPEN_HYDRA_NODES):
            raise ConfigError(f"{key}: no such key; {nearest(key, known)}")


def _reason(error: BaseException) -> str:
    cause = error.__cause__ or error
    return " ".join(str(cause).split("full_key")[0].split())

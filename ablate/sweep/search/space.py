"""The search space: Hydra's sweep syntax read as Optuna's distributions, and a trial's values written as overrides.

    choice(a,b) or a,b                 one of these, in no order; lists and groups too
    range(1,9,2)                       1, 3, 5, 7, in order: the stop is left out, as everywhere in Hydra
    interval(0,1)                      any number between
    int(interval(1,8))                 any whole number between, both ends included; also tag(int, interval(1,8))
    tag(log, interval(1e-4,1e-2))      evenly on a logarithmic scale

A choice is kept as the text that an override would hold (`[2,2]`, `rope`): whatever its type, it comes back as it was.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, RangeSweep
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from ablate.config.errors import ConfigError
from ablate.sweep.plan import flat_params, is_seed, levels_of, seed_of

DEFAULT_SEEDS = 5
"""How many seeds of a trial are proposed where an interval of seeds was given."""


@dataclass(frozen=True)
class Parameter:
    """One searched key: the override's key as given, and its distribution."""

    key: str
    distribution: BaseDistribution

    def override(self, value: Any) -> str:
        """Return the override that sets the key to a value of the distribution."""
        return f"{self.key}={value}"

    def ends(self) -> list[Any]:
        """Return the values that must be valid for the space to be: every choice, or both ends."""
        found = self.distribution
        if isinstance(found, CategoricalDistribution):
            return list(found.choices)
        assert isinstance(found, FloatDistribution | IntDistribution)
        return [found.low, found.high]

    def values(self) -> list[Any] | None:
        """Return all values, or None when there is no end of them."""
        found = self.distribution
        if isinstance(found, CategoricalDistribution):
            return list(found.choices)
        assert isinstance(found, FloatDistribution | IntDistribution)
        if found.step is None:
            return None
        count = math.floor((found.high - found.low) / found.step + 1e-9) + 1
        return [found.low + number * found.step for number in range(count)]

    def __str__(self) -> str:
        """Return the space in the words of the command line."""
        found = self.distribution
        if isinstance(found, CategoricalDistribution):
            return f"choice({','.join(map(str, found.choices))})"
        assert isinstance(found, FloatDistribution | IntDistribution)
        ends = f"({found.low},{found.high})"
        text = f"int(interval{ends})" if isinstance(found, IntDistribution) else f"interval{ends}"
        if found.step not in (None, 1):
            text = f"range({found.low},{found.high + found.step},{found.step})"
        return f"tag(log,{text})" if found.log else text


class Space(NamedTuple):
    """What is searched, what is fixed (overrides), and the seeds of the command line, None for none."""

    parameters: list[Parameter]
    fixed: list[str]
    seeds: list[int] | None

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The distributions by key."""
        return {one.key: one.distribution for one in self.parameters}

    @property
    def keys(self) -> list[str]:
        """The searched keys, in the order given."""
        return [one.key for one in self.parameters]

    def overrides(self, values: Mapping[str, Any]) -> list[str]:
        """Return the overrides of the cell with these values."""
        return [*self.fixed, *(one.override(values[one.key]) for one in self.parameters)]

    def samples(self) -> list[tuple[list[str], list[str]]]:
        """Return cells that show every choice and end: all-first values, then each other value once.

        Each is a pair: the value among the first values of the other parameters, and among their last ones, since a
        choice may only fit with some of the others.
        """
        first = {one.key: one.ends()[0] for one in self.parameters}
        last = {one.key: one.ends()[-1] for one in self.parameters}
        changes: list[dict[str, Any]] = [{}]
        changes += [{one.key: value} for one in self.parameters for value in one.ends()[1:]]
        return [(self.overrides({**first, **change}), self.overrides({**last, **change})) for change in changes]

    def grid(self) -> dict[str, list[Any]]:
        """Return all values of every parameter; raises ConfigError when one has no end of them."""
        found = {one.key: one.values() for one in self.parameters}
        for one in self.parameters:
            if found[one.key] is None:
                raise ConfigError(f"{one.key}={one}: a grid needs values; use choice(...) or range(...)")
        return {key: values for key, values in found.items() if values is not None}

    def size(self) -> int | None:
        """Return the number of different trials, None when there is no end of them."""
        values = [one.values() for one in self.parameters]
        return None if None in values else math.prod(len(found or []) for found in values)


def read_space(loader: ConfigLoader | None, arguments: Sequence[str], params: Mapping[str, Any]) -> Space:
    """Read the command line and `hydra.sweeper.params` (the command line goes first); raises ConfigError.

    Raises ConfigError for an empty space and for an interval that is none.
    """
    parser = OverridesParser.create(config_loader=loader)
    given = parser.parse_overrides(list(arguments))
    refuse_twice(given)
    written = [*parser.parse_overrides(list(flat_params(params))), *given]
    by_key = {str(override.key_or_group): override for override in written}
    seeds = by_key.pop("seed", None)
    refuse_seeds(by_key.values())
    read = [(override, _distribution(override)) for override in by_key.values()]
    parameters = [Parameter(override.get_key_element(), found) for override, found in read if found is not None]
    if not parameters:
        raise ConfigError(
            "nothing to search: give a key several values, such as 'optimizer.lr=tag(log,interval(1e-4,1e-2))' or "
            "attention=rope,roper, here or in hydra.sweeper.params"
        )
    fixed = [fixed_text(override) for override, found in read if found is None]
    return Space(parameters, fixed, [seed_of(level) for level in levels_of(seeds)] if seeds else None)


def refuse_twice(written: Sequence[Override]) -> None:
    """Raise ConfigError where a key with several values is given again: its values would be dropped without a word."""
    several: dict[str, Override] = {}
    for one in written:
        key = str(one.key_or_group)
        if key in several:
            raise ConfigError(f"{key}: given twice, {several[key].input_line} and {one.input_line}; leave one out")
        if has_several(one):
            several[key] = one


def refuse_seeds(written: Iterable[Override]) -> None:
    """Raise ConfigError for a seed among what is searched: the best of several seeds is luck, not a better config."""
    for one in written:
        if is_seed(str(one.key_or_group)) and has_several(one):
            number = len(levels_of(one)) if one.is_discrete_sweep() else DEFAULT_SEEDS
            raise ConfigError(
                f"{one.input_line}: a seed is no hyper-parameter, the best of several is luck; leave it out; for "
                f"{number} seeds of every trial give hydra.sweeper.seeds={number}"
            )


def has_several(override: Override) -> bool:
    """Whether the override gives its key more than one value; `choice(a)` does not."""
    value = override.value()
    return override.is_sweep_override() and not (isinstance(value, ChoiceSweep) and len(value.list) == 1)


def fixed_text(override: Override) -> str:
    """Return the text of an override that has one value, without the choice(...) around it."""
    return levels_of(override)[0] if override.is_sweep_override() else str(override.input_line)


def _distribution(override: Override) -> BaseDistribution | None:
    """Return the distribution of an override; None when it has one value only."""
    value = override.value()
    if isinstance(value, IntervalSweep):
        return _interval(override, value)
    if isinstance(value, RangeSweep):
        return _range(override, value)
    if not override.is_sweep_override():
        return None
    if tags := getattr(value, "tags", None):
        raise ConfigError(
            f"{override.input_line}: {', '.join(sorted(tags))} says nothing of a choice; use interval or range"
        )
    choices = [level.partition("=")[2] for level in levels_of(override)]
    twice = next((choice for choice in choices if choices.count(choice) > 1), None)
    if twice is not None:
        raise ConfigError(f"{override.input_line}: {twice} is given more than once")
    return CategoricalDistribution(choices) if len(choices) > 1 else None


def _interval(override: Override, value: IntervalSweep) -> BaseDistribution:
    low, high = value.start, value.end
    assert low is not None
    assert high is not None
    log = _is_log(override, value.tags)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ConfigError(f"{override.input_line}: both ends must be finite")
    if log and min(low, high) <= 0:
        raise ConfigError(f"{override.input_line}: a logarithmic interval must begin above 0")
    _check_whole_ends(override)
    if low == high:
        raise ConfigError(f"{override.input_line}: both ends are the same; give two, the first below the second")
    if not low < high:
        fixed = re.sub(r"interval\(([^,()]+),([^,()]+)\)", r"interval(\2,\1)", str(override.input_line))
        raise ConfigError(f"{override.input_line}: the first end must be below the second; write '{fixed}'")
    if "int" in value.tags or (isinstance(low, int) and isinstance(high, int)):
        if low != int(low) or high != int(high):
            raise ConfigError(f"{override.input_line}: the ends of whole numbers must be whole numbers")
        return IntDistribution(int(low), int(high), log=log)
    return FloatDistribution(float(low), float(high), log=log)


def _check_whole_ends(override: Override) -> None:
    """Refuse `int(interval(1.5,3.2))`, of which Hydra makes an interval from 1 to 3."""
    line = str(override.input_line)
    if (ends := re.search(r"int\(\s*interval\(([^,()]+),([^,()]+)\)", line)) is None:
        return
    low, high = (float(end.partition("=")[2] or end) for end in ends.groups())
    if low.is_integer() and high.is_integer():
        return
    first, last = math.ceil(low), math.floor(high)
    fixed = line.replace(ends[0], f"int(interval({first},{last})")
    advice = f"; write '{fixed}'" if first < last else ""
    raise ConfigError(f"{line}: the ends of whole numbers must be whole numbers{advice}")


def _range(override: Override, value: RangeSweep) -> BaseDistribution | None:
    """Return the range without its stop."""
    start, stop, step = value.start, value.stop, value.step
    assert start is not None
    assert stop is not None
    count = math.ceil((stop - start) / step - 1e-9) if step > 0 else 0
    if count < 1:
        raise ConfigError(f"{override.input_line}: no value in it; write range(lowest,stop), with a step above 0")
    if count == 1:
        return None
    log, last = _is_log(override, value.tags), start + (count - 1) * step
    if log and (start <= 0 or step != 1):
        raise ConfigError(f"{override.input_line}: a logarithmic range must begin above 0 and have step 1")
    if all(float(number).is_integer() for number in (start, step)):
        return IntDistribution(int(start), int(last), step=int(step), log=log)
    return FloatDistribution(float(start), float(last), step=float(step))


def _is_log(override: Override, tags: set[str]) -> bool:
    unknown = tags - {"log", "int", "float"}
    if unknown:
        raise ConfigError(f"{override.input_line}: unknown tag {', '.join(sorted(unknown))}; valid: log, int")
    return "log" in tags

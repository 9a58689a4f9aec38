"""Which setting of another program's runs is the seed, and what it is in one run."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ablate.jsonfiles import canonical_json
from analysis.study import StudyError

SEED = re.compile(r"(.*[._])?seed", re.IGNORECASE)


class Settings(Protocol):
    """What was asked of one run; `place` is its folder in the study."""

    @property
    def place(self) -> str:
        """The run's folder, as messages name it."""

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Overrides by key."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The config by dotted key."""

    def setting(self, key: str) -> Any:
        """What a key is set to; None when nothing says."""


def find_seed_key(runs: Sequence[Settings], given: str | None) -> str | None:
    """The seed's key: the given one, else one that is named like it in the overrides, else in the configs; or None.

    Raises StudyError when the given key is nowhere, or several keys are named like seeds and differ between runs.
    """
    if given is not None:
        check_key(runs, given, "--seed-key")
        return given
    return _named_like_it([run.overrides for run in runs]) or _named_like_it([run.config for run in runs])


def check_key(runs: Sequence[Settings], given: str, option: str) -> None:
    """Raise StudyError, naming the nearest key, when the key that an option names is one of no run."""
    keys = list(dict.fromkeys(key for run in runs for key in (*run.overrides, *run.config)))
    if given in keys:
        return
    near = difflib.get_close_matches(given, keys, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; overridden are: {', '.join(_overridden(runs)) or 'no keys'}"
    raise StudyError(f"{option} {given!r} is a key of no run{hint}")


def _overridden(runs: Sequence[Settings]) -> list[str]:
    return list(dict.fromkeys(key for run in runs for key in run.overrides))


def _named_like_it(settings: Sequence[Mapping[str, Any]]) -> str | None:
    """`seed`, else the key like it that differs between runs, else the only one whose last part is seed."""
    known = dict.fromkeys(key for one in settings for key in one if SEED.fullmatch(key))
    values = {key: [one.get(key) for one in settings] for key in known}
    keys = [key for key in known if any(value is not None for value in values[key])]
    if "seed" in keys:
        return "seed"
    vary = [key for key in keys if len(set(map(canonical_json, values[key]))) > 1]
    if len(vary) > 1:
        raise StudyError(f"{len(vary)} keys look like the seed: {', '.join(vary)}; name the one it is with --seed-key")
    plain = [key for key in keys if key.rpartition(".")[2] == "seed"]
    return next(iter(vary or (plain if len(plain) == 1 else [])), None)


def seed_of(run: Settings, key: str) -> int:
    """The seed of one run. Raises StudyError when it is not a whole number."""
    value = run.setting(key)
    try:
        seed = int(value)
        if isinstance(value, bool) or (isinstance(value, float) and seed != value):
            raise ValueError(value)
    except (TypeError, ValueError):
        told = f"seed key {key}: {value!r} in {run.place} is not a whole number"
        raise StudyError(f"{told}; name another with --seed-key, or move that run away") from None
    return seed

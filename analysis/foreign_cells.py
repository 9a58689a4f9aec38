"""The variants of another program's runs: the settings that tell them apart, found in overrides and in configs.

    overrides   every key in which runs differ
    configs     every further key in which runs differ that are alike in those overrides: the config on disk was changed
                between two sweeps, so they are other variants, not reruns of each other
    left out    the seed's key; keys whose name says that they tell where, when or by whom a run was made
                (WHERE_AND_WHEN, LOGGERS); keys that differ in every run (`_differs_in_every_run`), for they tell runs
                apart, not variants

Of a folder or file of data only the last part is compared, since the rest depends on the machine.
Of several config keys that always change together the first is the factor, and a remark names the others.
"""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablate.jsonfiles import canonical_json
from analysis import configs
from analysis.seed_key import Settings, check_key
from analysis.study import StudyError

LOGGERS = {"hydra", "wandb", "mlflow", "neptune", "comet", "aim", "tensorboard"}
"""Sections about the program's surroundings."""

_FOLDER = r"(dir|path|folder|directory|root)"
_OUTPUT = (
    "output|out|log|logs|logging|save|run|work|working|ckpt|checkpoint|checkpoints|result|results|artifact|artifacts|cache|"
    "tmp|temp|root|default_root|project|base|exp|experiment|dump|plot|figure|tensorboard|tb"
)
WHERE_AND_WHEN = re.compile(
    rf"({_OUTPUT})_?{_FOLDER}|(run|job|exp|experiment|trial|process|slurm_job|session|log)_?(id|name|number|num)|"
    r"time_?stamp|datetime|date|now|(start|end|launch|creation)(ed)?_?(time|date|at)|(creat|start)ed(_(at|on))?|"
    r"host|hostname|node|nodename|user|username|pid|port|master_port|local_rank|gpu_ids?",
    re.IGNORECASE,
)
"""Last parts of keys that say where, when and by whom a run was made."""

DATA_FOLDER = re.compile(rf"(.*_)?{_FOLDER}", re.IGNORECASE)

ONE_OFF = re.compile(
    r".*\d{4}[-_/.]?\d\d[-_/.]?\d\d.*|.*\d\d[-_:]\d\d[-_:]\d\d.*|(?=.*\d)[0-9a-f]{7,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}.*",
    re.IGNORECASE,
)
"""Values that are made anew for each run: dates, times of day, hexadecimal names, UUIDs."""


@dataclass(frozen=True)
class Cells:
    """The settings of each run that tell variants apart, by the run's place, and what must be said of them."""

    factors: Mapping[str, Mapping[str, Any]]
    remarks: Sequence[str]


Texts = Mapping[str, Hashable]
"""Something of each run, by its place."""


def find_cells(runs: Sequence[Settings], seed_key: str | None, variant_key: str | None = None) -> Cells:
    """The settings in which variants differ; `variant_key` is the one that the user names, if any.

    Raises StudyError when no run has that key, or when runs of one variant and seed differ in other settings.
    """
    if variant_key is None:
        return _find(runs, seed_key)
    check_key(runs, variant_key, "--variant-key")
    return _of_variant(runs, seed_key, variant_key, _find(runs, seed_key))


def _of_variant(runs: Sequence[Settings], seed_key: str | None, variant_key: str, cells: Cells) -> Cells:
    """Cells by one setting alone; null where nothing says it."""
    variants = {run.place: {variant_key: run.setting(variant_key)} for run in runs}
    others = {place: _only(factors, factors.keys() - {variant_key}) for place, factors in cells.factors.items()}
    first: dict[str, Settings] = {}
    for run in runs if seed_key is not None else ():
        same = canonical_json([variants[run.place], run.setting(seed_key)])  # type: ignore[arg-type]
        differ = _differing_keys(others[run.place], others[first.setdefault(same, run).place])
        if differ:
            both = f"{first[same].place} and {run.place} have the same {variant_key} and {seed_key}"
            raise StudyError(
                f"--variant-key {variant_key}: {both}, but differ in {_listed(differ)}, so neither is a rerun of the "
                "other; leave --variant-key out, or give a folder without one of them"
            )
    labels = _column(variants, variant_key)
    keys = dict.fromkeys(key for one in others.values() for key in one)
    also = [key for key in keys if not _determines(labels, _column(others, key))]
    return Cells(variants, [f"runs with the same {variant_key} differ in {_listed(also)} too"] if also else [])


def _differing_keys(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    both = {"first": first, "second": second}
    return list(dict.fromkeys(key for one in configs.differing(both, left_out=()).values() for key in one))


def _find(runs: Sequence[Settings], seed_key: str | None) -> Cells:
    """The settings in which variants differ; one that only the config of a run tells is taken from there."""
    seeds = {run.place: canonical_json(run.setting(seed_key)) for run in runs} if seed_key is not None else None
    given = configs.differing({run.place: run.overrides for run in runs}, left_out={seed_key})
    keys = list(dict.fromkeys(key for factors in given.values() for key in factors))
    settings = {run.place: {key: run.setting(key) for key in keys if _has(run, key)} for run in runs}
    one_off = _one_off_overrides(settings, keys, seeds, with_configs=all(run.config for run in runs))
    overridden = {place: _only(factors, set(keys) - set(one_off)) for place, factors in settings.items()}
    firsts, per_run, remarks = _config_factors(runs, overridden, seeds, {*keys, seed_key})
    if one_off or per_run:
        remarks.append(f"keys that differ in every run make no variants: {_listed([*one_off, *per_run])}")
    added = {run.place: _only(_comparable(run.config), firsts) for run in runs}
    return Cells({place: {**one, **added[place]} for place, one in overridden.items()}, remarks)


def _has(run: Settings, key: str) -> bool:
    return key in run.overrides or key in run.config


def _only(settings: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key in keys}


def _one_off_overrides(
    settings: Mapping[str, Mapping[str, Any]], keys: Sequence[str], seeds: Texts | None, *, with_configs: bool
) -> list[str]:
    """Overrides such as output_dir=out/rope_3, which name a run and not a variant; only where seeds are known.

    Their names or values say so, and each value belongs to one variant and seed alone. As they may be all that tells
    variants apart, most runs must be told apart without them, or the configs must be there to tell it; a name, which
    may stand for a change of the code, is kept in the latter case.
    """
    doubtful = [key for key in keys if _is_where_and_when(key) or _look_one_off(settings, key)]
    for left_out in (doubtful, [key for key in doubtful if not key.endswith("name")] if with_configs else []):
        cells = {place: canonical_json(_only(one, set(keys) - set(left_out))) for place, one in settings.items()}
        pairs = _both(cells, seeds) if seeds is not None else {}
        if 2 * len(set(pairs.values())) > len(settings) or (pairs and left_out is not doubtful):
            return [key for key in left_out if _determines(_column(settings, key), pairs)]
    return []


def _config_factors(
    runs: Sequence[Settings], overridden: Mapping[str, Mapping[str, Any]], seeds: Texts | None, known: set[str | None]
) -> tuple[list[str], list[str], list[str]]:
    """Config keys beyond the overrides that make variants; those that differ in every run; and remarks."""
    readable = {run.place: _comparable(run.config) for run in runs if run.config}
    cells = {place: canonical_json(overridden[place]) for place in readable}
    differing = configs.differing(readable, left_out=LOGGERS)
    keys = [key for key in dict.fromkeys(key for one in differing.values() for key in one) if key not in known]
    columns = {key: _column(differing, key) for key in keys if not _is_where_and_when(key)}
    columns = {key: column for key, column in columns.items() if not _determines(cells, column)}
    per_run = [key for key in columns if _differs_in_every_run(differing, key, cells, seeds)]
    groups: dict[tuple[int, ...], list[str]] = {}
    for key in columns:
        if key not in per_run:
            groups.setdefault(_partition(columns[key]), []).append(key)
    remarks = [
        f"runs that differ in {first}, which is not overridden, are variants of their own"
        + (f"; with it change {_listed(rest)}" if rest else "")
        for first, *rest in groups.values()
    ]
    return [first for first, *_ in groups.values()], per_run, remarks


def _comparable(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config with the last part only of folders and files of data."""
    return {key: _base(value) if DATA_FOLDER.fullmatch(_last(key)) else value for key, value in config.items()}


def _base(value: Any) -> Any:
    return value.rstrip("/").rpartition("/")[2] if isinstance(value, str) and value.startswith("/") else value


def _differs_in_every_run(
    settings: Mapping[str, Mapping[str, Any]], key: str, cells: Texts, seeds: Texts | None
) -> bool:
    """Whether in each variant a value belongs to one seed alone: made for each run, or made from the seed.

    Fewer than three seeds of a variant do not show that, unless the values look it.
    """
    column = _column(settings, key)
    if _look_one_off(settings, key):
        return _determines(_both(cells, column), seeds or dict(zip(column, column, strict=True)))
    if seeds is None or not _determines(_both(cells, column), {place: seeds[place] for place in column}):
        return False
    pairs = {(cells[place], seeds[place]) for place in column}
    return max(Counter(cell for cell, _ in pairs).values()) >= 3


def _column(settings: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, Hashable]:
    """The values of a key as text that can be compared; None where a run has none."""
    return {place: canonical_json(one[key]) if key in one else None for place, one in settings.items()}


def _both(first: Texts, second: Texts) -> dict[str, Hashable]:
    return {place: (value, second[place]) for place, value in first.items()}


def _determines(known: Texts, other: Texts) -> bool:
    """Whether runs that are alike in the first are alike in the second."""
    return len({(value, other[place]) for place, value in known.items()}) == len(set(known.values()))


def _partition(column: Texts) -> tuple[int, ...]:
    """Which runs are alike: equal for two keys that always change together."""
    numbers: dict[Hashable, int] = {}
    return tuple(numbers.setdefault(value, len(numbers)) for value in column.values())


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _is_where_and_when(key: str) -> bool:
    return bool(WHERE_AND_WHEN.fullmatch(_last(key))) or bool(LOGGERS & set(key.split(".")))


def _look_one_off(settings: Mapping[str, Mapping[str, Any]], key: str) -> bool:
    return all(_looks_one_off(one[key]) for one in settings.values() if key in one)


def _looks_one_off(value: Any) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 1e9 <= value < 3e9  # seconds of the epoch
    return isinstance(value, str) and bool(ONE_OFF.fullmatch(value))


def _listed(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - 5} more" if len(keys) > 5 else ""
    return ", ".join(keys[:5]) + more

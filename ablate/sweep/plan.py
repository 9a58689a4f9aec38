"""Command line -> plan: which cells, which seeds, every cell checked, nothing written.

Values are expanded by Hydra's own grammar (`a,b`, `range`, `choice`, `glob`). A cell is composed once, not once a seed.
Two combinations with one identity are one cell: a factor that a cell has no use for (`rope_percentage` of `none`) is
null there.
"""

import hashlib
import itertools
import math
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, NamedTuple

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override
from omegaconf import DictConfig

from ablate import provenance
from ablate.config import preflight, question
from ablate.config.arguments import ALIASES, TEXT_KEYS, given, keep_text, translated
from ablate.config.errors import ConfigError
from ablate.config.file_settings import PER_RUN
from ablate.config.labels import label_of
from ablate.config.register import known_groups
from ablate.config.schema import RunConfig, Transform, Until
from ablate.jsonfiles import canonical_json
from ablate.records import ID_TIME, PlannedCell, StudyFolder, SweepPlan
from ablate.sweep.cells import Cell, Composer


def with_params(arguments: Sequence[str], params: Mapping[str, Any]) -> list[str]:
    """Return the command line with what `hydra.sweeper.params` sweeps beside it; the command line wins."""
    keys = {argument.lstrip("+").partition("=")[0] for argument in arguments}
    written = [one for one in flat_params(params) if one.partition("=")[0] not in keys]
    return [*translated(written, known_groups()), *arguments]


def flat_params(params: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield key=value of a mapping, nested ones joined by dots."""
    for key, value in params.items():
        if isinstance(value, dict | DictConfig):
            yield from flat_params(value, f"{prefix}{key}.")
        else:
            name = ALIASES.get(f"{prefix}{key}", f"{prefix}{key}")
            yield f"{name}={'null' if value is None else value}"


class Expanded(NamedTuple):
    """A sweep's command line taken apart: overrides of each combination in order, the swept keys, the seeds."""

    combinations: list[list[str]]
    factors: list[str]
    seeds: list[int]


class Plan(NamedTuple):
    """A checked sweep: what its file will hold, its study, one cell's config, and the code's fingerprint by cell.

    `pool` are the seeds that it may come to use: its seeds, or more when it adds seeds until decided.
    """

    sweep: SweepPlan
    study: StudyFolder
    config: RunConfig
    sources: dict[str, str]
    pool: list[int]


def make_plan(loader: ConfigLoader, config: DictConfig, arguments: Sequence[str]) -> Plan:
    """Expand, compose and check; raises ConfigError in one line per distinct fault, before anything is written."""
    expanded = expand(loader, arguments)
    cells = _compose_all(loader, config, expanded)
    studies = sorted({cell.study for cell in cells})
    if len(studies) > 1:
        names = ", ".join(map(str, studies))
        raise ConfigError(f"study: these runs belong to several studies ({names}); name one with study=NAME")
    check_shared(cells)
    preflight.check_writable(studies[0])
    merged = merge([cell.planned for cell in cells], expanded.factors)
    first = cells[0].config
    pool = question.seed_pool(first, expanded.seeds)
    until = _until(first, merged, pool)
    sweep = new_sweep(merged, pool[: until["block"]] if until else pool, cells, arguments)
    sweep.until = until
    _check_reference(sweep, first)
    sources = {cell.planned.cell: cell.source for cell in cells}
    return Plan(sweep, StudyFolder(studies[0]), first, sources, pool)


def check_shared(cells: Sequence[Cell]) -> None:
    """Raise ConfigError where cells differ in what holds for a whole sweep: `sweep`, and `runtime` but for one key."""
    first = _shared(cells[0])
    for cell in cells[1:]:
        other = _shared(cell)
        for key in first:
            if first[key] != other[key]:
                one, two = (_only_in(*pair) for pair in ((cells[0], cell), (cell, cells[0])))
                raise ConfigError(
                    f"{key}: holds for a whole sweep, and its variants differ: {first[key]} with {one}, {other[key]} "
                    f"with {two}; give one value on the command line"
                )


def _shared(cell: Cell) -> dict[str, Any]:
    parts: dict[str, Any] = {"sweep": cell.config.sweep, "runtime": cell.config.runtime}
    values = {f"{name}.{item.name}": getattr(part, item.name) for name, part in parts.items() for item in fields(part)}
    return {key: getattr(value, "value", value) for key, value in values.items() if key != PER_RUN}


def _only_in(one: Cell, other: Cell) -> str:
    return " ".join(line for line in one.planned.overrides if line not in other.planned.overrides)


def _check_reference(sweep: SweepPlan, config: RunConfig) -> None:
    """Raise ConfigError for a `sweep.reference` that does not fit the tasks and variants of the sweep."""
    if config.sweep.reference is None:
        return
    from analysis.study import StudyError  # noqa: PLC0415  (pandas and scipy, needed only here)
    from analysis.task_sets import check_planned  # noqa: PLC0415

    log = config.sweep.transform is Transform.log
    try:
        check_planned(sweep, config.sweep.reference, str(config.task["_target_"]), log=log)
    except StudyError as error:
        text = str(error)
        raise ConfigError(f"sweep.{text}" if text.startswith("reference") else f"sweep.reference: {text}") from None


def _until(config: RunConfig, cells: Sequence[PlannedCell], pool: Sequence[int]) -> dict[str, Any] | None:
    """How seeds are added, as the plan keeps it; None for a sweep of planned seeds."""
    if config.sweep.until is Until.planned:
        return None
    if len(cells) < 2:
        raise ConfigError("sweep.until=decided: needs at least two variants to compare, and there is one")
    block = config.sweep.block or question.BLOCK
    return {"block": block, "max_seeds": len(pool), "stopped": {}, "ended": None}


def expand(loader: ConfigLoader | None, arguments: Sequence[str]) -> Expanded:
    """Take a sweep's arguments apart; the last of two values for one key stands."""
    overrides = OverridesParser.create(config_loader=loader).parse_overrides(list(arguments))
    levels = {str(override.key_or_group): levels_of(override) for override in overrides}
    seeds = [seed_of(level) for level in levels.pop("seed", ["seed=0"])]
    repeated = sorted({seed for seed in seeds if seeds.count(seed) > 1})
    if repeated:
        raise ConfigError(f"seed={repeated[0]}: given more than once; a seed counts once")
    combinations = [list(combination) for combination in itertools.product(*levels.values())]
    return Expanded(combinations, [key for key, values in levels.items() if len(values) > 1], seeds)


def levels_of(override: Override) -> list[str]:
    """Return `key=value` for each level of one override."""
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [str(override.input_line)]
    if not override.is_discrete_sweep():
        if is_seed(str(override.key_or_group)):
            raise ConfigError(
                f"{override.input_line}: seeds are listed, not drawn; write '{key}={seed_range(override)}'"
            )
        raise ConfigError(
            f"{override.input_line}: a grid needs values, not an interval; use choice(...) or hydra/sweeper=optuna"
        )
    levels = [f"{key}={_level(str(override.key_or_group), value)}" for value in override.sweep_string_iterator()]
    if not levels:
        raise ConfigError(f"{override.input_line}: no value in it")
    return levels


def _level(key: str, value: str) -> str:
    return keep_text(value) if key in TEXT_KEYS or key in known_groups() else value


def is_seed(key: str) -> bool:
    """Whether a key holds a seed: `seed`, `evaluation.seed`, one of `seeds`, or a part's (`task.split_seed`)."""
    words = re.split(r"[^A-Za-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower())
    return key.startswith("seeds.") or words[-1] in ("seed", "seeds") or words[-2:] == ["random", "state"]


def seed_range(override: Override) -> str:
    """Return the whole numbers of an interval, both ends included, as a range that a command may hold."""
    value = override.value()
    assert isinstance(value, IntervalSweep)
    ends = [end for end in (value.start, value.end) if isinstance(end, int | float) and math.isfinite(end)]
    low, high = (min(ends), max(ends)) if ends else (0, 4)
    first = max(0, math.ceil(low))
    return f"range({first},{max(first, math.floor(high)) + 1})"


def seed_of(level: str) -> int:
    """Return the seed of `seed=3`; raises ConfigError."""
    value = level.partition("=")[2].strip("\"'")
    if not value.lstrip("-").isdigit():
        raise ConfigError(f"seed={value}: must be a whole number; for ten seeds write 'seed=range(10)'")
    if int(value) < 0:
        raise ConfigError(f"seed={value}: must be at least 0")
    return int(value)


def _compose_all(loader: ConfigLoader, config: DictConfig, expanded: Expanded) -> list[Cell]:
    """Compose and check every combination; raises ConfigError with one line per distinct fault."""
    composer = Composer(loader, config, expanded.seeds[0])
    faults: dict[str, None] = {}
    cells = []
    for overrides in expanded.combinations:
        try:
            cells.append(composer.cell(overrides, expanded.factors))
        except ConfigError as error:
            faults.setdefault(str(error))
    if faults:
        raise ConfigError("\n".join(faults))
    return cells


def merge(cells: Sequence[PlannedCell], factors: Sequence[str]) -> list[PlannedCell]:
    """Join combinations with one identity; where their levels differ the factor is not applicable: null."""
    groups: dict[str, list[PlannedCell]] = {}
    for cell in cells:
        groups.setdefault(cell.cell, []).append(cell)
    return [_joined(group, factors) if len(group) > 1 else group[0] for group in groups.values()]


def _joined(group: Sequence[PlannedCell], factors: Sequence[str]) -> PlannedCell:
    first = group[0]
    joined = {
        key: first.factors.get(key) if len({canonical_json(cell.factors.get(key)) for cell in group}) == 1 else None
        for key in factors
    }
    label = label_of(joined) if any(value is not None for value in joined.values()) else first.label
    return PlannedCell(cell=first.cell, label=label, factors=joined, folder=first.folder, overrides=first.overrides)


def new_sweep(
    merged: list[PlannedCell], seeds: list[int], cells: Sequence[Cell], arguments: Sequence[str]
) -> SweepPlan:
    """Return the plan of a sweep that begins now; `cells` are the combinations that were joined to `merged`."""
    created = datetime.now(UTC)
    notes = [cells[0].config.runtime.note] if cells[0].config.runtime.note else []
    if 0 < len(merged) < len(cells):
        notes.append(f"{len(cells)} combinations are {len(merged)} cells; a factor without effect shows a dash")
    unique = f"{list(arguments)}{time.time_ns()}{os.getpid()}".encode()
    begins = StudyFolder(cells[0].study).later_than_all(created)
    return SweepPlan(
        id=f"{begins:{ID_TIME}}-{hashlib.sha256(unique).hexdigest()[:8]}",
        created=created.isoformat(timespec="seconds"),
        command=command_line(),
        study=cells[0].config.study,
        cells=merged,
        seeds=seeds,
        question=question.declared(cells[0].config.sweep),
        versions=provenance.versions(),
        git=provenance.git_state(),
        source=cells[0].source,
        notes=notes,
    )


def command_line() -> str:
    """Return this process's command as one would paste it."""
    return shlex.join(["python", "-m", "ablate.run", *given])


def factors_of_record(plan: SweepPlan, cell: str) -> tuple[str, Mapping[str, Any]]:
    """Return label and factors of a cell in a plan."""
    for planned in plan.cells:
        if planned.cell == cell:
            return planned.label, planned.factors
    raise ConfigError(f"sweep {plan.id} has no cell {cell[:8]}; was the config edited while the sweep runs?")

"""Study folder to `Study`. Reads run.json, the sweeps' plans and config.yaml through `ablate.records`.

One small file per run is read; metrics.jsonl only when curves are asked for. Nothing is parsed from a folder name. What
cannot be read is a warning that names the file, never a crash. Which sweep is meant:

    latest   the newest plan, a search only where all plans are searches (all runs when the study has no plan)
    ID       that plan
    all      every planned run and every run folder; factors are the config keys in which the cells differ
"""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ablate.jsonfiles import RecordError, canonical_json
from ablate.records import RunFolder, RunRecord, StudyFolder, SweepPlan
from analysis import configs
from analysis.cache import Cache
from analysis.curves import RunLog
from analysis.plans import latest, looks_of, open_ended, stopped_cells
from analysis.study import LoadedRun, Replaced, Study, StudyError, Variant

SEARCHED = (
    "these cells are the trials of a search, which chose them by their results: no verdict, interval or p value between"
    " them means what it says; see the part on the search, and train what you compare with other seeds"
)


@dataclass
class _Reading:
    """What is collected while one study is read."""

    folder: StudyFolder
    problems: list[str] = field(default_factory=list)
    replaced: list[Replaced] = field(default_factory=list)

    def record(self, run: RunFolder) -> tuple[RunRecord | None, str]:
        """The record of a run and, when it is damaged, what is wrong with it (paths relative to the study)."""
        try:
            record = run.read()
            if record is not None:
                _check(run, record)
            return record, ""
        except (RecordError, OSError) as error:
            return None, self.complain(error)

    def complain(self, error: Exception) -> str:
        """Note a damaged file and return the note."""
        message = str(error).replace(f"{self.folder.path}/", "")
        self.problems.append(message)
        return message

    def run(self, variant: Variant, seed: int, folder: RunFolder) -> LoadedRun:
        """Read one planned run and the results that it replaced."""
        record, damage = self.record(folder)
        if record is not None:
            self._note_replaced(variant, record, folder)
        if not folder.path.is_dir():
            return LoadedRun(variant, seed, record, damage=damage)
        place = folder.path.relative_to(self.folder.path).as_posix()
        return LoadedRun(variant, seed, record, folder, damage, RunLog(folder), place)

    def _note_replaced(self, variant: Variant, record: RunRecord, folder: RunFolder) -> None:
        for earlier in folder.superseded():
            old, _ = self.record(earlier)
            if old is not None and old.status.is_result:
                shared = old.metrics.keys() & record.metrics.keys()
                differs = any(old.metrics[name] != record.metrics[name] for name in shared)
                self.replaced.append(Replaced(variant.label, record.seed, old.status, old.ended or "", differs))


def _check(run: RunFolder, record: RunRecord) -> None:
    """Raise RecordError when what the analysis computes with is not a number."""
    numbers = {name: getattr(record, name) for name in ("seed", "steps_done", "steps_planned", "seconds")}
    metrics = record.metrics if isinstance(record.metrics, dict) else {"metrics": record.metrics}
    for name, value in {**numbers, **{key: value for key, value in metrics.items() if value is not None}}.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RecordError(f"{run.record}: not a run record ({name} is {value!r}, not a number)")


def load_study(path: Path | str, sweep: str = "latest") -> Study:
    """Read a study. `sweep` is "latest", "all" or the id of a plan.

    Raises StudyError, one line with the way out, when there is no such folder, nothing in it, or no such sweep.
    """
    folder = StudyFolder(existing(Path(path)))
    reading = _Reading(folder)
    plans = _read_plans(reading)
    if not plans and not folder.runs():
        raise StudyError(_no_study(folder.path))
    if sweep == "all" or (sweep == "latest" and not plans):
        return _load_all(reading, plans)
    return _load_sweep(reading, plans, sweep)


def existing(path: Path) -> Path:
    """The folder; raises StudyError that names the nearest one when there is none."""
    if path.is_dir():
        return path
    parent = path.parent
    found = parent.iterdir() if parent.is_dir() else []
    studies = sorted(p.name for p in found if p.is_dir() and not p.name.startswith("."))
    near = difflib.get_close_matches(path.name, studies, n=3, cutoff=0.4)
    there = f"; {parent} holds {', '.join(studies[:5]) or 'no studies'}"
    hint = f"; did you mean {', '.join(near)}?" if near else there
    raise StudyError(f"no study folder {path}{hint}")


def _no_study(path: Path) -> str:
    """What to do with a folder that has neither runs nor sweeps."""
    inside = sorted(child for child in path.iterdir() if child.is_dir())
    studies = [child.name for child in inside if StudyFolder(child).runs() or StudyFolder(child).sweep_ids()]
    if studies:
        holds = f"{len(studies)}: {', '.join(studies[:8])}"
        return f"{path} is no study but holds {holds}; name one, such as {path / studies[0]}"
    if next(path.rglob(RunFolder(path).hydra.name), None) is not None:
        return f"{path} holds runs of another program: say where their metrics are, --metrics FILE:COLUMN"
    return f"{path.name}: the study is empty; it has neither runs nor sweeps"


def _read_plans(reading: _Reading) -> list[SweepPlan]:
    """All plans that can be read, oldest first."""
    plans = []
    for sweep_id in reading.folder.sweep_ids():
        try:
            plans.append(reading.folder.read_sweep(sweep_id))
        except (RecordError, OSError) as error:
            reading.complain(error)
    return plans


def _load_sweep(reading: _Reading, plans: Sequence[SweepPlan], sweep: str) -> Study:
    ids = [plan.id for plan in plans]
    if sweep != "latest" and sweep not in ids:
        raise StudyError(f"no sweep {sweep!r} in {reading.folder.path.name}; there are: {', '.join(ids)}, latest, all")
    position = latest(plans) if sweep == "latest" else ids.index(sweep)
    plan = plans[position]
    labels = unique_labels([(cell.cell, cell.label) for cell in plan.cells])
    variants = {cell.cell: Variant(cell.cell, labels[cell.cell], cell.factors) for cell in plan.cells}
    cells = {cell.cell: cell for cell in plan.cells}
    runs = [
        reading.run(variants[key], seed, reading.folder.run(cell.folder, seed))
        for key, cell in cells.items()
        for seed in dict.fromkeys(plan.seeds_of(key))
    ]
    return _study(
        reading, plan.study, plan.id, variants=list(variants.values()), runs=runs, plans=plans[: position + 1]
    )


def _load_all(reading: _Reading, plans: Sequence[SweepPlan]) -> Study:
    found = _planned(reading, plans)
    known = {cell.cell: Variant(cell.cell, cell.label, cell.factors) for plan in reversed(plans) for cell in plan.cells}
    for run in reading.folder.runs():
        record = None if run.path in found else reading.record(run)[0]
        if record is not None:
            found[run.path] = (record.cell, record.seed)
            known.setdefault(record.cell, Variant(record.cell, record.label, record.factors))
    if not found:
        raise StudyError(f"{reading.folder.path.name}: no run of this study can be read")
    variants = _variants_by_config(found, known)
    order = {cell: index for index, cell in enumerate(variants)}
    places = sorted(found.items(), key=lambda item: (order[item[1][0]], item[1][1]))
    runs = [reading.run(variants[cell], seed, RunFolder(path)) for path, (cell, seed) in places]
    name = plans[0].study if plans else next((run.record.study for run in runs if run.record), "")
    return _study(
        reading, name or reading.folder.path.name, "all", variants=list(variants.values()), runs=runs, plans=plans
    )


def _planned(reading: _Reading, plans: Sequence[SweepPlan]) -> dict[Path, tuple[str, int]]:
    """Where each planned run is, with its cell and seed; the oldest plan's cells come first."""
    return {
        reading.folder.run(cell.folder, seed).path: (cell.cell, seed)
        for plan in plans
        for cell in plan.cells
        for seed in plan.seeds_of(cell.cell)
    }


def _variants_by_config(found: Mapping[Path, tuple[str, int]], known: Mapping[str, Variant]) -> dict[str, Variant]:
    """Variants whose factors are the config keys in which the cells differ, in order of first appearance.

    When a cell has no config that can be read, the factors that its plan or record names stand in for all.
    """
    cells = list(dict.fromkeys(cell for cell, _ in found.values()))
    flat = {cell: configs.first_readable([path for path, (c, _) in found.items() if c == cell]) for cell in cells}
    complete = all(flat.values())
    factors = _differing(flat, known) if complete else {cell: dict(known[cell].factors) for cell in cells}
    labels = unique_labels([(cell, known[cell].label) for cell in cells], factors)
    return {cell: Variant(cell, labels[cell], factors[cell]) for cell in cells}


def _differing(flat: Mapping[str, Mapping[str, Any]], known: Mapping[str, Variant]) -> dict[str, dict[str, Any]]:
    """The keys in which configs differ; first of them the task by its name, where plans name several tasks.

    Two tasks may be one class with other values, which only their names tell from a swept value of one task. A cell
    whose plan has one task only, and so does not name it, is known by the task's config.
    """
    tasks = {
        cell: canonical_json({k: v for k, v in one.items() if k.startswith("task.")}) for cell, one in flat.items()
    }
    named = {tasks[cell]: known[cell].factors["task"] for cell in flat if known[cell].factors.get("task") is not None}
    several = len(set(map(str, named.values()))) > 1 and set(tasks.values()) <= named.keys()
    return {
        cell: {"task": named[tasks[cell]], **factors} if several else factors
        for cell, factors in configs.differing(flat).items()
    }


def unique_labels(
    pairs: Sequence[tuple[str, str]], factors: Mapping[str, Mapping[str, object]] | None = None
) -> dict[str, str]:
    """One label per cell: its own where no other cell has it, else with its factors, else with 8 digits of the cell."""
    labels = dict(pairs)
    for describe in (_with_factors, _with_cell):
        shared = {label for label in labels.values() if list(labels.values()).count(label) > 1}
        labels = {
            cell: describe(label, cell, factors or {}) if label in shared else label for cell, label in labels.items()
        }
    return labels


def _with_factors(label: str, cell: str, factors: Mapping[str, Mapping[str, object]]) -> str:
    text = configs.short_description(factors.get(cell, {}))
    return f"{label} ({text})" if text else label


def _with_cell(label: str, cell: str, _: Mapping[str, Mapping[str, object]]) -> str:
    return f"{label} [{cell[:8]}]"


def _study(
    reading: _Reading,
    name: str,
    sweep: str,
    *,
    variants: Sequence[Variant],
    runs: Sequence[LoadedRun],
    plans: Sequence[SweepPlan],
) -> Study:
    _check_one_study(reading.folder.path, runs)
    seeds = tuple(dict.fromkeys(run.seed for run in runs))
    newest = plans[-1] if plans else None
    until = newest.until if newest and sweep == newest.id else None
    folders = [run.folder.path for run in runs if run.folder]
    return Study(
        name=name,
        sweep=sweep,
        variants=tuple(variants),
        seeds=seeds,
        loaded=tuple(runs),
        looks=looks_of(plans),
        problems=tuple(dict.fromkeys(reading.problems)),
        replaced=tuple(reading.replaced),
        config=configs.first_readable(folders),
        declared=newest.question if newest else {},
        until=until,
        stopped=stopped_cells(plans if sweep == "all" else plans[-1:]),
        remarks=(SEARCHED,) if newest is not None and sweep == newest.id and newest.search is not None else (),
        open_ended=open_ended(plans),
        cache=Cache(reading.folder.path),
        folder=reading.folder,
    )


def _check_one_study(path: Path, runs: Sequence[LoadedRun]) -> None:
    """Raise StudyError when the records belong to several studies: folders were copied together."""
    found = Counter(run.record.study for run in runs if run.record is not None)
    if len(found) > 1:
        told = " and ".join(f"{n} run{'s' * (n > 1)} of {study or '(no name)'}" for study, n in found.most_common())
        raise StudyError(
            f"{path} mixes {len(found)} studies: {told}; move the runs of all but one to folders of their own"
        )

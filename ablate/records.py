"""What a run and a sweep write, and how it is read back: the one module that knows every file name.

    multirun/<study>/
      runs/<label>-<8 hex>/seed=<n>/    RunFolder
        config.yaml                     the resolved config
        .hydra/                         what Hydra users expect: config, overrides, hydra settings
        run.json                        RunRecord: status, identity, final metrics, cost, versions
        metrics.jsonl                   one record per logged step
        checkpoint.pt, checkpoint.previous.pt
        code.diff                       changes to the code since its commit, where there were any
        log.txt                         this run's log, with the traceback when it failed
        lock                            who is training it now (`ablate.locks`)
        previous/<time>/                results that a rerun replaced
      sweeps/<time>-<hash>.json         SweepPlan
      sweeps/<time>-<hash>.lock         who carries it out now
      sweeps/<time>-<hash>.looks.jsonl  when its results were seen
      sweeps/<time>-<hash>.cells.jsonl  cells that a search has added since it wrote its plan
      search/<name>.journal             Optuna's trials of a search, unless stored elsewhere
      search/experiment/<name>.yaml     the best config of a search, for --config-dir
      search/<name>.trials.json         the trials of a search, for the analysis
      tuning/<name>.json                what `ablate.tune` chose for each variant, and on which seeds
      .analysis_cache/                  what the analysis keeps between two reports; may be deleted at any time

Files are written under a temporary name, flushed to disk and renamed, so a reader sees the old file or the new one.
JSON is strict: a number that is not finite is written as null (`ablate.jsonfiles`).
Imports the standard library only beside it, so the analysis can read a study on a machine without torch.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from ablate.jsonfiles import RecordError, check_types, fits, parse_json, read_json, strict, write_atomic, write_json


class Status(StrEnum):
    """How a run stands. `finished`, `diverged` and `pruned` are results; the others are to be run (again)."""

    running = "running"
    finished = "finished"
    diverged = "diverged"
    failed = "failed"
    interrupted = "interrupted"
    pruned = "pruned"

    @property
    def is_result(self) -> bool:
        """Whether training this run again would only repeat what is known."""
        return self in (Status.finished, Status.diverged, Status.pruned)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON-lines file in file order, torn lines left out; none when there is no file."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return
    for line in raw.split(b"\n"):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def is_logged(record: Any) -> bool:
    """Whether a line of metrics.jsonl is a record of a step: its numbers are numbers, or null for what was infinite."""
    if not (isinstance(record, dict) and isinstance(record.get("split", ""), str)):
        return False
    step, tokens, seconds, loss = (record.get(key, 0) for key in ("step", "tokens", "seconds", "loss"))
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (step, tokens))
    return whole and isinstance(seconds, int | float) and isinstance(loss, int | float | None)


ID_TIME = "%Y%m%dT%H%M%S"
"""How the id of a sweep begins: the time in UTC."""

ABANDONED = 3600.0
"""Seconds after which nobody is still writing a temporary file of a plan; several sweeps may share a study."""

TAIL = 8192
"""Bytes read from the end of metrics.jsonl to find its last record."""


@dataclass(kw_only=True)
class RunRecord:
    """The content of run.json. Times are ISO 8601 in UTC, durations seconds, memory bytes."""

    status: Status
    study: str
    cell: str
    label: str
    factors: dict[str, Any]
    seed: int
    sweep: str | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)
    steps_planned: int = 0
    steps_done: int = 0
    tokens: int = 0
    seconds: float = 0.0
    train_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    data_seconds: float = 0.0
    tokens_per_second: float | None = None
    parameters: int = 0
    effective: dict[str, Any] = field(default_factory=dict)
    device: str = ""
    threads: int | None = None
    processor: str = ""
    peak_memory_bytes: int | None = None
    started: str = ""
    ended: str | None = None
    resumed: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    git: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    code: dict[str, str] = field(default_factory=dict)
    host: str = ""
    command: str = ""
    error: dict[str, str] | None = None
    config_warnings: list[str] = field(default_factory=list)

    @property
    def checkpoint_source(self) -> str:
        """What the checkpoints of this run are marked with: the code, the cell and the seed that made them."""
        return f"{self.source} {self.cell} {self.seed}"

    def take_cost(self, logged: Mapping[str, Any]) -> None:
        """Take over how far a run that did not end well had come, from the last record it logged."""
        self.steps_done = int(logged.get("step", self.steps_done))
        self.tokens = int(logged.get("tokens", self.tokens))
        self.seconds = self.train_seconds = float(logged.get("seconds", self.seconds))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a record from the parsed file; keys of a later version are ignored, a missing one is an error."""
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        values["status"] = Status(values["status"])
        check_types(cls, values)
        if values.get("error") is not None:
            values["error"] = {"type": "", "message": "", **values["error"]}
        return cls(**values)


@dataclass(kw_only=True)
class PlannedCell:
    """One cell of a sweep: its identity (64 hex), its label and factors in this sweep, its folder's name."""

    cell: str
    label: str
    factors: dict[str, Any]
    folder: str
    overrides: list[str]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a cell from the parsed file."""
        check_types(cls, data)
        return cls(**data)


@dataclass(kw_only=True)
class SweepPlan:
    """The content of a sweep's file: what was asked for, and every look that was taken at the results.

    `question` is what was declared of the metric (`metric`, `direction`, `transform`, `threshold`, `margin`,
    `reference`).

    `looks` holds one entry per time the results were seen: {"time": ..., "seeds": {cell: the seeds whose runs had
    ended, well or badly}, "newest": the id of the newest plan by then}. They are in a file of their own, because
    reports add to it while a sweep runs.

    `until` is null for a sweep of planned seeds. A sweep that adds seeds until decided keeps there how it does so
    (`block`, `max_seeds`), which cells were decided ({cell: {"seeds": n, "why": ...}} under `stopped`) and, at its end,
    the reason (`ended`); its `seeds` are those asked for so far.

    `search` is null for a grid. A search, whose cells are added as they are asked for, keeps there what its runs must
    know to be pruned (`ablate.sweep.search.judge`): `storage`, `study_name`, `metric`, `pruner`, and `trials`
    {cell: number}; `trained` {cell: how many of its seeds were trained} of those whose trial was stopped early.
    """

    id: str
    created: str
    command: str
    study: str
    cells: list[PlannedCell]
    seeds: list[int]
    question: dict[str, Any] = field(default_factory=dict)
    until: dict[str, Any] | None = None
    search: dict[str, Any] | None = None
    looks: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    git: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    notes: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build a plan from the parsed file."""
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        values["cells"] = [PlannedCell.from_json(cell) for cell in values["cells"]]
        check_types(cls, values)
        plan = cls(**values)
        plan._check_parts()
        return plan

    def _check_parts(self) -> None:
        """Raise KeyError, TypeError or AttributeError when a part of the plan is not what its readers expect."""
        stopped = ({"stopped": {}} if self.until is None else self.until)["stopped"].values()
        search = {"trials": {}} if self.search is None else self.search
        parts = {
            "until.stopped": all(fits(one["seeds"], int) and fits(one["why"], str) for one in stopped),
            "search.trials": fits(search["trials"], dict[str, int]),
            "search.trained": fits(search.get("trained", {}), dict[str, int]),
        }
        if not all(parts.values()):
            raise TypeError(f"{next(name for name, good in parts.items() if not good)} is damaged")

    def seeds_of(self, cell: str) -> list[int]:
        """The seeds asked for of one cell: all, or the first ones when it was decided or its trial was pruned."""
        stopped = (self.until or {}).get("stopped", {})
        trained = (self.search or {}).get("trained", {})
        return self.seeds[: stopped[cell]["seeds"] if cell in stopped else trained.get(cell)]


def _told(error: Exception) -> str:
    """Return an error of what a file holds in words; Python tells a missing key by its name alone."""
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def config(self) -> Path:
        """The resolved config, YAML."""
        return self.path / "config.yaml"

    @property
    def hydra(self) -> Path:
        """The folder Hydra users look for: config.yaml, overrides.yaml, hydra.yaml."""
        return self.path / ".hydra"

    @property
    def hydra_config(self) -> Path:
        """The config as Hydra composed it, interpolations unresolved."""
        return self.hydra / "config.yaml"

    @property
    def hydra_overrides(self) -> Path:
        """The overrides of the run, a list of key=value."""
        return self.hydra / "overrides.yaml"

    @property
    def diff(self) -> Path:
        """The changes to the code since its commit, where there were any."""
        return self.path / "code.diff"

    @property
    def record(self) -> Path:
        """run.json."""
        return self.path / "run.json"

    @property
    def metrics(self) -> Path:
        """metrics.jsonl."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoint(self) -> Path:
        """The newest checkpoint."""
        return self.path / "checkpoint.pt"

    @property
    def previous_checkpoint(self) -> Path:
        """The checkpoint before the newest."""
        return self.path / "checkpoint.previous.pt"

    @property
    def log(self) -> Path:
        """log.txt."""
        return self.path / "log.txt"

    @property
    def lock(self) -> Path:
        """The lock of the process that trains this run."""
        return self.path / "lock"

    @property
    def previous(self) -> Path:
        """Where replaced results go."""
        return self.path / "previous"

    def read(self) -> RunRecord | None:
        """The run's record, or None when there is none; raises RecordError when it is damaged."""
        try:
            data = read_json(self.record)
        except FileNotFoundError:
            return None
        try:
            return RunRecord.from_json(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordError(f"{self.record}: not a run record ({_told(error)})") from error

    def write(self, record: RunRecord) -> None:
        """Write run.json; the last act of a run."""
        write_json(self.record, asdict(record))

    def append_metrics(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Append records (`step`, `tokens`, `seconds`, `split`, values) to metrics.jsonl, one line each."""
        lines = "".join(json.dumps(strict(record), allow_nan=False) + "\n" for record in records)
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(lines)

    def read_metrics(self) -> list[dict[str, Any]]:
        """All records in file order; of a step and split logged twice the later stands, other lines are left out."""
        latest: dict[tuple[Any, Any], dict[str, Any]] = {}
        for record in self._lines():
            key = (record.get("split"), record.get("step"))
            latest.pop(key, None)
            latest[key] = record
        return list(latest.values())

    def _lines(self) -> Iterator[dict[str, Any]]:
        return filter(is_logged, read_lines(self.metrics))

    def last_metrics(self) -> dict[str, Any]:
        """The last record that was logged whole, read from the end of the file; {} when there is none."""
        try:
            with self.metrics.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
                lines = file.read().split(b"\n")
        except OSError:
            return {}
        for line in reversed(lines):
            try:
                record = parse_json(line)
            except ValueError:
                continue
            if is_logged(record) and "step" in record:
                return dict(record)
        return {}

    def keep_metrics_until(self, step: int) -> None:
        """Drop what was logged after `step` (the step of the checkpoint a run continues from), and any torn line."""
        kept = [record for record in self._lines() if record.get("step", 0) <= step]
        text = "".join(json.dumps(strict(record), allow_nan=False) + "\n" for record in kept)
        write_atomic(self.metrics, text.encode())

    def remove_temporaries(self) -> None:
        """Remove what a process that died while writing left behind. The caller holds the run: no file is in use."""
        for folder in (self.path, self.hydra):
            for path in folder.glob(".*.tmp"):
                path.unlink(missing_ok=True)

    def archive(self, name: str) -> None:
        """Move the run's results to previous/<name>/, so that the run can start afresh and nothing is lost."""
        target = self.previous / name
        present = [file for file in (self.record, self.metrics, self.log, self.config, self.diff) if file.exists()]
        if present:
            target.mkdir(parents=True, exist_ok=True)
            for file in present:
                file.replace(target / file.name)
        for checkpoint in (self.checkpoint, self.previous_checkpoint):
            checkpoint.unlink(missing_ok=True)

    def superseded(self) -> list["RunFolder"]:
        """The results that reruns replaced, oldest first."""
        if not self.previous.is_dir():
            return []
        return [RunFolder(path) for path in sorted(self.previous.iterdir()) if path.is_dir()]


def _is_look(look: Mapping[str, Any]) -> bool:
    """Whether a line is an entry of `looks`."""
    times = (look.get("time"), look.get("newest", ""))
    return fits(look.get("seeds"), dict[str, list[int]]) and all(fits(one, str) for one in times)


def _take_cell(plan: SweepPlan, line: Mapping[str, Any]) -> None:
    """Take an appended cell into the plan of a search."""
    cell = PlannedCell.from_json(line["cell"])
    if all(known.cell != cell.cell for known in plan.cells):
        plan.cells.append(cell)
    if plan.search is None or not fits(line["trial"], int):
        raise TypeError("cells of trials, which only a search adds")
    plan.search["trials"][cell.cell] = line["trial"]


@dataclass(frozen=True)
class StudyFolder:
    """The files of one study."""

    path: Path

    @property
    def runs_path(self) -> Path:
        """The folder of all runs."""
        return self.path / "runs"

    @property
    def sweeps_path(self) -> Path:
        """The folder of all sweep plans."""
        return self.path / "sweeps"

    @property
    def report(self) -> Path:
        """The default folder of the report."""
        return self.path / "report"

    @property
    def analysis_cache(self) -> Path:
        """What the analysis keeps between two reports (`analysis.cache`)."""
        return self.path / ".analysis_cache"

    def run(self, cell_folder: str, seed: int) -> RunFolder:
        """The folder of one run."""
        return RunFolder(self.runs_path / cell_folder / f"seed={seed}")

    def runs(self) -> list[RunFolder]:
        """Every run folder, in a fixed order; what a run is stands in its run.json, never in the folder's name."""
        if not self.runs_path.is_dir():
            return []
        cells = sorted(path for path in self.runs_path.iterdir() if path.is_dir())
        return [RunFolder(run) for cell in cells for run in sorted(cell.iterdir()) if run.is_dir()]

    def sweep_file(self, sweep_id: str) -> Path:
        """The file of one sweep's plan."""
        return self.sweeps_path / f"{sweep_id}.json"

    def stop_file(self, sweep_id: str) -> Path:
        """The marker that tells the jobs of a fail-fast sweep to stop."""
        return self.sweeps_path / f"{sweep_id}.stop"

    def sweep_lock(self, sweep_id: str) -> Path:
        """The lock of the process that carries out a sweep."""
        return self.sweeps_path / f"{sweep_id}.lock"

    def looks_file(self, sweep_id: str) -> Path:
        """The file of the looks at one sweep's results."""
        return self.sweeps_path / f"{sweep_id}.looks.jsonl"

    @property
    def search_path(self) -> Path:
        """The folder of all searches."""
        return self.path / "search"

    def search_journal(self, name: str) -> Path:
        """The trials of one search."""
        return self.search_path / f"{name}.journal"

    def search_trials(self, name: str) -> Path:
        """The trials of one search as the analysis reads them."""
        return self.search_path / f"{name}.trials.json"

    def searches(self) -> list[Path]:
        """The trials files of all searches, by name."""
        return sorted(self.search_path.glob("*.trials.json"))

    @property
    def tuning_path(self) -> Path:
        """The folder of all tunings."""
        return self.path / "tuning"

    def tuning(self, name: str) -> Path:
        """The state of one tuning of several variants."""
        return self.tuning_path / f"{name}.json"

    def tunings(self) -> list[Path]:
        """The files of all tunings, by name."""
        return sorted(self.tuning_path.glob("*.json"))

    def work_locks(self) -> list[Path]:
        """The locks of processes that carry out a sweep, a search or a tuning, or did."""
        return sorted([*self.sweeps_path.glob("*.lock"), *self.tuning_path.glob("*.lock")])

    def search_turn(self, name: str) -> Path:
        """What processes of one search hold while they ask for trials."""
        return self.search_path / f".{name}.turn"

    def search_best(self, name: str) -> Path:
        """The best config of one search."""
        return self.search_path / "experiment" / f"{name}.yaml"

    def write_sweep(self, plan: SweepPlan) -> None:
        """Write a plan, new or changed; what a process that died while writing one left behind is removed."""
        for path in self.sweeps_path.glob(".*.tmp"):
            with contextlib.suppress(FileNotFoundError):  # another sweep's, which has its place by now
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink()
        write_json(self.sweep_file(plan.id), asdict(plan))

    def forget_sweep(self, sweep_id: str) -> None:
        """Remove the plan of a sweep that never began."""
        files = (self.sweep_file, self.looks_file, self.stop_file, self.cells_file)
        for path in (file(sweep_id) for file in files):
            path.unlink(missing_ok=True)

    def read_sweep(self, sweep_id: str) -> SweepPlan:
        """Read one plan with its looks; raises FileNotFoundError or RecordError."""
        path = self.sweep_file(sweep_id)
        try:
            plan = SweepPlan.from_json(read_json(path))
            for line in read_lines(self.cells_file(sweep_id)):
                _take_cell(plan, line)
        except (KeyError, TypeError, AttributeError) as error:
            raise RecordError(f"{path}: not a sweep plan ({_told(error)})") from error
        plan.looks += [look for look in read_lines(self.looks_file(sweep_id)) if _is_look(look)]
        return plan

    def cells_file(self, sweep_id: str) -> Path:
        """The file of the cells that a search adds while it goes on."""
        return self.sweeps_path / f"{sweep_id}.cells.jsonl"

    def add_cell(self, sweep_id: str, cell: PlannedCell, trial: int) -> None:
        """Append a cell, and the trial that asked for it, to the plan of a search (written whole at its end)."""
        with self.cells_file(sweep_id).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"trial": trial, "cell": asdict(cell)}) + "\n")

    def note_look(self, sweep_id: str, seeds: Mapping[str, Iterable[int]], time: str) -> None:
        """Append a look: the seeds of each cell whose runs had ended. Nothing when just these are noted already.

        The newest plan by then is noted too, so that seeds which were asked for after the look can be told.
        """
        path, seen = self.looks_file(sweep_id), {cell: sorted(ended) for cell, ended in sorted(seeds.items())}
        if any(look.get("seeds") == seen for look in read_lines(path)):
            return
        newest = next(reversed(self.sweep_ids()), sweep_id)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"time": time, "newest": newest, "seeds": seen}) + "\n")

    def sweep_ids(self) -> list[str]:
        """The sweeps of this study, oldest first (an id starts with a time, see `later_than_all`)."""
        if not self.sweeps_path.is_dir():
            return []
        return sorted(path.stem for path in self.sweeps_path.glob("*.json"))

    def later_than_all(self, now: datetime) -> datetime:
        """The time for the id of a new sweep: now, or a second after the newest sweep of the study.

        Clocks are set back, and those of two nodes differ; a new sweep is the latest whatever they say.
        """
        for newest in reversed(self.sweep_ids()):
            with contextlib.suppress(ValueError, OverflowError):  # an id that is no time sorts as it may
                stamp = datetime.strptime(newest.partition("-")[0], ID_TIME).replace(tzinfo=UTC)
                return max(now, stamp + timedelta(seconds=1))
        return now

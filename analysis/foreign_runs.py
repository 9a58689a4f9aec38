"""One run of another program, and what must be there of all of them: folders, files of their own, the column."""

import difflib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ablate.jsonfiles import canonical_json
from ablate.records import RunFolder
from analysis import configs
from analysis.foreign_logs import MetricLog, Wanted
from analysis.progress import tracked
from analysis.reading import number
from analysis.run_folders import RunFolders
from analysis.series import EMPTY, Series
from analysis.study import StudyError


@dataclass(frozen=True)
class ForeignRun:
    """One run folder: what was asked of it, and the file of its metrics (None when there is none)."""

    path: Path
    place: str
    file: Path | None
    files: int
    log: MetricLog | None = None
    series: Series = EMPTY
    factors: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    @functools.cached_property
    def overrides(self) -> dict[str, Any]:
        """The overrides by key."""
        return configs.read_overrides(RunFolder(self.path))

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """The config as flat dotted keys."""
        return configs.read_hydra_config(RunFolder(self.path))

    def setting(self, key: str) -> Any:
        """What a key is set to: by its override, else in the config; None when neither says."""
        return self.overrides[key] if key in self.overrides else self.config.get(key)

    @property
    def written(self) -> int:
        """When the file of metrics was written, in ns of the epoch; 0 without one."""
        return self.file.stat().st_mtime_ns if self.file is not None else 0

    @property
    def cell(self) -> str:
        """The identity of the run's variant."""
        return sha256(canonical_json(self.factors).encode()).hexdigest()

    @property
    def finite(self) -> bool:
        """Whether the run's last value is a number to compute with."""
        return bool(self.series.step.size and np.isfinite(self.series.value[-1]))


def find_runs(found: RunFolders, wanted: Wanted) -> list[ForeignRun]:
    """The runs of these folders. Raises StudyError when there are none, when none has the file, or two have one."""
    if not found.runs:
        looked = "no run folders here; none below it holds .hydra/overrides.yaml or .hydra/config.yaml"
        raise StudyError("; ".join([f"{found.root}: {looked}", *found.remarks()]))
    runs = []
    for folder in tracked(found.runs, "looking at run folders"):
        files = wanted.files(folder)
        place = folder.relative_to(found.root).as_posix()
        runs.append(ForeignRun(folder, place, files[-1] if files else None, len(files)))
    _check_files(found.root, runs, wanted)
    _check_own_files(runs)
    return runs


def _check_own_files(runs: Sequence[ForeignRun]) -> None:
    """Raise StudyError when a link makes the metrics of one run those of another too: it would count twice."""
    owners: dict[Path, ForeignRun] = {}
    for run in runs:
        if run.file and (first := owners.setdefault(run.file.resolve(), run)) is not run:
            both = f"{first.place} and {run.place} have one and the same file of metrics"
            raise StudyError(f"{both}, {run.file.resolve().name}; give each its own, or move one of them away")


def _check_files(root: Path, runs: Sequence[ForeignRun], wanted: Wanted) -> None:
    if any(run.file for run in runs):
        return
    there = sorted(path.name for path in runs[0].path.iterdir() if not path.name.startswith("."))
    near = difflib.get_close_matches(wanted.pattern, there, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    holds = f"{runs[0].place} holds: {', '.join(there) or 'nothing'}"
    raise StudyError(f"no file matches {wanted.pattern!r} in any of {len(runs)} run folders of {root}{hint}; {holds}")


def check_column(runs: Sequence[ForeignRun], wanted: Wanted) -> None:
    """Raise StudyError when no run has a value; of a column that is there, it names a cell."""
    logs = [run.log for run in runs if run.log]
    if any(log.rows for log in logs):
        return
    none = f"no run has a value in column {wanted.column!r} of {wanted.pattern}"
    if wrong := next((cell for log in logs for cell in log.wrong), None):
        raise StudyError(f"{none}; {wrong!r} is no number")
    columns = next((log.columns for log in logs if log.columns), None)
    if columns is None:
        raise StudyError(f"{none}; there are no records that can be read in {logs[0].file}")
    if all(number(name) is not None for name in columns):
        raise StudyError(f"{none}; the first line, {', '.join(columns)}, has numbers in place of the columns' names")
    near = difflib.get_close_matches(wanted.column, columns, n=1)
    if len(columns) == 1 and (wanted.column in columns[0] or not near):
        raise StudyError(f"{none}: {columns[0]!r} is one column; separate columns by commas, semicolons or tabs")
    hint = f"; did you mean {near[0]}?" if near else "."
    raise StudyError(f"{none}{hint} There are: {', '.join(columns)}")

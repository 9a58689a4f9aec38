"""A study from a plain table: a column `variant`, a column of seeds, a column per metric. Every row is one run.

Without a column of seeds the runs of each variant are numbered and not paired. Other columns are ignored.
"""

import difflib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ablate.records import RunRecord, Status
from analysis.study import LoadedRun, Replaced, Study, StudyError, Variant

SEED = "seed"


def load_csv(path: Path | str, *, metric: str, seed_column: str | None = None, shared_seeds: bool = True) -> Study:
    """Read the table; `seed_column` is `seed` where there is such a column, unless another is named.

    An empty or non-finite value is a run that diverged; of two rows of one variant and seed the later stands.
    `shared_seeds=False` when equal numbers of two variants mean nothing. Raises StudyError, one line, for what is no
    table, lacks a column, or has a row without a variant, with a seed that is no whole number or a value that is none.
    """
    frame = _read(Path(path))
    known = [str(name) for name in frame.columns]
    for column in ("variant", metric, *([seed_column] if seed_column else [])):
        _check_column(Path(path), known, column)
    seed_column = seed_column or (SEED if SEED in known else None)
    names = _variants(Path(path), frame["variant"].tolist())
    values = _values(Path(path), metric, frame[metric].tolist())
    seeds = _seeds(Path(path), seed_column, frame[seed_column].tolist()) if seed_column else _numbered(names)
    variants = {name: Variant(name, name, {"variant": name}) for name in dict.fromkeys(names)}
    runs: dict[tuple[str, int], LoadedRun] = {}
    replaced = []
    for name, seed, value in zip(names, seeds, values, strict=True):
        if earlier := runs.pop((name, seed), None):
            replaced.append(_replaced(earlier, metric, value))
        runs[name, seed] = _run(Path(path).stem, variants[name], seed, metric, value)
    return Study(
        name=Path(path).stem,
        sweep="",
        variants=tuple(variants.values()),
        seeds=tuple(dict.fromkeys(seeds)),
        loaded=tuple(runs.values()),
        replaced=tuple(replaced),
        shared_seeds=shared_seeds and seed_column is not None,
    )


def _read(path: Path) -> pd.DataFrame:
    """All cells as text, so that a variant 1.0 keeps its name; blanks are empty."""
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (ValueError, pd.errors.ParserError) as error:  # an empty file and one that is no text are ValueErrors too
        lines = str(error).strip().splitlines()
        raise StudyError(f"{path}: not a table in CSV ({lines[0] if lines else type(error).__name__})") from error


def _check_column(path: Path, known: Sequence[str], column: str) -> None:
    if column not in known:
        near = difflib.get_close_matches(column, known, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise StudyError(f"{path}: no column {column!r}; there are: {', '.join(known)}{hint}")


def _variants(path: Path, cells: Sequence[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not names:
        raise StudyError(f"{path}: the table has no rows")
    if "" in names:
        raise StudyError(f"{path}: row {names.index('') + 1} has no variant; give each row one")
    return names


def _seeds(path: Path, column: str, cells: Sequence[str]) -> list[int]:
    seeds = []
    for row, cell in enumerate(cells, 1):
        number = _number(cell)
        if number is None or not float(number).is_integer():
            raise StudyError(f"{path}: row {row} has {column} {cell!r}, not a whole number")
        seeds.append(int(number))
    return seeds


def _values(path: Path, metric: str, cells: Sequence[str]) -> list[float]:
    """The values, NaN for a blank."""
    values = []
    for row, cell in enumerate(cells, 1):
        number = _number(cell) if cell.strip() else float("nan")
        if number is None:
            raise StudyError(f"{path}: row {row} has {metric} {cell!r}, not a number; leave it blank if it diverged")
        values.append(number)
    return values


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _numbered(names: Sequence[str]) -> list[int]:
    """Each row's number among those of its variant, from 0."""
    seen: Counter[str] = Counter()
    numbers = []
    for name in names:
        numbers.append(seen[name])
        seen[name] += 1
    return numbers


def _run(study: str, variant: Variant, seed: int, metric: str, value: float) -> LoadedRun:
    finite = bool(np.isfinite(value))
    record = RunRecord(
        status=Status.finished if finite else Status.diverged,
        study=study,
        cell=variant.cell,
        label=variant.label,
        factors=dict(variant.factors),
        seed=seed,
        metrics={metric: value if finite else None},
    )
    return LoadedRun(variant, seed, record)


def _replaced(earlier: LoadedRun, metric: str, value: Any) -> Replaced:
    old = earlier.outcome(metric).value
    new = value if np.isfinite(value) else None
    return Replaced(earlier.variant.label, earlier.seed, earlier.status, "in an earlier row", old != new)

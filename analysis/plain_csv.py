"""A study from a plain table: a column `variant`, a column of seeds, a column per metric. Every row is one run.

Without a column of seeds the runs of each variant are numbered and not paired. Other columns are ignored.
"""

import csv
import difflib
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ablate.records import RunRecord, Status
from analysis.study import LoadedRun, Replaced, Study, StudyError, Variant

SEED = "seed"


def load_csv(
    path: Path | str,
    *,
    metric: str,
    seed_column: str | None = None,
    variant_column: str = "variant",
    shared_seeds: bool = True,
) -> Study:
    """Read the table; `seed_column` is `seed` where there is such a column, unless another is named.

    An empty or non-finite value is a run that diverged; of two rows of one variant and seed the later stands.
    `shared_seeds=False` when equal numbers of two variants mean nothing. Raises StudyError, one line, for what is no
    table, lacks a column or has it twice, or has a row that is longer than the header, without a variant, with a seed
    that is no whole number or a value that is none.
    """
    table = _read(Path(path))
    known = list(table)
    for column in (variant_column, metric, *([seed_column] if seed_column else [])):
        _check_column(Path(path), known, column)
    seed_column = seed_column or (SEED if SEED in known else None)
    names = _variants(Path(path), table[variant_column])
    values = _values(Path(path), metric, table[metric])
    seeds = _seeds(Path(path), seed_column, table[seed_column]) if seed_column else _numbered(names)
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


def _read(path: Path) -> dict[str, list[str]]:
    """The columns by name, cells as text, so that a variant 1.0 keeps its name; cells that a row lacks are empty."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            header, *rows = [row for row in csv.reader(lines, strict=True) if row] or [[]]
    except (ValueError, csv.Error) as error:  # what is no text is a ValueError
        raise StudyError(f"{path}: not a table in CSV ({error})") from error
    _check_shape(path, header, rows)
    padded = [row + [""] * (len(header) - len(row)) for row in rows]
    return {name: [row[place] for row in padded] for place, name in enumerate(header)}


def _check_shape(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Raise StudyError for no header, two columns of one name, and a row that goes on beyond the header.

    Blank cells do not count: some programs end each line with a comma.
    """
    if not any(header):
        raise StudyError(f"{path}: not a table in CSV (no header; the first line names the columns)")
    twice = [name for name, times in Counter(filter(None, header)).items() if times > 1]
    if twice:
        raise StudyError(f"{path}: {len(header)} columns, of which several are named {twice[0]!r}; rename all but one")
    for number, row in enumerate(rows, 1):
        if any(cell.strip() for cell in row[len(header) :]):
            told = f"row {number} has {len(row)} cells, the header {len(header)} columns"
            raise StudyError(f"{path}: {told}; quote cells that hold a comma")


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
        seed = _whole(cell)
        if seed is None:
            raise StudyError(f"{path}: row {row} has {column} {cell!r}, not a whole number")
        seeds.append(seed)
    return seeds


def _whole(cell: str) -> int | None:
    """A whole number, exact at any size where it is written as one; 2.0 is one too, for programs that write 2 so."""
    try:
        return int(cell)
    except ValueError:
        number = _number(cell)
        return int(number) if number is not None and number.is_integer() else None


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
    finite = math.isfinite(value)
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
    new = value if math.isfinite(value) else None
    return Replaced(earlier.variant.label, earlier.seed, earlier.status, "in an earlier row", old != new)

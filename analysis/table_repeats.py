"""Rows of a plain table that repeat a variant and seed: rows of several tasks, folds or steps, or the same run twice.

A column tells repeated rows apart when it is named as such columns are and differs between them, or when its values are
the same in most of the groups of rows, as they are where runs were crossed with it. An identity, a time or another
metric differs as well, but its values do not come back.
"""

import shlex
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from analysis.foreign_steps import KNOWN, canonical
from analysis.table_columns import PlainTable, Roles, words


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TASK_WORDS = _words(
    "task tasks dataset datasets data corpus benchmark suite env environment game domain language lang subset set "
    "subject problem"
)
FOLD_WORDS = _words("fold folds cv split")
STEP_WORDS = frozenset(KNOWN) | _words("checkpoint ckpt tokens")
_COUNTS = _words("best per total max min num n early stop stopped final last batch time size")
_SUFFIXES = _words("name id idx index no number key")

Key = tuple[Hashable, ...]


def refuse_repeats(table: PlainTable, roles: Roles, keys: Sequence[Key]) -> None:
    """Raise StudyError when rows have the same key and columns tell them apart; it names these and their options.

    `keys` are the variant, seed, task and step of each row; without a seed, every row is a run of its own.
    """
    columns = _apart(table, roles, keys) if roles.seed else _without_seeds(table, roles)
    if not columns:
        return
    repeats = len(keys) - len(set(keys))
    same = "variant and seed" if not (roles.tasks or roles.step) else ", ".join([*roles.named[:1], *roles.named[2:]])
    what = f"{repeats} of {table.size} rows repeat the {same} of another"
    if not roles.seed:
        what = "there is no seed, so every row would be a run of its own"
    names = " and ".join(columns)
    tell = "tells" if len(columns) == 1 else "tell"
    raise table.wrong(f"{what}, but {names} {tell} rows apart: {_advice(table, roles, columns)}")


def _advice(table: PlainTable, roles: Roles, columns: Sequence[str]) -> str:
    """The options that make tasks and steps of these columns, as they can be typed, and what to do without them."""
    steps = [name for name in columns if _is_step(name)]
    new = [name for name in columns if name not in steps]
    options = []
    if new:
        options.append(f"--task-key {shlex.quote(','.join([*roles.tasks, *new]))} (each value is a task)")
    if steps and table.holds_wholes(steps[0]):
        options.append(f"--step-key {shlex.quote(steps[0])} (the last step that all runs have is compared)")
    fewer = f"the rows of one {' and '.join(new)} only" if new else "the last row of each run"
    if not options:
        return f"keep {fewer}, or name a column of whole steps with --step-key"
    return f"give {' and '.join(options)}, or keep {fewer}"


def _is_step(name: str) -> bool:
    found = _core(name)
    return bool(canonical(name)) or (found[-1:] != [] and found[-1] in STEP_WORDS and not set(found) & _COUNTS)


def _is_task(name: str, kinds: frozenset[str] = TASK_WORDS | FOLD_WORDS) -> bool:
    found = _core(name)
    return found[-1:] != [] and found[-1] in kinds and not set(found) & _COUNTS


def _core(name: str) -> list[str]:
    """The words of a name without a last one such as id."""
    found = words(name)
    return found[:-1] if len(found) > 1 and found[-1] in _SUFFIXES else found


def _apart(table: PlainTable, roles: Roles, keys: Sequence[Key]) -> list[str]:
    """The fewest columns, found one after the other, with which the fewest rows repeat others; mostly one or none."""
    rows = list(dict.fromkeys(zip(keys, zip(*table.columns.values(), strict=True), strict=True)))
    grouped = _groups(rows)
    free = [(place, name) for place, name in enumerate(table.names) if name not in roles.named]
    likely = [place for place, name in free if _tells(name, [[cells[place] for cells in group] for group in grouped])]
    likely.sort(key=lambda place: _order(table, table.names[place]))
    chosen: list[int] = []
    left = _repeats(rows, chosen)
    while left and likely:
        best = min(likely, key=lambda place: _repeats(rows, [*chosen, place]))
        now = _repeats(rows, [*chosen, best])
        if now == left:
            break
        chosen, left = [*chosen, best], now
    return [table.names[place] for place in chosen]


def _order(table: PlainTable, name: str) -> int:
    """Columns named like tasks before those named like steps, whole ones first, before all others."""
    if _is_task(name):
        return 0
    return (1 if table.holds_wholes(name) else 2) if _is_step(name) else 3


def _groups(rows: Iterable[tuple[Key, tuple[str, ...]]]) -> list[list[tuple[str, ...]]]:
    """The rows of each key that several different ones have."""
    found: dict[Key, list[tuple[str, ...]]] = {}
    for key, cells in rows:
        found.setdefault(key, []).append(cells)
    return [group for group in found.values() if len(group) > 1]


def _repeats(rows: Sequence[tuple[Key, tuple[str, ...]]], places: Sequence[int]) -> int:
    return len(rows) - len({(key, *(cells[place] for place in places)) for key, cells in rows})


def _tells(name: str, groups: Sequence[Sequence[str]]) -> bool:
    """Whether a column of this name and these values by group may be what rows were crossed with."""
    sets = Counter(frozenset(group) for group in groups if len(set(group)) > 1)
    if _is_task(name) or _is_step(name):
        return bool(sets)
    most = max(sets.values(), default=0)
    return most > 1 and 2 * most > len(groups)


def _without_seeds(table: PlainTable, roles: Roles) -> list[str]:
    """The first column named like a data set or a step whose values each variant has several of, and shares."""
    if roles.step:
        return []
    variants = table.columns[roles.variant]
    for name in table.names:
        if name in roles.named or not (_is_task(name, TASK_WORDS) or _is_step(name)):
            continue
        pairs = set(zip(variants, table.columns[name], strict=True))
        several = max(Counter(variant for variant, _ in pairs).values()) > 1
        shared = len(pairs) > len({value for _, value in pairs}) or len(set(variants)) == 1
        if several and shared:
            return [name]
    return []


def unused_remarks(table: PlainTable, roles: Roles) -> list[str]:
    """Columns named like tasks or steps in which rows differ, though no two rows are of one variant and seed."""
    remarks = []
    for name in table.names:
        values = set(map(str.strip, table.columns[name]))
        task = _is_task(name, TASK_WORDS | FOLD_WORDS if roles.seed else TASK_WORDS) and not roles.tasks
        step = _is_step(name) and not roles.step
        if name not in roles.named and len(values) > 1 and (task or step):
            what = f"runs are compared although they differ in {name} ({len(values)} values)"
            remarks.append(f"{what}; for a comparison within each, give --task-key {shlex.quote(name)}")
    return remarks


def refuse_unnumbered(table: PlainTable, roles: Roles, keys: Sequence[Key]) -> None:
    """Raise StudyError for steps without seeds where rows repeat them: which row goes on with which is not known."""
    if roles.step and not roles.seed and len(set(keys)) < len(keys):
        same = f"several rows of one variant have the same {roles.step}"
        raise table.wrong(f"{same} and no seed tells their runs apart; name its column with --seed-key")

"""Looks at results: which there were, which of them a test has to allow for, and the noting of this one.

Whoever sees results of a study, by a command, from Python or in the table at a sweep's end, has looked. The seeds seen
are noted beside the sweep's plan. Looks matter in two cases only: while planned seeds are pending, and where more seeds
were asked for after one.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from analysis.design import Arm, Pairs
from analysis.study import Look, Study


def noted(study: Study) -> Study:
    """The study with this look among its looks, noted in its folder too.

    Nothing is noted of a study without a plan, or in a folder that cannot be written.
    """
    if study.folder is None or not any(study.ended.values()):
        return study
    ids = study.folder.sweep_ids()
    plan = next(reversed(ids), None) if study.sweep == "all" else study.sweep
    if plan not in ids:
        return study
    seen = {variant.cell: study.ended[variant.cell] for variant in study.variants}
    with contextlib.suppress(OSError):
        study.folder.note_look(plan, seen, datetime.now(UTC).isoformat(timespec="seconds"))
    present = Look(seen, None if study.open_ended else study.planned)
    return replace(study, looks=(*study.looks, present))


class Looks(NamedTuple):
    """The looks that a test has to allow for, as numbers of seeds; no sizes when there is but one.

    `planned` are all looks that the sweep declared, when there were no others; else empty.
    """

    sizes: tuple[int, ...] = ()
    planned: tuple[int, ...] = ()


def looks_to_allow_for(study: Study, arm: Arm, base: Arm) -> Looks:
    """The looks at two arms, this one among them, that bear on their test.

    None when their seeds were planned before the first look and all have ended: what was seen on the way then changed
    nothing. While seeds are pending, and where seeds were added after a look, all looks count.
    """
    cells = frozenset({arm.variant.cell, base.variant.cell})
    pending = arm.is_pending or base.is_pending
    open_ended = bool(cells & study.open_ended.keys())
    if not pending and not open_ended and not _added_after_a_look(study, arm, base):
        return Looks()
    sizes = tuple(sorted({*looks_at(study, cells), seeds_now(study, cells)} - {0}))
    blocks = {study.open_ended.get(cell) for cell in cells}
    planned = next(iter(blocks)) if len(blocks) == 1 else None
    if planned is None or pending or _added_after_a_look(study, arm, base):
        return Looks(sizes)
    return Looks(sizes, planned.looks)


def _added_after_a_look(study: Study, arm: Arm, base: Arm) -> bool:
    """Whether any seed of the two arms was asked for after a look at results of both."""
    for look in study.looks:
        saw = all(look.seeds.get(one.variant.cell, frozenset()) & one.outcomes.keys() for one in (arm, base))
        if saw and look.planned is not None:
            planned = look.planned
            if any(one.outcomes.keys() - planned.get(one.variant.cell, frozenset()) for one in (arm, base)):
                return True
    return False


def looks_at(study: Study, cells: frozenset[str]) -> list[int]:
    """The distinct numbers of seeds at which these cells were looked at, as the sweeps recorded them."""
    return sorted({_size(look.seeds, cells) for look in study.looks if cells <= look.seeds.keys()} - {0})


def seeds_now(study: Study, cells: frozenset[str]) -> int:
    """The number of seeds that a look at the present results sees, counted as `Look` counts them."""
    return _size(study.ended, cells)


def _size(seeds: Mapping[str, frozenset[int]], cells: frozenset[str]) -> int:
    return min(len(seeds.get(cell, frozenset())) for cell in cells)


class Seen(NamedTuple):
    """Pairs in the order in which looks came to see them, and how many each look saw."""

    order: list[int]
    sizes: list[int]


def pairs_seen(study: Study, pairs: Pairs, cells: frozenset[str]) -> Seen:
    """What the looks saw of these pairs, from the smallest on.

    A look that did not see all that a smaller one saw, because it was at other seeds, is left out: the running maximum
    of an e-value holds along one growing sample.
    """
    looks = [look.seeds for look in study.looks if cells <= look.seeds.keys()]
    sights = {frozenset.intersection(*(seeds[cell] for cell in cells)) & frozenset(pairs.seeds) for seeds in looks}
    known: frozenset[int] = frozenset()
    order: list[int] = []
    sizes: list[int] = []
    for one in sorted(sights, key=lambda sight: (len(sight), sorted(sight))):
        if known <= one:
            order += [place for place, seed in enumerate(pairs.seeds) if seed in one - known]
            known, sizes = one, [*sizes, len(one)]
    return Seen([*order, *(place for place, seed in enumerate(pairs.seeds) if seed not in known)], sizes)

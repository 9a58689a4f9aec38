"""What the sweeps' plans say of a study's seeds: asked for when, looked at when, added in which blocks, stopped where.

Plans are in the order in which they were made. Nothing here reads a file.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ablate.records import SweepPlan
from analysis.study import Blocks, Look, Stopped


def latest(plans: Sequence[SweepPlan]) -> int:
    """The newest sweep that compares; the newest search, whose cells were chosen by their results, where all search."""
    compare = [place for place, plan in enumerate(plans) if plan.search is None]
    return compare[-1] if compare else len(plans) - 1


def stopped_cells(plans: Sequence[SweepPlan]) -> dict[str, Stopped]:
    """The cells that were decided early, as far as no later plan asked for more of their seeds."""
    found: dict[str, Stopped] = {}
    for plan in plans:
        stopped = (plan.until or {}).get("stopped", {})
        for cell in (one.cell for one in plan.cells):
            found.pop(cell, None)
            if cell in stopped:
                found[cell] = Stopped(stopped[cell]["seeds"], stopped[cell]["why"])
    return found


def open_ended(plans: Sequence[SweepPlan]) -> dict[str, Blocks | None]:
    """The cells of which a sweep added seeds until decided, and in which blocks.

    None where that was changed after a look (max_seeds raised, or seeds asked for by another sweep): the looks were
    then not those that were planned.
    """
    found: dict[str, set[Blocks | None]] = {}
    for plan in plans:
        blocks = Blocks(plan.until["block"], plan.until["max_seeds"]) if plan.until else None
        for cell in plan.cells:
            if plan is plans[-1] or any(_seeds_seen(plan, look).get(cell.cell) for look in plan.looks):
                found.setdefault(cell.cell, set()).add(blocks)
    until = {cell.cell for plan in plans if plan.until for cell in plan.cells}
    return {cell: kinds.pop() if len(kinds) == 1 else None for cell, kinds in found.items() if cell in until}


def looks_of(plans: Sequence[SweepPlan]) -> tuple[Look, ...]:
    """Looks at any result, each with the seeds that were planned by then."""
    looks = [
        Look(_seeds_seen(plan, look), _planned_by(plans, look.get("newest") or plan.id, plan))
        for plan in plans
        for look in plan.looks
    ]
    return tuple(look for look in looks if any(look.seeds.values()))


def _planned_by(plans: Sequence[SweepPlan], newest: str, looked_at: SweepPlan) -> dict[str, frozenset[int]] | None:
    """The seeds of each cell that all plans up to one asked for; None for a look at a sweep that adds seeds."""
    if looked_at.until is not None:
        return None
    found: dict[str, set[int]] = {}
    for plan in (plan for plan in plans if plan.id <= newest):
        for cell in plan.cells:
            found.setdefault(cell.cell, set()).update(plan.seeds_of(cell.cell))
    return {cell: frozenset(seeds) for cell, seeds in found.items()}


def _seeds_seen(plan: SweepPlan, look: Mapping[str, Any]) -> dict[str, frozenset[int]]:
    """Seeds whose runs had ended, by cell.

    Of a look that gives the number of runs only, the first seeds of the plan, evenly spread (runs go seed by seed).
    """
    if "seeds" in look:
        return {
            cell: frozenset(plan.seeds_of(cell)[:seen] if isinstance(seen, int) else seen)
            for cell, seen in look["seeds"].items()
        }
    each = -(-int(look.get("finished") or 0) // max(1, len(plan.cells)))
    return {cell.cell: frozenset(plan.seeds[:each]) for cell in plan.cells}

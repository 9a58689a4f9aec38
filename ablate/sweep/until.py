"""Adding seeds until every comparison with the baseline is decided: which seeds come next, for whom, and the end.

The plan's file is the whole state: the seeds asked for so far, the cells that were decided and at how many seeds. What
counts as decided is in `analysis.until`, which keeps the error rate of the whole procedure at alpha however many blocks
there are. A cell that was decided gets no more seeds and stays in every table with those that it has.
"""

from ablate.sweep.plan import Plan

FEWEST_PAIRS = 3
"""Pairs that a verdict takes (`analysis.statistics.intervals.MINIMUM`)."""


class Blocks:
    """The blocks of seeds of one sweep; `until` and `seeds` of its plan are changed in place."""

    def __init__(self, plan: Plan) -> None:
        assert plan.sweep.until is not None
        self.plan, self.until = plan, plan.sweep.until

    def headline(self) -> str:
        """Return how the sweep adds seeds, in words."""
        cells, most = len(self.plan.sweep.cells), self.until["max_seeds"]
        how = f"seeds in blocks of {self.until['block']} until decided, at most {most}"
        early = "; the first block cannot decide, it takes 3 pairs" if self.until["block"] < FEWEST_PAIRS else ""
        return f"{cells} cells, {how} (up to {cells * most} runs){early}"

    def advance(self) -> list[str]:
        """Take in the results so far; return what to say. Then `until["ended"]` is set, or there is another block."""
        from analysis.until import decisions  # noqa: PLC0415  (pandas and scipy, needed only here)

        sweep = self.plan.sweep
        found = decisions(self.plan.study.path, sweep.id)
        lines = [f"after {len(sweep.seeds)} seeds"]
        for one in found.decisions:
            if (before := self.until["stopped"].get(one.cell)) is not None:
                lines.append(f"  {one.label}: {before['why']}, stopped at {before['seeds']} seeds")
                continue
            if one.why:
                self.until["stopped"][one.cell] = {"seeds": len(sweep.seeds), "why": one.why}
            lines.append(f"  {one.text}")
        open_ones = [one for one in found.decisions if one.cell not in self.until["stopped"]]
        if open_ones:
            self._stop_baselines({one.baseline for one in found.decisions} - {one.baseline for one in open_ones})
        self._go_on(found.problem, [one.label for one in open_ones])
        if self.until["ended"]:
            lines.append(f"stopped adding seeds: {self.until['ended']}")
        self.plan.study.write_sweep(sweep)
        return lines

    def _stop_baselines(self, cells: set[str]) -> None:
        """Give no more seeds to baselines (of one task among several) that every comparison has done with."""
        for cell in cells - self.until["stopped"].keys():
            self.until["stopped"][cell] = {"seeds": len(self.plan.sweep.seeds), "why": "its comparisons are decided"}

    def _go_on(self, problem: str, undecided: list[str]) -> None:
        """Ask for the next block, or note why there is none."""
        sweep, pool = self.plan.sweep, self.plan.pool
        if problem:
            self.until["ended"] = problem
        elif not undecided:
            self.until["ended"] = "every comparison is decided"
        elif len(sweep.seeds) >= len(pool):
            self.until["ended"] = f"sweep.max_seeds={len(pool)} is reached; undecided: {', '.join(undecided)}"
        else:
            sweep.seeds = pool[: len(sweep.seeds) + self.until["block"]]

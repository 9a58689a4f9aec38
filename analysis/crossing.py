"""A comparison seen as a grid: which factors vary, and which variant stands at which combination of levels.

Levels are the texts that people read; a factor that a variant lacks has a dash as its level. What is concluded from a
grid is in `analysis.factorial_tables`, figures of it are in `analysis.plots`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.results import Comparison, VariantResult
from analysis.statistics.cells import Levels
from analysis.streams import level


@dataclass(frozen=True)
class Crossing:
    """The factors of two or more levels, and each variant at its combination of them, the baseline first."""

    factors: tuple[str, ...]
    results: Mapping[Levels, VariantResult]

    def levels(self, axis: int) -> list[str]:
        """The levels of the factor at this place, in the order of the plan, those of the baseline first."""
        return list(dict.fromkeys(levels[axis] for levels in self.results))


def crossing(comparison: Comparison) -> Crossing:
    """The grid of a comparison; without any factor when its factors do not tell the variants apart."""
    ordered = [comparison.baseline, *(result for result, _ in comparison.others)]
    names = comparison.study.factor_names
    factors = tuple(name for name in names if len({level(one.variant, name) for one in ordered}) > 1)
    results = {tuple(level(one.variant, name) for name in factors): one for one in ordered}
    return Crossing(factors, results) if len(results) == len(ordered) else Crossing((), {})

"""What a comparison gives: numbers, verdicts and flags, ready to be shown. Made by `analysis.verdicts`."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from analysis.design import Arm, Pairs
from analysis.looks import looks_at
from analysis.question import Question
from analysis.statistics.intervals import Summary
from analysis.statistics.paired import Difference
from analysis.statistics.verdict import Judgement, Outcomes
from analysis.streams import only_streams
from analysis.study import Study, Variant

MORE_THAN_200 = "more than 200"

MANY = 10
"""Cells beyond which a grid is exploratory."""


@dataclass(frozen=True)
class Against:
    """One variant against the baseline. `mde` is about the minimum detectable effect (power .8, in the
    family of comparisons), in the unit of the metric.

    `seeds_needed` is for the declared margin: None without one, a text beyond 200. `welch` stands beside a paired
    comparison that lost over 20 % of its seeds. `outcomes` counts runs that finished with a value, `success` those that
    also reached the threshold, when one was declared. `looks` is empty unless the interval had to allow for several.
    Verdicts rest on `p_holm` and, of equivalence, on `p_equivalence`, both Holm-corrected; `q_bh` (Benjamini-Hochberg,
    the same family) is for exploration. `unpaired` says why runs were not compared seed by seed, empty when they were;
    `split` which arms fall into groups of seeds that contradict each other.
    """

    pairs: Pairs
    difference: Difference
    outcomes: Outcomes
    success: Outcomes
    judgement: Judgement
    p_holm: float | None = None
    q_bh: float | None = None
    p_equivalence: float | None = None
    mde: float | None = None
    seeds_needed: int | str | None = None
    looks: tuple[int, ...] = ()
    welch: Difference | None = None
    unpaired: str = ""
    split: tuple[str, ...] = ()


@dataclass(frozen=True)
class VariantResult:
    """One row of the comparison; `against` is None for the baseline itself."""

    arm: Arm
    summary: Summary
    against: Against | None
    flags: tuple[str, ...]
    among_best: bool = False

    @property
    def variant(self) -> Variant:
        """The variant."""
        return self.arm.variant

    @property
    def counts(self) -> Counter[str]:
        """Runs by kind of outcome."""
        return self.arm.counts


@dataclass(frozen=True)
class Comparison:
    """All variants of a study against its baseline, in the order of the plan, the baseline among them.

    `family` counts the comparisons over which Holm's correction went: those of all tasks, when there are several.
    """

    study: Study
    question: Question
    results: tuple[VariantResult, ...]
    family: int

    @property
    def baseline(self) -> VariantResult:
        """The row of the baseline."""
        return next(result for result in self.results if result.against is None)

    @property
    def others(self) -> list[tuple[VariantResult, Against]]:
        """The other rows, each with its comparison."""
        return [(result, result.against) for result in self.results if result.against is not None]

    @property
    def exploratory(self) -> bool:
        """Whether there are so many cells that what Benjamini and Hochberg find is shown beside Holm's verdicts."""
        return len(self.results) > MANY and not only_streams(self.study)

    @property
    def looks(self) -> list[int]:
        """All recorded numbers of seeds at which a variant and the baseline were looked at."""
        base = self.question.baseline.cell
        cells = [frozenset({base, result.variant.cell}) for result, _ in self.others]
        return sorted({n for pair in cells for n in looks_at(self.study, pair)})

    def narrowed(self, labels: Iterable[str]) -> "Comparison":
        """The rows of these labels and of the baseline; every number as it is among all variants."""
        kept = {self.study.variant(label).cell for label in labels} | {self.question.baseline.cell}
        return replace(self, results=tuple(result for result in self.results if result.variant.cell in kept))

    def result(self, label: str) -> VariantResult:
        """The row of a label; raises StudyError listing the labels there are."""
        variant = self.study.variant(label)
        return next(result for result in self.results if result.variant is variant)

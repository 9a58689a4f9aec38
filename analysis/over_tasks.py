"""The verdict over tasks: does a variant rank better than the baseline in general, and not only on one task?

A variant's value on a task is its mean over the seeds that ended in every variant there (over all of its own, when
none did), so that each task counts once however many seeds it has. A run that failed or diverged counts as the worst
finished run of its task. The ranks of these values are tested as in `analysis.statistics.ranks`: first whether the
variants differ at all, then each against the baseline, Holm-corrected over the variants.

Mean ranks hang on which variants are ranked (Benavoli, Corani & Mangili 2016), so beside each verdict there is the sign
test of the tasks won and lost, which does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis import formatting as fmt
from analysis.aggregate import labels_of, obstacle
from analysis.design import Arm
from analysis.results import Comparison
from analysis.statistics.intervals import Array
from analysis.statistics.multiple import holm
from analysis.statistics.ranks import FEWEST_TASKS, critical_difference, exact_p, iman_davenport, rank
from analysis.statistics.verdict import Verdict


@dataclass(frozen=True)
class Ranked:
    """One variant: its mean rank, and against the baseline (None for itself) p, Holm's p, verdict, tasks won and lost.

    `sign_p` is that of the sign test on the tasks won and lost, not corrected.
    """

    label: str
    place: int
    mean_rank: float
    p: float | None = None
    p_holm: float | None = None
    verdict: Verdict | None = None
    won: int | None = None
    lost: int | None = None
    sign_p: float | None = None


@dataclass(frozen=True)
class Ranking:
    """All variants over the tasks that they have in common; `ranks` has a row per task and a column per variant.

    `p` is that of Iman and Davenport's `f`: whether the variants differ at all. `critical` is Nemenyi's difference.
    """

    tasks: tuple[str, ...]
    baseline: str
    alpha: float
    ranks: Array
    f: float
    p: float
    critical: float
    variants: tuple[Ranked, ...]

    @property
    def differ(self) -> bool:
        """Whether the variants differ at all."""
        return self.p < self.alpha


def common_tasks(comparisons: Mapping[str, Comparison]) -> dict[str, Comparison]:
    """The tasks on which every variant has a run that ended, and some run finished."""
    labels = list(labels_of(comparisons))
    return {task: one for task, one in comparisons.items() if not obstacle(one, labels)}


def rank_tasks(comparisons: Mapping[str, Comparison]) -> Ranking | None:
    """Rank the variants; None for fewer than two of them or fewer than five common tasks."""
    common, places = common_tasks(comparisons), labels_of(comparisons)
    if len(common) < FEWEST_TASKS or len(places) < 2:
        return None
    question = next(iter(common.values())).question
    ranks = rank(np.array([_values(one, list(places)) for one in common.values()]))
    f, p = iman_davenport(ranks)
    critical = critical_difference(len(places), len(common), question.alpha)
    variants = _against_baseline(ranks, places, question.baseline.label, question.alpha, differ=p < question.alpha)
    return Ranking(tuple(common), question.baseline.label, question.alpha, ranks, f, p, critical, variants)


def _values(comparison: Comparison, labels: Sequence[str]) -> list[float]:
    """One value per variant on a task, lower being better."""
    arms = [comparison.result(label).arm for label in labels]
    sign = 1.0 if comparison.question.lower_is_better else -1.0
    worst = max(sign * float(value) for arm in arms for value in arm.sample)
    common = set.intersection(*(set(arm.ended) for arm in arms)) if comparison.study.shared_seeds else set()
    return [_value(arm, common or set(arm.ended), sign, worst) for arm in arms]


def _value(arm: Arm, seeds: set[int], sign: float, worst: float) -> float:
    values = arm.values
    return float(np.mean([sign * values[seed] if seed in values else worst for seed in sorted(seeds)]))


def _against_baseline(
    ranks: Array, places: Mapping[str, int], baseline: str, alpha: float, *, differ: bool
) -> tuple[Ranked, ...]:
    base, mean = list(places).index(baseline), ranks.mean(axis=0)
    others = [at for at in range(len(places)) if at != base]
    p = {at: exact_p(ranks, at, base) for at in others}
    holms = dict(zip(others, holm(list(p.values())), strict=True))
    rows = []
    for at, (label, place) in enumerate(places.items()):
        corrected = holms.get(at)
        if corrected is None:
            rows.append(Ranked(label, place, float(mean[at])))
            continue
        better = Verdict.better if mean[at] < mean[base] else Verdict.worse
        verdict = better if differ and corrected < alpha else Verdict.inconclusive
        won, lost = (int(np.sum(sign * (ranks[:, base] - ranks[:, at]) > 0)) for sign in (1, -1))
        sign_p = float(stats.binomtest(won, won + lost).pvalue) if won + lost else 1.0
        rows.append(Ranked(label, place, float(mean[at]), p[at], corrected, verdict, won, lost, sign_p))
    return tuple(rows)


def omnibus_text(ranking: Ranking) -> str:
    """Whether the variants differ at all, in one sentence."""
    found = "differ" if ranking.differ else "cannot be told apart"
    n, k = len(ranking.tasks), len(ranking.variants)
    least = 2 * (k - 1) / (k * (k - 1)) ** n
    few = f" With {n} tasks no result could decide: the smallest p is {least:.3g}." if least >= ranking.alpha else ""
    f = "" if np.isinf(ranking.f) else f"F({k - 1}, {(k - 1) * (n - 1)}) = {ranking.f:.2f}, "
    return (
        f"Over {n} tasks the mean ranks of {k} variants {found} (Friedman with Iman and Davenport, {f}"
        f"{fmt.p_phrase(ranking.p)}).{few}"
    )


def sentences(ranking: Ranking) -> list[str]:
    """One sentence per variant other than the baseline; the first says whether the variants differ at all."""
    base = next(one for one in ranking.variants if one.label == ranking.baseline)
    lines = [
        f"{one.label}: {one.verdict} {'against' if one.verdict is Verdict.inconclusive else 'than'} {base.label} over "
        f"{len(ranking.tasks)} tasks; mean rank {one.mean_rank:.2f} against {base.mean_rank:.2f}, {one.won} tasks won, "
        f"{one.lost} lost (sign test {fmt.p_phrase(one.sign_p)}), Holm {fmt.p_phrase(one.p_holm)}."
        for one in ranking.variants
        if one.p_holm is not None and one.sign_p is not None
    ]
    return [omnibus_text(ranking), *lines]

"""Ranks of k variants over N tasks: is one better in general? Demšar (2006), "Statistical Comparisons of Classifiers".

    R_j         mean over the tasks of the rank of variant j: 1 is best, equal values share the mean of their ranks
    chi²        12 N / (k (k + 1)) · sum_j (R_j - (k + 1)/2)² (Friedman), divided by 1 - ties as in scipy
    F           (N - 1) chi² / (N (k - 1) - chi²), k - 1 and (k - 1)(N - 1) degrees of freedom (Iman & Davenport 1980)
    CD          q_alpha sqrt(k (k + 1) / (6 N)), q_alpha the Studentised range of k and infinity over sqrt(2): mean
                ranks of any two variants that differ by more are apart (Nemenyi)
    p           of a comparison with the baseline: the probability that |R_j - R_0| is at least as large when every
                order of the k ranks within each task is as likely as any other. Exact, where Demšar's z is its normal
                approximation: with two variants and 5 tasks, all won, z gives .025 and the exact p is .0625.

The task is the unit: seeds make the mean on a task more precise, and are not more tasks. Where all tasks agree F is
infinite; its p is then taken as (k!)^(1 - N), the smallest that any test of ranks can have.

Measured shares of studies in which any variant is called different from the baseline though none is (omnibus p < .05
and Holm-corrected p < .05; 4,000 studies each):

    k        2      3      4      5      8      10
    N = 5    .000   .029   .034   .022   .016   .014
    N = 10   .023   .034   .024   .021   .015   .015
    N = 20   .039   .031   .030   .023   .024   .017
"""

import math

import numpy as np
from scipy import stats

from analysis.statistics.intervals import Array

FEWEST_TASKS = 5
"""With fewer tasks a rank test has next to no power, and Iman and Davenport's F no longer holds."""


def rank(values: Array) -> Array:
    """Ranks within each row, 1 for the lowest; values equal to 12 digits of the row's largest share theirs."""
    size = np.abs(values).max(axis=1, keepdims=True)
    digits = np.round(np.divide(values, size, out=np.zeros_like(values), where=size > 0), 12)
    return np.asarray(stats.rankdata(digits, axis=1), dtype=float)


def friedman(ranks: Array) -> float:
    """Friedman's chi² of ranks by task and variant, corrected for ties; 0 when all are tied."""
    n, k = ranks.shape
    spread = float(((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum())
    counts = [np.unique(row, return_counts=True)[1] for row in ranks]
    ties = sum(int((one**3 - one).sum()) for one in counts) / (n * (k**3 - k))
    return 0.0 if ties == 1 else 12 * n / (k * (k + 1)) * spread / (1 - ties)


def iman_davenport(ranks: Array) -> tuple[float, float]:
    """F and its p, which is never below the probability that all tasks agree by chance."""
    n, k = ranks.shape
    chi2 = friedman(ranks)
    least, left = math.exp((1 - n) * math.lgamma(k + 1)), n * (k - 1) - chi2
    if left <= 1e-9 * n * k:
        return math.inf, least
    f = (n - 1) * chi2 / left
    return f, max(least, float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))))


def critical_difference(k: int, n: int, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference of the mean ranks of k variants over n tasks."""
    q = float(stats.studentized_range.ppf(1 - alpha, k, math.inf)) / math.sqrt(2)
    return q * math.sqrt(k * (k + 1) / (6 * n))


def exact_p(ranks: Array, first: int, second: int) -> float:
    """Two-sided p of the difference of two variants' mean ranks, by all orders of the ranks within each task."""
    total = np.ones(1)
    for row in ranks:
        total = np.convolve(total, _differences(row))
    middle = (total.size - 1) // 2
    seen = round(2 * abs(float((ranks[:, first] - ranks[:, second]).sum())))
    return min(1.0, float(total[np.abs(np.arange(total.size) - middle) >= seen].sum()))


def _differences(row: Array) -> Array:
    """How likely each difference of the ranks of two variants drawn from one task is; in halves, 0 in the middle."""
    doubled = np.rint(2 * row).astype(int)
    found = (doubled[:, None] - doubled[None, :])[~np.eye(row.size, dtype=bool)]
    reach = 2 * (row.size - 1)
    return np.asarray(np.bincount(found + reach, minlength=2 * reach + 1) / found.size, dtype=float)

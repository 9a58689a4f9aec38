"""What reviewers ask for beside a verdict: probability of improvement, shares of the posterior, a plan before training.

Values are worked out with scipy, statsmodels, or by looking at every candidate on a grid.
"""

import json

import numpy as np
import pytest
from fake_study import noise, study_of
from scipy import stats

from analysis.comparison import compare
from analysis.export import comparison_data, to_json
from analysis.probabilities import improvement, posterior
from analysis.statistics.posterior import shares, welch_error
from analysis.statistics.superiority import exact, newcombe
from analysis.wording import beside, verdict_sentences

BASE = noise(2, 10)
OTHER = noise(5, 10)


def compared(base=BASE, other=OTHER, **asked):
    found = compare(study_of({"rope": base, "roper": other}, **asked.pop("study", {})), **asked)
    return found, *found.others[0]


@pytest.mark.parametrize(("wins", "n"), [(0, 5), (3, 5), (5, 5), (17, 20), (1, 1)])
def test_the_exact_interval_is_that_of_scipy(wins, n):
    expected = stats.binomtest(wins, n).proportion_ci(method="exact")
    assert exact(wins, n) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize(
    ("theta", "n", "m"), [(0.745, 10, 10), (1.0, 5, 5), (0.0, 5, 5), (0.5, 3, 20), (1.0, 1, 1), (0.04, 5, 5)]
)
def test_newcombes_interval_holds_every_candidate_that_its_inequality_holds_for(theta, n, m):
    grid = np.linspace(0.0005, 0.9995, 1000)
    spread = grid * (1 - grid) / (n * m) * (
        1 + ((n + m) / 2 - 1) * ((1 - grid) / (2 - grid) + grid / (1 + grid))
    )  # fmt: skip
    inside = grid[np.abs(theta - grid) <= stats.norm.ppf(0.975) * np.sqrt(spread)]
    low, high = newcombe(theta, n, m)
    assert low == pytest.approx(inside.min(), abs=0.0011)
    assert high == pytest.approx(inside.max(), abs=0.0011)
    assert 0 <= low <= theta <= high <= 1


@pytest.mark.parametrize("n", [5, 10])
@pytest.mark.parametrize("effect", [0.0, 1.0, 3.0])
def test_both_intervals_cover_the_true_probability(n, effect):
    generator = np.random.default_rng(11)
    base, other = generator.normal(size=(2, 400, n))
    found = {"paired": 0, "unpaired": 0}
    for a, b in zip(base, other - effect, strict=True):
        low, high = exact(float(np.sum(b < a)), n)
        found["paired"] += low <= stats.norm.cdf(effect / np.sqrt(2)) <= high
        low, high = newcombe(float(np.mean(b[:, None] < a[None, :])), n, n)
        found["unpaired"] += low <= stats.norm.cdf(effect / np.sqrt(2)) <= high
    # Three standard errors of a share of 400 are .033.
    assert min(found.values()) / 400 > 0.917


def test_the_probability_of_improvement_is_the_share_of_pairs_won_with_its_interval():
    comparison, _, against = compared()
    wins = int(np.sum(np.array(OTHER) < np.array(BASE)))
    expected = stats.binomtest(wins, 10).proportion_ci(method="exact")
    assert improvement(against).value == wins / 10
    assert improvement(against).interval == pytest.approx((expected.low, expected.high))
    assert f"P(better) {wins / 10:.2f} [{expected.low:.2f}, {expected.high:.2f}]" in beside(comparison, against)
    assert comparison_data(comparison)["variants"][1]["superiority"] == wins / 10
    mirrored = compared(direction="higher")[2]
    assert improvement(mirrored).value == pytest.approx(1 - wins / 10)


def test_complete_separation_without_shared_seeds_is_not_certainty():
    comparison, _, against = compared(BASE[:5], [x - 1 for x in BASE[:5]], study={"shared_seeds": False})
    (sentence,) = verdict_sentences(comparison)
    low, high = improvement(against).interval
    assert (low, high) == pytest.approx((newcombe(1.0, 5, 5).low, 1.0))
    assert f"P(better) 1.00 [{low:.2f}, 1.00]" in sentence
    assert 0.6 < low < 0.8


@pytest.mark.parametrize("margin", [None, 0.01])
def test_the_shares_of_the_posterior_are_those_of_students_t(margin):
    comparison, result, against = compared(margin=margin)
    d = np.array(OTHER) - np.array(BASE)
    t = stats.t(9, loc=d.mean(), scale=stats.sem(d))
    found = posterior(comparison, result, against)
    edge = margin or 0
    assert found.better == pytest.approx(t.cdf(-edge))
    assert found.worse == pytest.approx(1 - t.cdf(edge))
    assert found.within == (None if margin is None else pytest.approx(t.cdf(edge) - t.cdf(-edge)))
    (sentence,) = verdict_sentences(comparison)
    assert str(against.judgement.verdict) == "inconclusive"
    words = f"{100 * found.worse:.0f} % worse, "
    words += f"{100 * found.within:.0f} % within ±0.01, " if margin else ""
    assert f"Posterior of the mean difference (flat prior): {words}{100 * found.better:.0f} % better." in sentence
    data = json.loads(to_json(comparison_data(comparison)))["variants"]
    assert data[1]["posterior"] == found._asdict()
    assert data[0]["posterior"] is None


def test_without_shared_seeds_the_posterior_is_welchs():
    comparison, result, against = compared(BASE[:6], OTHER, study={"shared_seeds": False}, margin=0.01)
    test = stats.ttest_ind(OTHER, BASE[:6], equal_var=False)
    error, freedom = welch_error(np.array(OTHER), np.array(BASE[:6]))
    assert (against.difference.mean / error, freedom) == pytest.approx((test.statistic, test.df))
    found = posterior(comparison, result, against)
    assert found.worse == pytest.approx(stats.t.sf(0.01, test.df, against.difference.mean, error))
    assert sum(found) == pytest.approx(1)


def test_when_more_is_better_the_shares_change_places():
    lower, higher = (shares(-0.02, 0.01, 4, margin=0.01, lower_is_better=lower) for lower in (True, False))
    assert (lower.worse, lower.within, lower.better) == (higher.better, higher.within, higher.worse)


def test_a_possible_thing_is_never_called_certain():
    comparison, _, _ = compared(BASE[:4], [x - 0.02 + 0.02 * (-1) ** i for i, x in enumerate(BASE[:4])], margin=1.0)
    assert "100 %" not in " ".join(verdict_sentences(comparison)).replace("95 %", "")
    assert shares(0.0, 1e-3, 9, margin=1.0).within == pytest.approx(1)


@pytest.mark.parametrize(
    "arms",
    [([0.4], [0.5]), ([0.4, 0.5], [0.5, 0.4]), (BASE[:5], [x + 0.1 for x in BASE[:5]]), ([None] * 4, BASE[:4])],
)
def test_where_there_is_no_spread_there_is_no_posterior(arms):
    comparison, result, against = compared(*arms)
    assert posterior(comparison, result, against) is None
    assert "Posterior" not in " ".join(verdict_sentences(comparison))
    to_json(comparison_data(comparison))

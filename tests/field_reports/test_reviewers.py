"""What reviewers ask for beside a verdict: probability of improvement, shares of the posterior, a plan before training.

Values are worked out with scipy, statsmodels, or by looking at every candidate on a grid.
"""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from fake_study import noise, study_of, write_study
from matplotlib.figure import Figure
from scipy import stats
from statsmodels.stats.power import TTestIndPower, TTestPower

from analysis import plan
from analysis.comparison import compare
from analysis.export import comparison_data, to_json
from analysis.plots import power_curve
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


def planned(capsys, *arguments, code=0):
    assert plan.main([*arguments]) == code
    return capsys.readouterr()


def as_json(capsys, *arguments):
    return json.loads(planned(capsys, *arguments, "--json").out, parse_constant=pytest.fail)


@pytest.mark.parametrize("arms", [2, 4])
@pytest.mark.parametrize(("correlation", "seeds"), [(0.0, 5), (0.6, 12)])
def test_the_power_curve_is_that_of_statsmodels(capsys, arms, correlation, seeds):
    given = f"--seeds {seeds} --arms {arms} --margin 0.02 --sd 0.015 --correlation {correlation}".split()
    found = as_json(capsys, *given)
    size, level = 0.02 / (0.015 * np.sqrt(2 * (1 - correlation))), 0.05 / (arms - 1)
    test = TTestPower()
    for one in found["curve"][:: len(found["curve"]) // 6]:
        assert one["power"] == pytest.approx(test.power(size, one["seeds"], level), abs=1e-6)
    detectable = test.solve_power(nobs=seeds, alpha=level, power=0.8) * 0.02 / size
    assert found["detectable"] == pytest.approx(detectable, abs=1e-6)
    assert test.power(found["detectable"] * size / 0.02, seeds, level) == pytest.approx(0.8, abs=1e-6)
    assert found["seeds_needed"] == math.ceil(test.solve_power(size, alpha=level, power=0.8))
    assert (found["comparisons"], found["alpha_per_comparison"]) == (arms - 1, pytest.approx(level))


def test_arms_without_shared_seeds_are_planned_by_the_test_of_two_arms(capsys):
    given = "--seeds 8 --margin 0.02 --sd 0.015 --unpaired --alpha 0.01 --power 0.9"
    found = as_json(capsys, *given.split())
    test = TTestIndPower()
    assert found["power"] == pytest.approx(test.power(0.02 / 0.015, 8, 0.01), abs=1e-6)
    assert found["seeds_needed"] == math.ceil(test.solve_power(0.02 / 0.015, alpha=0.01, power=0.9))


def test_an_earlier_study_gives_the_spread_and_the_cost(capsys, tmp_path):
    arms = {"rope": BASE, "roper": OTHER, "none": noise(9, 10)}
    write_study(tmp_path / "s", arms)  # every run took 25 s
    found = as_json(capsys, *f"--seeds 6 --arms 5 --margin 2% --cores 4 --study {tmp_path / 's'}".split())
    d = np.array([np.array(arms[arm]) - np.array(BASE) for arm in ("roper", "none")])
    pooled = np.sqrt(d.var(axis=1, ddof=1).mean())
    assert found["sd"] == pytest.approx(pooled * np.sqrt(9 / stats.chi2.ppf(0.2, 9)))
    assert found["margin"] == pytest.approx(0.02 * np.mean(BASE))
    assert (found["runs"], found["seconds_per_run"]) == (30, 25)
    assert found["hours"] == pytest.approx(30 * 25 / 3600)
    assert found["wall_hours"] == pytest.approx(30 * 25 / 3600 / 4)
    text = " ".join(
        planned(capsys, *f"--seeds 6 --margin 2% --transform log --study {tmp_path / 's'}".split()).out.split()
    )
    assert "6 seeds find a factor of 1.02 with power" in text
    assert f"SD {np.log(np.array(arms['roper']) / BASE).std(ddof=1):.3g} of the paired differences" not in text


def test_a_table_gives_the_spread_too(capsys, tmp_path):
    rows = [f"{arm},{seed},{x}" for arm, xs in (("a", BASE), ("b", OTHER)) for seed, x in enumerate(xs)]
    table = tmp_path / "runs.csv"
    table.write_text("\n".join(["variant,seed,loss", *rows]) + "\n")
    found = as_json(capsys, *f"--seeds 6 --margin 0.01 --metric loss --study {table}".split())
    d = np.array(OTHER) - np.array(BASE)
    assert found["sd"] == pytest.approx(d.std(ddof=1) * np.sqrt(9 / stats.chi2.ppf(0.2, 9)))


def test_the_terminal_and_the_figure_say_what_it_takes(capsys, tmp_path):
    given = "--seeds 10 --arms 4 --margin 0.01 --sd 0.015 --correlation 0.5 --seconds 120 --cores 2"
    text = " ".join(planned(capsys, *given.split(), "--out", str(tmp_path / "p")).out.split())
    needed = math.ceil(TTestPower().solve_power(0.01 / 0.015, alpha=0.05 / 3, power=0.8))
    assert f"To find the former with power 0.8 takes {needed} seeds." in text
    assert "40 runs of 120 s take 1.3 h, 0.67 h with 2 runs at a time" in text
    files = {file.name for file in (tmp_path / "p").iterdir()}
    assert files == {f"power_curve.{e}" for e in ("csv", "pdf", "png", "svg")}
    frame = pd.read_csv(tmp_path / "p" / "power_curve.csv")
    assert frame.loc[frame["needed"], "seeds"].tolist() == [needed]
    assert frame.loc[frame["planned"], "seeds"].tolist() == [10]
    power_curve.draw(frame.iloc[:0], Figure())


@pytest.mark.parametrize(
    "given",
    ["--seeds 3 --arms 1000 --margin 1 --sd 1", "--seeds 5 --margin 1e-9 --sd 1", "--seeds 5 --margin 1e9 --sd 1e-9",
              "--seeds 10000 --margin 1 --sd 1"],
)  # fmt: skip
def test_extreme_plans_have_numbers(capsys, given):
    found = as_json(capsys, *given.split())
    assert 0 <= found["power"] <= 1
    assert found["detectable"] > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--seeds 2 --margin 1 --sd 1", "--seeds 2: a verdict takes at least 3"),
        ("--seeds -3 --margin 1 --sd 1", "--seeds -3: a verdict takes at least 3"),
        ("--seeds 5 --arms 1 --margin 1 --sd 1", "--arms 1: at least 2, the baseline among them"),
        ("--seeds 5 --margin 0 --sd 1", "--margin 0: must be a number above 0"),
        ("--seeds 5 --margin inf --sd 1", "--margin inf: must be a number above 0"),
        ("--seeds 5 --margin 2% --sd 1", "--margin 2%: per cent are of a study's baseline; give a number, or --study"),
        ("--seeds 5 --margin big --sd 1", "--margin big: is not a number, such as 0.01"),
        ("--seeds 5 --margin 1_0 --sd 1", "--margin 1_0: is not a number"),
        ("--seeds 5 --margin 1 --sd nan", "--sd nan: must be a number above 0"),
        ("--seeds 5 --margin 1 --sd 0", "--sd 0: must be a number above 0"),
        ("--seeds 5 --margin 1 --sd 1 --correlation 1", "--correlation 1: must lie between -1 and 1"),
        ("--seeds 5 --margin 1 --sd 1 --alpha 0", "--alpha 0: must lie between 0 and 1"),
        ("--seeds 5 --margin 1 --sd 1 --power 1", "--power 1: must lie between alpha and 1"),
        ("--seeds 5 --margin 1 --sd 1 --seconds 0", "--seconds 0: must be a number above 0"),
        ("--seeds 5 --margin 1 --sd 1 --cores 0", "--cores 0: must be at least 1"),
        ("--seeds 5 --margin 1", "give either --sd, .* or --study"),
        ("--seeds 5 --margin 1 --sd 1 --study x", "give either --sd, .* or --study"),
        ("--seeds 5 --margin 1 --sd 1 --task copy", "--task copy: has no effect without --study"),
        ("--seeds 5 --margin 1 --study x --correlation 0.5", "--correlation: has no effect with --study"),
        ("--seeds 5 --margin 1 --study nowhere", "nowhere"),
    ],
)
def test_a_plan_that_cannot_be_is_one_line(capsys, tmp_path, given, message):
    error = planned(capsys, *given.split(), "--out", str(tmp_path / "p"), code=2).err
    assert re.match(f"error: .*{message}", error)
    assert error.count("\n") == 1
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    "given",
    [
        "--seeds many --margin 1 --sd 1",
        "--margin 1 --sd 1",
        "--seeds 5 --margin 1 --sd 1 --nope",
        "--seeds 1_0 --margin 1 --sd 1",
    ],
)
def test_options_that_cannot_be_read_are_one_line_too(capsys, given):
    with pytest.raises(SystemExit) as ended:
        plan.main(given.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_study_without_spread_is_refused(capsys, tmp_path):
    write_study(tmp_path / "s", {"rope": BASE[:2], "roper": OTHER[:2]})
    error = planned(capsys, *f"--seeds 5 --margin 0.1 --study {tmp_path / 's'}".split(), code=2).err
    assert "has no two variants with 3 finished seeds that differ; give --sd" in error

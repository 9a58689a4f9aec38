"""Scores over several tasks: by hand, against scipy and the t-interval, by simulation, under changes of unit."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from fake_study import ending, noise, suite
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ablate.records import Status
from analysis.aggregate import aggregate, profile
from analysis.load import load_study
from analysis.statistics.aggregate import iqm, jackknife, share_above
from analysis.statistics.intervals import t_interval
from analysis.task_sets import compare_tasks

SHIFTS = {"copy": 0.0, "sort": 1.0, "count": 5.0}
BY_TASK = {task: [shift, shift + 4] for task, shift in SHIFTS.items()}


def pooled(units):
    return iqm(np.concatenate(units))


def test_the_iqm_is_the_mean_of_the_middle_half():
    assert iqm(np.array([9.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, -7.0])) == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert iqm(np.array([0.5])) == 0.5
    sample = np.array(noise(0, 15))
    assert iqm(sample) == pytest.approx(np.sort(sample)[3:12].mean())


@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=12))
def test_the_jackknife_of_a_mean_is_the_t_interval(values):
    sample = np.array(values)
    found = jackknife(list(sample), lambda units: float(np.mean(units)))
    assert found.value == pytest.approx(sample.mean())
    if found.interval is None:
        assert np.ptp(sample) <= 1e-6
    else:
        assert found.interval == pytest.approx(t_interval(sample), abs=1e-6)


def test_the_jackknife_leaves_out_a_seed_of_all_tasks_at_once():
    units = [np.array(x) for x in ([0.1, 0.9, 0.4], [0.5, 0.7], [0.2, 0.8, 0.3], [0.6, 0.6, 0.6])]
    left = [iqm(np.concatenate([u for j, u in enumerate(units) if j != i])) for i in range(4)]
    error = np.sqrt(3 / 4 * sum((x - np.mean(left)) ** 2 for x in left))
    found = jackknife(units, pooled)
    assert found.n == 4
    assert found.value == pooled(units)
    assert found.interval == pytest.approx(stats.t.interval(0.95, 3, found.value, error))


def test_two_seeds_and_seeds_that_change_nothing_get_no_interval():
    assert jackknife([np.array([0.2]), np.array([0.4])], pooled).interval is None
    assert jackknife([np.zeros(3)] * 5, pooled).interval is None


@pytest.mark.parametrize("seeds", [5, 10])
def test_the_interval_of_the_iqm_covers_the_truth_although_scores_of_a_seed_are_correlated(seeds):
    generator = np.random.default_rng(4)

    def draw(n):
        shared, own = generator.normal(size=(n, 1)), generator.normal(size=(n, 4))
        return np.array([0.3, 0.45, 0.55, 0.7]) + 0.12 * (shared + own) / np.sqrt(2)

    truth = iqm(draw(200_000).ravel())
    found = [jackknife(list(draw(seeds)), pooled).interval for _ in range(600)]
    # Three standard errors of a share of 600 are .027.
    assert 0.923 < np.mean([one.low <= truth <= one.high for one in found]) < 0.977


def small(path, **more):
    """Losses 0, 2, 4 of rope and 1, 3, 4 of roper on every task: scores of (4 - loss) / 4 by these references."""
    suite(path, {"rope": [0.0, 2.0, 4.0], "roper": [1.0, 3.0, 4.0]}, shifts=SHIFTS, **more)
    return compare_tasks(path, reference=BY_TASK)


def test_a_small_aggregate_is_as_worked_out_by_hand(tmp_path):
    found = small(tmp_path / "s").aggregate
    assert (found.tasks, found.baseline) == (tuple(SHIFTS), "rope")
    rope, roper = found.variants
    assert rope.scores == {task: {0: 1.0, 1: 0.5, 2: 0.0} for task in SHIFTS}
    assert roper.scores["sort"] == {0: 0.75, 1: 0.25, 2: 0.0}
    # Of nine scores two are cut off at either end: 0, .5, .5, .5, 1 and 0, .25, .25, .25, .75.
    assert rope.iqm.value == pytest.approx(0.5)
    assert roper.iqm.value == pytest.approx(0.3)
    assert (rope.difference, rope.wins) == (None, None)
    # Of six scores, one seed left out, one is cut off at either end: two of one seed and two of the other stay.
    left = [0.25 - 0.125, 0.5 - 0.375, 0.75 - 0.5]
    assert roper.difference.value == pytest.approx(-0.2)
    half = stats.t.ppf(0.975, 2) * np.sqrt(2 * np.var(left))
    assert roper.difference.interval == pytest.approx((-0.2 - half, -0.2 + half))
    # On every task roper loses with seeds 0 and 1 and ties with seed 2.
    assert roper.wins.value == pytest.approx(1 / 6)
    half = stats.t.ppf(0.975, 2) * np.std([0, 0, 0.5], ddof=1) / np.sqrt(3)
    assert roper.wins.interval == pytest.approx((0, 1 / 6 + half))
    assert [one.value for one in profile(rope, [0.0, 0.5, 0.99, 1.0])] == pytest.approx([2 / 3, 1 / 3, 1 / 3, 0])


def test_a_failed_run_is_below_every_score_and_counts_as_the_worst_in_a_mean(tmp_path):
    changes = {
        ("copy", "roper", 0): ending(Status.diverged),
        ("sort", "roper", 0): ending(Status.failed),
        ("count", "roper", 0): ending(Status.running),
    }
    _, roper = small(tmp_path / "s", changes=changes).aggregate.variants
    assert (roper.scores["copy"][0], roper.scores["sort"][0]) == (-np.inf, -np.inf)
    assert roper.floor == 0
    assert 0 not in roper.scores["count"]
    assert (roper.n_failed, roper.n_runs) == (2, 8)


def test_the_difference_is_over_the_runs_that_ended_in_both(tmp_path):
    changes = {("copy", "rope", 0): ending(Status.running)}
    _, roper = small(tmp_path / "s", changes=changes).aggregate.variants
    # A run that is missing moves no other score, because the scale is not that of the runs there are.
    copy = [(0.5, 0.25), (0.0, 0.0)]
    rest = [(1.0, 0.75), (0.5, 0.25), (0.0, 0.0)] * 2
    rope, own = zip(*copy, *rest, strict=True)
    assert roper.difference.value == pytest.approx(iqm(np.array(own)) - iqm(np.array(rope)))
    assert roper.difference.n == 3


def test_higher_is_better_gives_the_mirrored_scores(tmp_path):
    lower = small(tmp_path / "s").aggregate
    higher = compare_tasks(tmp_path / "s", direction="higher", reference=BY_TASK).aggregate
    for one, other in zip(lower.variants, higher.variants, strict=True):
        assert other.iqm.value == pytest.approx(1 - one.iqm.value)
        mirrored = {t: {s: 1 - x for s, x in own.items()} for t, own in one.scores.items()}
        assert other.scores == {t: pytest.approx(own) for t, own in mirrored.items()}


@pytest.mark.parametrize("tasks", [["copy", "sort", "count"], ["count", "copy", "sort"]])
def test_neither_the_order_nor_the_unit_of_a_task_matters(tmp_path, tasks):
    arms = {"rope": noise(0, 5), "roper": noise(1, 5)}
    scaled = {("sort", arm): [1000 * x - 7 for x in own] for arm, own in arms.items()}
    suite(tmp_path / "plain", arms, shifts=SHIFTS)
    suite(tmp_path / "other", arms, shifts={task: SHIFTS[task] for task in tasks}, values=scaled)
    plain, other = (compare_tasks(tmp_path / name).aggregate for name in ("plain", "other"))
    for one, two in zip(plain.variants, other.variants, strict=True):
        assert two.iqm.value == pytest.approx(one.iqm.value)
        assert two.iqm.interval == pytest.approx(one.iqm.interval)
    assert other.variants[1].difference.interval == pytest.approx(plain.variants[1].difference.interval)


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_diverges_never_raises_a_score(tmp_path, seed):
    arms = {"rope": noise(0, 5), "roper": noise(1, 5)}
    suite(tmp_path / "s", arms, shifts=SHIFTS)
    suite(tmp_path / "t", arms, shifts=SHIFTS, changes={("sort", "roper", seed): ending(Status.diverged)})
    before, after = (compare_tasks(tmp_path / name).aggregate.variants[1] for name in ("s", "t"))
    assert after.iqm.value <= before.iqm.value


def test_a_profile_falls_from_all_runs_to_none(tmp_path):
    arms = {"rope": noise(0, 6), "roper": noise(1, 6)}
    suite(tmp_path / "s", arms, shifts=SHIFTS)
    for one in compare_tasks(tmp_path / "s").aggregate.variants:
        shares = profile(one, np.linspace(-9, 9, 37))
        assert all(a.value >= b.value for a, b in pairwise(shares))
        assert (shares[0].value, shares[-1].value) == (1, 0)
        scores = np.array([x for own in one.scores.values() for x in own.values()])
        assert shares[18].value == pytest.approx(np.mean(scores > 0)) == share_above(scores, 0)
        by_seed = [np.mean([own[seed] > 0 for own in one.scores.values()]) for seed in range(6)]
        low, high = t_interval(np.array(by_seed))
        assert shares[18].interval == pytest.approx((max(0, low), min(1, high)))


def test_without_shared_seeds_there_is_no_paired_difference(tmp_path):
    suite(tmp_path / "s", {"rope": noise(0, 4), "roper": noise(1, 4)}, shifts=SHIFTS)
    found = compare_tasks(replace(load_study(tmp_path / "s"), shared_seeds=False)).aggregate
    assert [one.difference for one in found.variants] == [None, None]


def test_no_comparison_has_no_aggregate():
    assert aggregate({}) is None

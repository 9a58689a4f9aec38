"""The six verdicts, and that none can be had by looking hard enough."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.statistics.paired import paired_difference, unpaired_difference
from analysis.statistics.verdict import Evidence, Outcomes, Verdict, judge

BASE = np.array([0.50, 0.47, 0.44, 0.48, 0.46, 0.45])
NOISE = np.array([0.01, -0.012, 0.004, 0.0, -0.006, 0.008])


def evidence(shift, spread=1.0, **changes):
    difference = paired_difference(
        BASE + shift + spread * NOISE, BASE, lower_is_better=changes.get("lower_is_better", True)
    )
    n, margin = BASE.size, changes.get("margin")
    alone = {"p_equivalence": margin and difference.equivalence_p(margin), "corrected": difference.interval}
    given = {"difference": difference, "p_holm": difference.p, "outcomes": Outcomes(n, 0, n, 0), **alone, **changes}
    return Evidence(**given)


@pytest.mark.parametrize(
    ("shift", "margin", "verdict", "qualifier"),
    [
        (-0.1, None, Verdict.better, ""),
        (0.1, None, Verdict.worse, ""),
        (-0.1, 0.05, Verdict.better, "by a meaningful margin"),
        (-0.1, 0.1, Verdict.better, ""),
        (-0.02, 0.05, Verdict.better, "but smaller than the margin of interest"),
        (0.02, 0.05, Verdict.worse, "but smaller than the margin of interest"),
        (0.001, 0.02, Verdict.equivalent, "within the margin of interest"),
        (0.001, 0.004, Verdict.inconclusive, ""),
        (0.001, None, Verdict.inconclusive, ""),
    ],
)
def test_the_interval_and_the_margin_decide(shift, margin, verdict, qualifier):
    judgement = judge(evidence(shift, margin=margin))
    assert (judgement.verdict, judgement.qualifier) == (verdict, qualifier)


def test_a_p_that_holm_raises_over_alpha_is_inconclusive():
    assert judge(evidence(-0.1, p_holm=0.06)).verdict == Verdict.inconclusive


def test_higher_is_better_is_the_mirror():
    assert judge(evidence(0.1, lower_is_better=False)).verdict == Verdict.better
    assert judge(evidence(-0.1, lower_is_better=False)).verdict == Verdict.worse


def test_two_pairs_are_insufficient():
    difference = paired_difference(BASE[:2] - 0.1, BASE[:2])
    assert judge(Evidence(difference, None, Outcomes(2, 0, 2, 0))).verdict == Verdict.insufficient


def test_a_lost_seed_withholds_a_verdict_only_where_it_points_against_it():
    assert judge(evidence(-0.1, outcomes=Outcomes(9, 0, 8, 1, 1, 0))).verdict == Verdict.better
    assert judge(evidence(0.1, outcomes=Outcomes(8, 1, 9, 0, 0, 1))).verdict == Verdict.worse
    better = judge(evidence(-0.1, outcomes=Outcomes(8, 1, 9, 0, 0, 1)))
    assert (better.verdict, better.qualifier) == (Verdict.unstable, "better on the mean, but failed on more seeds")
    worse = judge(evidence(0.1, outcomes=Outcomes(9, 0, 8, 1, 1, 0)))
    assert worse.qualifier == "worse on the mean, but the baseline failed on more seeds"
    assert judge(evidence(-0.1, outcomes=Outcomes(8, 1, 8, 1, 1, 1))).verdict == Verdict.better


def test_a_significant_difference_of_success_rates_is_unstable_whatever_the_mean_says():
    significant = Outcomes(34, 0, 28, 6, 6, 0)
    assert significant.p(paired=True) < 0.05
    assert judge(evidence(-0.1, outcomes=significant)).qualifier == "success rates differ"
    assert judge(evidence(-0.1, outcomes=Outcomes(34, 0, 29, 5, 5, 0))).verdict == Verdict.better


@pytest.mark.parametrize(
    ("outcomes", "who"),
    [
        (Outcomes(4, 0, 3, 1), "the baseline"),
        (Outcomes(3, 1, 4, 0), "the variant"),
        (Outcomes(7, 2, 7, 2), "both arms"),
        (Outcomes(8, 2, 8, 2), ""),
        (Outcomes(3, 1, 4, 0, variant_pending=1), ""),
    ],
)
def test_an_arm_that_lost_over_a_fifth_of_its_planned_seeds_is_unstable(outcomes, who):
    judgement = judge(evidence(0.0005, outcomes=outcomes))
    assert judgement.verdict == (Verdict.unstable if who else Verdict.inconclusive)
    assert judgement.qualifier == (f"{who} lost over a fifth of the seeds" if who else "")


def test_groups_of_runs_that_contradict_each_other_are_unstable():
    judgement = judge(evidence(-0.1, split=("two groups of runs in rope, on different sides of none",)))
    assert judgement.verdict == Verdict.unstable
    assert judgement.qualifier == "two groups of runs in rope, on different sides of none"


def test_an_arm_of_which_every_seed_failed_is_unstable():
    difference = paired_difference(np.array([]), np.array([]))
    judgement = judge(Evidence(difference, None, Outcomes(0, 6, 6, 0, 0, 6)))
    assert judgement.verdict == Verdict.unstable
    assert judgement.qualifier == "all 6 seeds failed"
    mirror = judge(Evidence(difference, None, Outcomes(6, 0, 0, 6, 6, 0)))
    assert mirror.verdict == Verdict.unstable
    assert mirror.qualifier == "all 6 seeds of the baseline failed"
    assert judge(Evidence(difference, None, Outcomes(0, 6, 0, 6))).verdict == Verdict.insufficient


def test_a_difference_that_is_the_same_for_every_seed_is_inconclusive():
    assert judge(evidence(-0.1, spread=0.0)).verdict == Verdict.inconclusive


def test_unpaired_arms_that_were_looked_at_twice_get_no_verdict_on_the_mean():
    difference = unpaired_difference(BASE - 0.1 + NOISE, BASE)
    found = Evidence(difference, difference.p, Outcomes(6, 0, 6, 0))
    assert judge(found).verdict == Verdict.better
    assert judge(replace(found, looked_before=True)).verdict == Verdict.inconclusive


def test_success_rates_are_compared_exactly():
    rates = Outcomes(4, 6, 10, 0, only_variant=0, only_baseline=6)
    assert rates.p(paired=True) == pytest.approx(2 / 2**6)
    assert rates.p(paired=False) == pytest.approx(0.0045, abs=0.002)
    assert Outcomes(5, 0, 5, 0).p(paired=True) == 1.0


@pytest.mark.parametrize("shift", [-0.1, -0.02, 0.0, 0.02, 0.1])
@pytest.mark.parametrize(
    "outcomes", [Outcomes(6, 1, 7, 0, 0, 1), Outcomes(6, 2, 8, 0, 0, 2), Outcomes(8, 1, 8, 1, 1, 1)]
)
def test_one_more_diverged_seed_never_improves_the_verdict(shift, outcomes):
    order = [Verdict.unstable, Verdict.insufficient, Verdict.worse, Verdict.inconclusive]
    order += [Verdict.equivalent, Verdict.better]
    before = judge(evidence(shift, margin=0.03)).verdict
    after = judge(evidence(shift, margin=0.03, outcomes=outcomes)).verdict
    assert order.index(after) <= order.index(before)


def test_the_size_of_an_effect_is_judged_by_the_corrected_interval():
    """At alpha/7 the interval reaches back within the margin that the 95 % interval excludes."""
    one = evidence(-0.02, margin=0.0104)
    assert judge(one).qualifier == "by a meaningful margin"
    assert one.difference.interval_at(0.05 / 7).high > -0.0104
    assert judge(replace(one, corrected=one.difference.interval_at(0.05 / 7))).qualifier == ""


def test_equivalence_needs_its_corrected_p():
    one = evidence(0.001, margin=0.02)
    assert judge(one).verdict == Verdict.equivalent
    assert judge(replace(one, p_equivalence=0.06)).verdict == Verdict.inconclusive

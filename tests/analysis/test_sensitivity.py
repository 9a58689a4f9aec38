"""What other tests say beside the paired t, and when a result is called fragile."""

import json

import numpy as np
import pytest
from fake_study import noise, study_of, write_study
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from analysis import report
from analysis.comparison import compare
from analysis.statistics.paired import paired_difference, unpaired_difference
from analysis.statistics.sensitivity import Sensitivity, sensitivity, welch_p, why_fragile, wilcoxon_p
from analysis.wording import sensitivity_line

BASE = np.array(noise(2, 10))
MOVED = BASE - 0.05 + 0.002 * np.arange(10)
ONE_FAR_OFF = np.array([*(-0.01 - 0.001 * np.arange(11)), 0.2])
values = st.floats(-10, 10).map(lambda x: round(x, 3))


def test_every_check_is_that_of_scipy():
    found = paired_difference(MOVED, BASE).sensitivity
    assert found.t == pytest.approx(stats.ttest_rel(MOVED, BASE).pvalue)
    assert found.wilcoxon == pytest.approx(stats.wilcoxon(MOVED - BASE).pvalue)
    assert found.welch == pytest.approx(stats.ttest_ind(MOVED, BASE, equal_var=False).pvalue)
    middle = [np.sort(arm)[2:8].mean() for arm in (MOVED, BASE)]
    assert found.iqm_difference == pytest.approx(middle[0] - middle[1])


def test_welch_takes_one_constant_arm_and_not_two():
    assert welch_p(MOVED, np.full(10, 0.5)) == pytest.approx(stats.ttest_1samp(MOVED, 0.5).pvalue)
    assert welch_p(np.full(5, 0.4), np.full(5, 0.5)) is None


@given(arrays(float, 7, elements=values))
def test_wilcoxon_is_the_same_for_both_orders_and_for_any_unit(differences):
    assume(np.abs(differences).max() > 0)
    p = wilcoxon_p(differences)
    assert p == pytest.approx(wilcoxon_p(-differences))
    assert p == pytest.approx(wilcoxon_p(1000 * differences))


@pytest.mark.parametrize("n", [6, 9, 25])
@pytest.mark.parametrize("tied", [True, False])
def test_wilcoxon_is_that_of_scipy_with_zeros_split_ties_or_not(n, tied):
    generator = np.random.default_rng(n)
    differences = generator.integers(-3, 6, n) / 10 if tied else generator.normal(0.3, 1, n)
    assert wilcoxon_p(differences) == pytest.approx(stats.wilcoxon(differences, zero_method="zsplit").pvalue)


def test_ties_that_rounding_hides_are_ties():
    assert wilcoxon_p(np.array([0.3, 0.1 + 0.2, -0.3, 0.5, 0.6, 0.7])) == wilcoxon_p(np.array([3, 3, -3, 5, 6, 7]) / 10)


def test_five_pairs_have_no_test_of_signs_or_ranks_and_three_no_interquartile_mean():
    five, three = (sensitivity(MOVED[:n], BASE[:n], 0.01) for n in (5, 3))
    assert (five.sign_flip, five.wilcoxon) == (None, None)
    assert five.iqm_difference is not None
    assert three.iqm_difference is None


@pytest.mark.parametrize(
    ("checks", "named"),
    [
        (Sensitivity(t=0.04, sign_flip=0.06), r"sign-flip test \(p = .060\) disagree"),
        (Sensitivity(t=0.06, wilcoxon=0.03), r"the Wilcoxon test \(p = .030\) disagree"),
        (Sensitivity(t=0.2, welch=0.01), r"the Welch test \(p = .010\) disagree"),
        (Sensitivity(t=0.04, iqm_difference=0.02), r"interquartile means \(\+0.02\) disagree"),
    ],
)
def test_a_check_that_disagrees_makes_a_result_fragile(checks, named):
    with pytest.raises(AssertionError, match=named):
        raise AssertionError(why_fragile(MOVED - BASE, checks))


def test_welch_finding_less_than_the_paired_test_is_what_pairing_is_for():
    found = paired_difference(BASE - 0.005 + 0.001 * (-1.0) ** np.arange(10), BASE)
    assert found.sensitivity.welch > 0.05 > found.p
    assert found.fragile is None


def test_a_run_far_off_makes_wilcoxon_disagree_with_t():
    base = np.array(noise(2, 12))
    assert "Wilcoxon" in paired_difference(base + ONE_FAR_OFF, base).fragile


def test_arms_that_are_not_paired_have_welch_and_the_interquartile_means_only():
    found = unpaired_difference(MOVED, BASE[:9]).sensitivity
    assert (found.t, found.sign_flip, found.wilcoxon) == (None, None, None)
    assert found.welch == pytest.approx(stats.ttest_ind(MOVED, BASE[:9], equal_var=False).pvalue)


def test_the_line_names_every_check_and_says_when_the_result_is_fragile():
    comparison = compare(study_of({"rope": list(BASE), "roper": list(MOVED)}))
    line = sensitivity_line(comparison, comparison.result("roper").against)
    assert line.startswith("sensitivity (uncorrected): t p < .001, sign-flip p = .002, Wilcoxon p = .002, Welch p ")
    assert "IQM difference −0.0" in line
    assert "fragile" not in line
    base = np.array(noise(2, 12))
    fragile = compare(study_of({"rope": list(base), "roper": list(base + ONE_FAR_OFF)}))
    assert "; fragile: the t-test" in sensitivity_line(fragile, fragile.result("roper").against)


def test_two_pairs_and_a_constant_difference_have_no_line():
    for arms in ({"rope": [0.4, 0.5], "roper": [0.3, 0.5]}, {"rope": list(BASE), "roper": list(BASE + 0.25)}):
        comparison = compare(study_of(arms))
        assert sensitivity_line(comparison, comparison.result("roper").against) == ""


def test_ratios_are_shown_on_the_log_scale():
    comparison = compare(study_of({"rope": list(BASE), "roper": list(BASE * 0.5 + 0.001)}), transform="log")
    assert "IQM ratio 0.5" in sensitivity_line(comparison, comparison.result("roper").against)


def test_several_looks_leave_no_p_of_a_single_look(tmp_path):
    write_study(tmp_path / "s", {"rope": list(BASE[:5]), "roper": list(MOVED[:5])}, looks=[10])
    write_study(tmp_path / "s", {"rope": list(BASE), "roper": list(MOVED)}, looks=[20], sweep="20260201T000000-bbbb")
    checks = compare(tmp_path / "s").result("roper").against.difference.sensitivity
    assert (checks.t, checks.sign_flip, checks.wilcoxon, checks.welch) == (None, None, None, None)


def test_the_report_and_its_json_hold_the_line(tmp_path):
    write_study(tmp_path / "s", {"rope": list(BASE), "roper": list(MOVED)})
    report.main([str(tmp_path / "s")])
    out = tmp_path / "s" / "report"
    for name in ("report.md", "report.html"):
        assert "sensitivity (uncorrected): t p" in (out / name).read_text().replace("\\", "").replace("&lt;", "<")
    first, second = json.loads((out / "comparison.json").read_text())["variants"]
    assert first["sensitivity"] is None
    assert second["sensitivity"].keys() == {"t", "sign_flip", "wilcoxon", "welch", "iqm_difference", "fragile"}
    assert second["sensitivity"]["t"] == second["p"]

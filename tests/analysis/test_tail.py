"""The slow tail: what is one, what is none, and how seldom chance makes one."""

import numpy as np
import pytest
from fake_study import noise, study_of
from scipy import stats

from analysis.comparison import compare
from analysis.statistics.tail import slow_tail

SHORT = np.tile([1.0, 1.1, 1.2, 1.3, 1.4, 1.5], 3)
LONG = np.tile([1.0, 1.1, 1.2, 1.3, 2.5, 4.0], 3)


def test_a_tail_is_counted_beyond_the_fence_of_the_other_arm():
    tail = slow_tail(LONG, SHORT)
    first, third = np.quantile(SHORT, (0.25, 0.75))
    fence = third + 1.5 * (third - first)
    assert tail == pytest.approx((6, 18, fence, stats.levene(LONG, SHORT, center="median").pvalue))
    assert slow_tail(SHORT, LONG) is None


def test_where_higher_is_better_the_tail_is_on_the_other_side():
    assert slow_tail(-LONG, -SHORT, lower_is_better=False).runs == 6
    assert slow_tail(-LONG, -SHORT) is None


def test_an_arm_that_is_worse_as_a_whole_has_no_tail():
    assert slow_tail(LONG + 5, SHORT) is None


@pytest.mark.parametrize(("arm", "other"), [(LONG[:4], SHORT), (LONG, SHORT[:4]), (LONG, np.ones(6)), (SHORT, SHORT)])
def test_too_few_runs_or_no_spread_give_none(arm, other):
    assert slow_tail(arm, other) is None


def test_equal_arms_have_one_in_at_most_five_per_cent():
    generator = np.random.default_rng(0)
    found = [slow_tail(*generator.normal(size=(2, 10))) is not None for _ in range(1000)]
    assert np.mean(found) <= 0.05


def test_the_flag_names_both_arms_on_the_scale_of_the_metric():
    shown = compare(study_of({"rope": list(np.exp(LONG)), "roper": list(np.exp(SHORT))}), transform="log")
    (flag,) = [flag for flag in shown.result("roper").flags if "tail" in flag]
    assert flag.startswith(
        f"slow tail of rope: 6 of 18 runs above {np.exp(slow_tail(LONG, SHORT).fence):.1f}, the fence of roper"
    )
    assert not [flag for flag in shown.result("rope").flags if "tail" in flag]
    plain = compare(study_of({"rope": noise(1, 10), "roper": noise(2, 10)}))
    assert not [flag for flag in plain.result("roper").flags if "tail" in flag]

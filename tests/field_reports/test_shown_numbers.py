"""Numbers as they are shown: rounding never takes one to a value that means something else.

Every shown text is read back with `float` and compared with the number that it stands for.
"""

import math
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import stats

from ablate.numbers import score
from analysis import formatting as fmt
from analysis.compare import main
from analysis.scale import LOG, PLAIN
from analysis.statistics.intervals import Interval, wilson

FINITE = st.floats(-1e15, 1e15, allow_subnormal=False)
SMALL = st.floats(-10, 10, allow_subnormal=False)
PLACES = st.integers(-4, 14)
ZERO = re.compile(r"[−-][0.]+(?![\d.]*[1-9])")
"""A minus before nothing but zeros."""


def read(text: str) -> float:
    """A shown number as a float."""
    return float(text.replace("−", "-").replace("∞", "inf"))


def ends_of(text: str) -> list[float]:
    return [read(end) for end in text.strip("[]").split(", ")]


def sign(value: float) -> int:
    return (value > 0) - (value < 0)


@given(FINITE | SMALL, PLACES, st.booleans())
@example(-0.36, 0, True)
@example(-0.0, 2, True)
@example(-0.004, 2, False)
def test_w26_a_number_keeps_its_sign_and_is_zero_only_where_it_is(value, places, signed):
    text = fmt.number(value, places, sign=signed)
    assert sign(read(text)) == sign(value)
    assert not ZERO.fullmatch(text)
    assert text.startswith("+") == (signed and value >= 0)


@given(
    st.lists(SMALL | FINITE, min_size=3, max_size=3).map(sorted), PLACES, st.sampled_from([(), (1.0,), (-0.013, 0.013)])
)
@example([-40.0, -20.0, -0.36], 0, ())
@example([0.98, 0.99, 0.9996], 2, (1.0,))
@example([-0.0134, -0.0132, -0.0131], 2, (-0.013, 0.013))
def test_w26_low_mean_and_high_stay_in_order_and_on_their_sides(values, places, apart):
    low, mean, high = values
    middle, shown = fmt.estimate(mean, (low, high), places, apart=apart)
    lower, upper = ends_of(shown)
    assert lower <= read(middle) <= upper
    for true, end in ((low, lower), (high, upper)):
        for mark in (0.0, *apart):
            assert sign(end - mark) == sign(true - mark)


@given(st.floats(-3, 3), st.floats(1e-9, 3), st.floats(0.01, 1) | st.none())
@example(-0.0015, 0.001, None)
def test_w26_differences_and_ratios_are_shown_on_their_side_of_none_and_of_the_margin(mean, half, margin):
    low, high = mean - half, mean + half
    assume(margin is None or all(abs(abs(end) - margin) > 1e-6 for end in (low, mean, high)))
    for scale, null in ((PLAIN, 0.0), (LOG, 1.0)):
        middle, bounds = scale.contrast(mean, Interval(low, high), None, margin)
        lower, upper = ends_of(bounds)
        assert lower <= read(middle) <= upper
        for true, end in ((low, lower), (high, upper)):
            assert sign(end - null) == sign(scale.back(true) - null)
            for mark in (margin, -margin) if margin is not None else ():
                assert sign(end - scale.back(mark)) == sign(true - mark)


@given(st.floats(0, 1), st.sampled_from([0.05, 0.01, 0.1, 0.005, 0.0005, 0.0625]))
@example(0.04996, 0.05)
@example(0.0504, 0.05)
@example(math.nextafter(0.05, 0), 0.05)
@example(math.nextafter(0.05, 1), 0.05)
@example(math.nextafter(1, 0), 0.05)
@example(0.05, 0.05)
def test_w26_p_is_below_alpha_in_print_only_where_it_is(p, alpha):
    text = fmt.p_value(p, alpha)
    bound = text[0] if text[0] in "<>" else ""
    shown = read(text.lstrip("<>"))
    if bound:
        assert p < shown if bound == "<" else p > shown
        assert (shown <= alpha) if p < alpha else (shown >= alpha)
    else:
        assert (shown < alpha) == (p < alpha)
        assert abs(shown - p) <= 0.0005 + 1e-12
    assert (text == "1") == (p == 1)


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.04996, ".04996"), (0.0504, ".0504"), (0.0496, ".0496"), (0.05, ".050"), (0.0494, ".049"), (0.0506, ".051"),
        (0.04999999, "<.05"), (0.05000001, ">.05"), (0.9996, ">.999"), (1.0, "1"), (0.0, "<.001"), (0.001, ".001"),
    ],
)  # fmt: skip
def test_w26_p_values_near_alpha_and_near_the_limits(p, text):
    assert fmt.p_value(p) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.9996, "99.96"), (1.0, "100"), (0.0004, "0.04"), (0.0, "0"), (0.46, "46")]
)
def test_w26_a_share_is_none_or_all_only_where_it_is(share, text):
    assert fmt.percent(share) == text


@pytest.mark.parametrize(
    ("scale", "margin", "text"),
    [
        (LOG, math.log(1.02), "a factor of 1.02"),
        (LOG, math.log(1.0004), "a factor of 1.0004"),
        (LOG, math.log1p(0.000012345), "a factor of 1.0000123"),
        (LOG, 1e-14, "a factor of 1 + 1e-14"),
        (LOG, math.log(12.5), "a factor of 12.5"),
        (PLAIN, 0.00001, "1e-05"),
        (PLAIN, 0.0125, "0.0125"),
    ],
)
def test_w26_a_size_is_never_shown_as_none(scale, margin, text):
    assert scale.size(margin, 3) == text


@given(st.floats(1e-300, 600), st.integers(1, 4))
def test_w26_a_factor_is_above_1_and_a_size_above_0(size, digits):
    assert float(PLAIN.size(size, digits)) > 0
    factor = LOG.size(size, digits).removeprefix("a factor of ")
    assert factor.startswith("1 + ") or float(factor) > 1


def test_w26_a_spread_that_is_but_rounding_is_zero_and_a_real_one_is_not():
    assert fmt.deviation(5.6e-17, 0.3) == "0.0000"
    assert fmt.deviation(0.002, 0.3, 2) == "0.002"


@pytest.mark.parametrize("n", [*range(1, 30), 100])
def test_w26_the_interval_of_none_and_of_all_ends_at_exactly_0_and_1(n):
    none, every = wilson(0, n), wilson(n, n)
    assert none is not None
    assert every is not None
    assert (none.low, every.high) == (0.0, 1.0)
    assert every.low == pytest.approx(n / (n + 3.8414588))  # Wilson at k = n: n / (n + z²)


def test_w26_an_interval_that_ends_just_below_0_is_not_shown_at_0_beside_its_verdict(tmp_path, capsys):
    base = [1000.0, 1010.0, 1020.0]
    half = stats.t.ppf(0.975, 2) * 8 / math.sqrt(3)
    mean = -0.36 - half  # differences mean - 8, mean, mean + 8: their SD is 8 and the interval ends at -0.36
    rows = ["variant,seed,accuracy"]
    for seed, value in enumerate(base):
        rows += [f"a,{seed},{value}", f"b,{seed},{value + mean + 8 * (seed - 1)}"]
    (tmp_path / "t.csv").write_text("\n".join(rows), encoding="utf-8")
    main([str(tmp_path / "t.csv"), "b", "a", "--metric", "accuracy"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "b: worse than a" in shown
    assert round(mean - half) == -40
    assert "mean difference −20, 95 % interval [−40, −0.4]" in shown
    assert not ZERO.search(shown)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.34123, "0.3412"), (0.00003, "0.00003"), (0.99996, "0.99996"), (1.0, "1.0000"), (0.0, "0.0000"),
        (-0.00003, "-0.00003"), (float("nan"), "nan"), (float("inf"), "inf"),
    ],
)  # fmt: skip
def test_w26_a_score_of_a_run_is_0_or_1_only_where_it_is(value, text):
    assert score(value) == text

"""Factorial designs: against sums of squares by hand and numpy, scipy's F, and simulation."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests

from analysis.statistics.factorial import analyse, complete_design, crosses_sign

BY_HAND = {("a", "1"): [1.0, 2.0], ("a", "2"): [2.0, 5.0], ("b", "1"): [3.0, 4.0], ("b", "2"): [8.0, 7.0]}
"""Cell means 1.5, 3.5, 3.5, 7.5; seed means 3.5, 4.5; grand mean 4."""


def cells_of(values):
    return {cell: dict(enumerate(own)) for cell, own in values.items()}


def random_cells(shape, seeds=5, seed=0):
    generator = np.random.default_rng(seed)
    names = product(*[[f"level {i}.{axis}" for i in range(n)] for axis, n in enumerate(shape)])
    return cells_of({cell: generator.normal(0, 1, seeds).tolist() for cell in names})


def result_of(cells, factors=None, **more):
    width = len(next(iter(cells)))
    return analyse(complete_design(factors or [f"model.f {i}" for i in range(width)], cells), **more)


def by_name(result):
    return {term.name: term for term in result.terms}


def test_a_2x2_has_the_sums_of_squares_worked_out_by_hand():
    terms = by_name(result_of(cells_of(BY_HAND), ["x", "y"]))
    # Around 4: x ±1.5, y ±1.5, x × y ±.5, seed ±.5, each over 8 runs, of 9 + 4 + 4 + 1 + 1 + 0 + 16 + 9 = 44 in all.
    expected = {"x": 18.0, "y": 18.0, "x × y": 2.0, "seed": 2.0, "residual": 4.0}
    assert {name: term.sum_squares for name, term in terms.items()} == pytest.approx(expected)
    assert {name: term.df for name, term in terms.items()} == {"x": 1, "y": 1, "x × y": 1, "seed": 1, "residual": 3}
    assert {name: term.share for name, term in terms.items()} == pytest.approx({k: v / 44 for k, v in expected.items()})
    assert terms["x"].f == pytest.approx(18 / (4 / 3))
    assert terms["x"].omega == pytest.approx((18 - 4 / 3) / (18 + 7 * 4 / 3))
    assert (terms["residual"].f, terms["residual"].p, terms["residual"].omega) == (None, None, None)


def test_the_difference_of_differences_of_a_2x2_is_worked_out_by_hand():
    interaction = result_of(cells_of(BY_HAND), ["x", "y"]).interaction
    assert interaction.mean == pytest.approx(((8 - 2) - (3 - 1) + (7 - 5) - (4 - 2)) / 2)
    assert interaction.n == 2


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (4, 3)])
def test_a_two_factor_design_has_the_sums_of_squares_and_p_of_numpy_and_scipy(shape):
    result = result_of(random_cells(shape), ["a.b", "c d"])
    y = result.design.values
    grand, a, b, s = y.mean(), y.mean((1, 2)), y.mean((0, 2)), y.mean((0, 1))
    cell = y.mean(2) - a[:, None] - b[None, :] + grand
    n = y.shape[2]
    squares = {
        "a.b": shape[1] * n * np.sum((a - grand) ** 2),
        "c d": shape[0] * n * np.sum((b - grand) ** 2),
        "a.b × c d": n * np.sum(cell**2),
        "seed": shape[0] * shape[1] * np.sum((s - grand) ** 2),
    }
    squares["residual"] = np.sum((y - grand) ** 2) - sum(squares.values())
    terms = by_name(result)
    assert {name: term.sum_squares for name, term in terms.items()} == pytest.approx(squares)
    assert sum(term.share for term in result.terms) == pytest.approx(1)
    free = (shape[0] * shape[1] - 1) * (n - 1)
    for name in ("a.b", "c d", "a.b × c d"):
        f = squares[name] / terms[name].df / (squares["residual"] / free)
        assert terms[name].p == pytest.approx(stats.f.sf(f, terms[name].df, free))
    assert result.interaction is None


def test_three_factors_agree_with_statsmodels_called_directly():
    cells = random_cells((2, 2, 3), seeds=3)
    rows = [(*cell, seed, y) for cell, own in cells.items() for seed, y in own.items()]
    frame = pd.DataFrame(rows, columns=["a", "b", "c", "seed", "y"])
    table = anova_lm(ols("y ~ C(a)*C(b)*C(c) + C(seed)", frame).fit(), typ=1)
    terms = by_name(result_of(cells, ["a", "b", "c"]))
    names = {name: ":".join(f"C({f})" for f in term.factors) for name, term in terms.items() if term.factors}
    assert len(names) == 7
    for name, key in names.items():
        assert (terms[name].f, terms[name].p) == pytest.approx((table.loc[key, "F"], table.loc[key, "PR(>F)"]))


def test_contrasts_are_paired_t_tests_of_marginal_means_with_holm_over_all():
    result = result_of(random_cells((2, 3)), ["a", "b"])
    y = result.design.values
    b = y.mean(0)
    tests = [stats.ttest_rel(*y.mean(1)[::-1]), stats.ttest_rel(b[1], b[0]), stats.ttest_rel(b[2], b[0])]
    expected = multipletests([test.pvalue for test in tests], method="holm")[1]
    assert [one.p_holm for one in result.contrasts] == pytest.approx(list(expected))
    assert [(one.factor, one.level, one.reference) for one in result.contrasts] == [
        ("a", "level 1.0", "level 0.0"),
        ("b", "level 1.1", "level 0.1"),
        ("b", "level 2.1", "level 0.1"),
    ]
    for one, test in zip(result.contrasts, tests, strict=True):
        assert tuple(one.difference.interval) == pytest.approx(tuple(test.confidence_interval(0.95)))


def test_the_interaction_of_a_2x2_is_a_paired_t_test_of_the_two_differences():
    result = result_of(random_cells((2, 2)))
    y = result.design.values
    assert result.interaction.p == pytest.approx(stats.ttest_rel(y[1, 1] - y[0, 1], y[1, 0] - y[0, 0]).pvalue)


def test_without_an_effect_p_is_uniform():
    found = [[t.p for t in result_of(random_cells((2, 3), 4, seed)).terms if t.factors] for seed in range(150)]
    for p_values in zip(*found, strict=True):
        assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_a_shift_of_each_seed_changes_nothing_but_the_seed_term():
    cells = random_cells((2, 3))
    moved = {cell: {seed: y + 10.0 * seed for seed, y in own.items()} for cell, own in cells.items()}
    before, after = by_name(result_of(cells)), by_name(result_of(moved))
    assert {n: t.f for n, t in after.items() if t.factors} == pytest.approx(
        {n: t.f for n, t in before.items() if t.factors}
    )
    assert after["seed"].sum_squares > before["seed"].sum_squares


@settings(max_examples=15, deadline=None)
@given(st.permutations(list(random_cells((2, 3)))), st.floats(0.01, 100), st.floats(-100, 100))
def test_order_unit_and_origin_change_no_f(order, unit, origin):
    cells = random_cells((2, 3))
    changed = {cell: {seed: origin + unit * y for seed, y in reversed(cells[cell].items())} for cell in order}
    before, after = by_name(result_of(cells)), by_name(result_of(changed))
    for name, term in before.items():
        assert after[name].share == pytest.approx(term.share)
        assert after[name].f == (None if term.f is None else pytest.approx(term.f))


def test_swapping_the_reference_flips_the_sign_of_its_contrast():
    cells = cells_of(BY_HAND)
    forward, backward = (result_of(dict(order)).contrasts[0] for order in (cells.items(), reversed(cells.items())))
    assert forward.difference.mean == pytest.approx(-backward.difference.mean)
    assert (forward.level, forward.reference) == (backward.reference, backward.level)


def test_a_factor_whose_effect_changes_sign_has_no_main_effect_claim():
    jitter = [0.0, 0.1, -0.1, 0.05]
    means = {("a", "1"): 1.0, ("a", "2"): 6.0, ("b", "1"): 3.0, ("b", "2"): 4.5}
    result = result_of(
        cells_of({c: [m + j * (i + 1) for j in jitter] for i, (c, m) in enumerate(means.items())}), ["x", "y"]
    )
    # x: +2 at the first level of y, -1.5 at the second; y: +5 and +1.5, which only differ in size.
    assert {factor: term.name for factor, term in result.withheld.items()} == {"x": "x × y"}
    assert crosses_sign(result.design, "x", ["x", "y"])
    assert not crosses_sign(result.design, "y", ["x", "y"])


def test_an_interaction_that_may_be_chance_withholds_nothing():
    result = result_of(random_cells((2, 2), seed=3), alpha=1e-9)
    assert result.withheld == {}


@pytest.mark.parametrize(
    ("factors", "change", "message"),
    [
        (["x"], lambda c: c, "two or more factors, got \\['x'\\]"),
        (
            ["x", "y"],
            lambda c: {k: v for k, v in c.items() if k[0] == "a"},
            "factor x needs two or more levels, got \\['a'\\]",
        ),
        (
            ["x", "y"],
            lambda c: {k: v for k, v in c.items() if k != ("b", "2")},
            "combination of levels; missing: x=b, y=2",
        ),
        (["x", "y"], lambda c: c | {("a", "2"): {0: 1.0}}, "without a value: x=a, y=2 \\(seed 1\\)"),
        (["x", "y"], lambda c: {k: {0: v[0]} for k, v in c.items()}, "two or more seeds per cell, got \\[0\\]"),
        (["x", "y"], lambda c: {k: {} for k in c}, "two or more seeds per cell, got \\[\\]"),
        (["x", "y"], lambda c: c | {("a", "2"): {0: 1.0, 1: float("nan")}}, "finite values"),
    ],
)
def test_what_is_missing_is_named(factors, change, message):
    with pytest.raises(ValueError, match=message):
        complete_design(factors, change(cells_of(BY_HAND)))


def test_many_gaps_are_counted_not_listed():
    cells = random_cells((3, 4))
    with pytest.raises(ValueError, match=r"; and 7 more$"):
        complete_design(["x", "y"], {c: own if i == 0 else {} for i, (c, own) in enumerate(cells.items())})


def test_values_without_a_residual_are_refused():
    with pytest.raises(ValueError, match=r"leave no residual: .* the seed reaches the generator"):
        result_of(cells_of({cell: [0.1 * i, 0.1 * i + 0.3, 0.1 * i + 0.7] for i, cell in enumerate(BY_HAND)}))

"""Shares of variance: by hand, against the textbook's formulas, by simulation, and how a report shows them."""

import io
import json
from itertools import combinations, product

import numpy as np
import pytest
from fake_study import ending, noise, write_study
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats

from ablate.records import Status
from analysis import report
from analysis.comparison import compare
from analysis.factorial_tables import factorial_report
from analysis.plots.base import all_plots
from analysis.statistics.variance import Layout, complete_layout, variance_components
from analysis.streams import only_streams, stream_factors
from analysis.tables import to_csv, to_terminal
from analysis.terminal import print_comparison
from analysis.variance import variance_data, variance_report


def layout_of(values):
    levels = [tuple(map(str, range(n))) for n in values.shape]
    return Layout(tuple("abc"[: values.ndim]), tuple(levels), values)


def components(values, seed=0, draws=2000):
    return variance_components(layout_of(np.asarray(values, dtype=float)), np.random.default_rng(seed), draws)


def simulated(generator, shape, variances):
    """One layout, each set of factors with the variance given for it."""
    y = np.zeros(shape)
    for term, variance in variances.items():
        own = [n if axis in term else 1 for axis, n in enumerate(shape)]
        y = y + np.sqrt(variance) * generator.normal(size=own)
    return y


def test_a_2x2_has_the_components_worked_out_by_hand():
    # Row means 3 and 5, column means 1 and 7; cells off the additive fit by ±1: mean squares 4, 36 and 4.
    sources = components([[1, 5], [1, 9]])
    assert [one.df for one in sources] == [1, 1, 1]
    assert [one.estimate for one in sources] == pytest.approx([(4 - 4) / 2, (36 - 4) / 2, 4])
    assert [one.share for one in sources] == pytest.approx([0, 16 / 20, 4 / 20])


def test_two_factors_have_the_estimators_of_the_textbook():
    y = np.random.default_rng(1).normal(size=(4, 7))
    a, b = y.mean(1) - y.mean(), y.mean(0) - y.mean()
    mean_a, mean_b = 7 * np.sum(a**2) / 3, 4 * np.sum(b**2) / 6
    mean_rest = np.sum((y - y.mean() - a[:, None] - b) ** 2) / 18
    expected = [(mean_a - mean_rest) / 7, (mean_b - mean_rest) / 4, mean_rest]
    assert [one.estimate for one in components(y)] == pytest.approx(expected)


def test_three_factors_have_the_estimators_of_the_textbook():
    n = (3, 4, 5)
    y = np.random.default_rng(2).normal(size=n)

    def squares(*axes):
        """The mean square of a set of axes, run by run."""
        total = 0.0
        for index in product(*map(range, n)):
            effect = 0.0
            for size in range(len(axes) + 1):
                for some in combinations(axes, size):
                    place = tuple(index[axis] if axis in some else slice(None) for axis in range(3))
                    effect += (-1) ** (len(axes) - size) * y[place].mean()
            total += effect**2
        return total / np.prod([n[axis] - 1 for axis in axes])

    a, b, c, ab, ac, bc, abc = (squares(*x) for x in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)))
    expected = [
        (a - ab - ac + abc) / 20, (b - ab - bc + abc) / 15, (c - ac - bc + abc) / 12,
        (ab - abc) / 5, (ac - abc) / 4, (bc - abc) / 3, abc,
    ]  # fmt: skip
    assert [one.estimate for one in components(y)] == pytest.approx(expected)
    assert [one.df for one in components(y)] == [2, 3, 4, 6, 8, 12, 24]


def test_estimates_are_unbiased():
    generator = np.random.default_rng(3)
    true = {(0,): 0.5, (1,): 0.3, (0, 1): 0.2}
    found = [[one.estimate for one in components(simulated(generator, (5, 5), true), draws=2)] for _ in range(600)]
    errors = np.std(found, axis=0) / np.sqrt(600)
    assert np.abs((np.mean(found, axis=0) - list(true.values())) / errors).max() < 4


@pytest.mark.parametrize(
    ("shape", "true"),
    [
        ((5, 5), {(0,): 0.5, (1,): 0.3, (0, 1): 0.2}),
        ((4, 6), {(0,): 0.05, (1,): 0.6, (0, 1): 0.35}),
        ((10, 10), {(0,): 0.0, (1,): 0.3, (0, 1): 0.7}),
    ],
)
def test_intervals_of_shares_cover_the_true_ones(shape, true):
    generator = np.random.default_rng(4)
    found = [components(simulated(generator, shape, true), i, 1000) for i in range(300)]
    for place, share in enumerate(true.values()):
        hits = sum(sources[place].interval.low <= share <= sources[place].interval.high for sources in found)
        assert stats.binomtest(hits, 300, 0.95, alternative="less").pvalue > 0.005


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 100), st.floats(-100, 100))
def test_shares_add_up_and_know_neither_unit_nor_origin(seed, unit, origin):
    y = np.random.default_rng(seed).normal(size=(3, 4))
    before, after = components(y, draws=200), components(origin - unit * y, draws=200)
    assert sum(one.share for one in before) == pytest.approx(1)
    assert [one.share for one in after] == pytest.approx([one.share for one in before], abs=1e-6)
    assert [one.estimate for one in after] == pytest.approx([unit**2 * one.estimate for one in before], rel=1e-4)
    assert all(0 <= one.interval.low <= one.interval.high <= 1 for one in before)


def test_a_very_small_mean_square_does_not_make_its_source_certain_to_be_nothing():
    y = np.random.default_rng(6).normal(size=(3, 5))
    flat = y - y.mean(1, keepdims=True)
    first = components(flat)[0]
    assert first.share == 0
    assert first.interval.high > 0.2


def test_swapping_factors_swaps_their_estimates():
    y = np.random.default_rng(5).normal(size=(3, 4))
    (a, b, rest), (b_first, a_second, rest_again) = components(y), components(y.T)
    assert (a.estimate, b.estimate, rest.estimate) == pytest.approx(
        (a_second.estimate, b_first.estimate, rest_again.estimate)
    )


AB = {"a": ["1", "2"], "b": ["1", "2"]}
FULL = {cell: float(i**2) for i, cell in enumerate(product("12", "12"))}


@pytest.mark.parametrize(
    ("levels", "values", "message"),
    [
        ({"a": ["1", "2"]}, {}, r"two or more crossed streams of two or more levels, got a \(2\)"),
        ({"a": ["1", "2"], "b": ["1"]}, {}, r"got a \(2\), b \(1\)"),
        (AB, {cell: y for cell, y in FULL.items() if cell != ("2", "1")}, r"without one: a=2, b=1$"),
        (AB, FULL | {("2", "1"): float("nan")}, r"without one: a=2, b=1$"),
        (AB, dict.fromkeys(FULL, 0.3), r"same value: check that the seeds reach the generators"),
        ({"a": list("123456"), "b": list("12")}, FULL, r"; and 4 more$"),
    ],
)
def test_what_is_missing_is_named(levels, values, message):
    with pytest.raises(ValueError, match=message):
        complete_layout(levels, values)


# What the report makes of it.

STREAMS = {f"init={i} data={d}": {"seeds.init": i, "seeds.data": d} for i, d in product(range(4), repeat=2)}


def crossed(path, factors=None, seeds=1, **more):
    """A study in which seeds.init decides most, seeds.data some, and the rest is noise."""
    factors = factors or STREAMS
    own, other = noise(100, 20, mean=0, sd=0.03), noise(101, 20, mean=0, sd=0.01)
    arms = {
        label: [
            0.5 + own[f["seeds.init"]] + other[f.get("seeds.data", 0)] + y for y in noise(i, seeds, mean=0, sd=0.004)
        ]
        for i, (label, f) in enumerate(factors.items())
    }
    write_study(path, arms, factors=factors, **more)
    return compare(path)


def test_a_study_of_two_streams_has_a_share_for_each_and_the_rest(tmp_path):
    comparison = crossed(tmp_path / "s")
    found = variance_report(comparison)
    (table,), (sentence,) = found.tables, found.sentences
    y = np.array([float(result.summary.mean) for result in comparison.results]).reshape(4, 4)
    expected = components(y, draws=10_000)
    assert [row[0].text for row in table.rows] == ["seeds.init", "seeds.data", "the rest"]
    records = table.records()
    assert [one["share"] for one in records] == pytest.approx([one.share for one in expected])
    assert [one["share_ci"] for one in records] == [list(one.interval) for one in expected]
    assert [one["sd"] ** 2 for one in records] == pytest.approx([max(0, one.estimate) for one in expected])
    low, high = (100 * end for end in expected[0].interval)
    assert f"{100 * expected[0].share:.0f} % [{low:.0f}, {high:.0f}] from seeds.init, " in sentence
    assert sentence.startswith("Of the variance of eval/loss over 16 runs (SD 0.0")
    assert "16 runs, 4 of seeds.init × 4 of seeds.data." in table.caption
    assert table.caption.endswith("what no seed decides; the same in all runs: dropout.")
    assert "share_ci" in to_csv(table)


def test_several_seeds_are_one_more_stream_and_set_the_interaction_apart(tmp_path):
    found = variance_report(crossed(tmp_path / "s", seeds=3))
    assert [row[0].text for row in found.tables[0].rows] == [
        "seeds.init", "seeds.data", "seed", "seeds.init × seeds.data", "seeds.init × seed", "seeds.data × seed",
        "the rest",
    ]  # fmt: skip
    assert found.tables[0].caption.endswith("; seed drives: dropout.")


def test_one_stream_is_crossed_with_the_seed(tmp_path):
    factors = {f"init={i}": {"seeds.init": i} for i in range(4)}
    found = variance_report(crossed(tmp_path / "s", factors, seeds=5))
    assert [row[0].text for row in found.tables[0].rows] == ["seeds.init", "seed", "the rest"]
    assert found.tables[0].caption.endswith("; seed drives: data, dropout.")
    alone = variance_report(crossed(tmp_path / "t", factors))
    assert alone.tables == ()
    assert alone.sentences == ("No variance study: only seeds.init varies; cross it with another stream.",)


def test_each_variant_of_the_other_factors_has_its_own_shares(tmp_path):
    both = {f"{a} {label}": {"attention": a, **own} for a in ("rope", "roper") for label, own in STREAMS.items()}
    comparison = crossed(tmp_path / "s", both)
    found = variance_report(comparison)
    assert [sentence.split(":")[0] for sentence in found.sentences] == ["attention=rope", "attention=roper"]
    assert [row[0].text for row in found.tables[0].rows] == ["attention=rope"] * 3 + ["attention=roper"] * 3
    assert not only_streams(comparison.study)
    assert factorial_report(comparison).sentences == ()


def test_a_negative_estimate_is_shown_as_0_and_said_so(tmp_path):
    values = {("0", "0"): 1.0, ("0", "1"): 2.0, ("1", "0"): 2.0, ("1", "1"): 1.0}
    factors = {f"{i} {d}": {"seeds.init": int(i), "seeds.data": int(d)} for i, d in values}
    write_study(tmp_path / "s", {" ".join(cell): [y] for cell, y in values.items()}, factors=factors)
    found = variance_report(compare(tmp_path / "s"))
    assert found.sentences[0].endswith("Estimated below 0, and shown as 0: seeds.init, seeds.data.")
    assert [one["estimate"] for one in found.tables[0].records()] == pytest.approx([-0.5, -0.5, 1.0])
    assert [one["sd"] for one in found.tables[0].records()] == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("lost", ["diverged", "not planned"])
def test_an_incomplete_layout_is_one_clear_sentence(tmp_path, lost):
    label = "init=2 data=1"
    factors = STREAMS if lost == "diverged" else {name: own for name, own in STREAMS.items() if name != label}
    changes = {(label, 0): ending(Status.diverged)} if lost == "diverged" else {}
    found = variance_report(crossed(tmp_path / "s", factors, changes=changes))
    assert found.tables == ()
    assert found.sentences == (
        "No variance study: shares of variance need a value at every combination of streams; without one: "
        "seeds.init=2, seeds.data=1.",
    )


def test_a_level_whose_runs_all_failed_is_missing_not_left_out(tmp_path):
    changes = {(f"init=3 data={d}", 0): ending(Status.failed) for d in range(4)}
    (sentence,) = variance_report(crossed(tmp_path / "s", changes=changes)).sentences
    assert sentence.endswith(
        "without one: seeds.init=3, seeds.data=0; seeds.init=3, seeds.data=1; seeds.init=3, seeds.data=2; "
        "seeds.init=3, seeds.data=3."
    )


def test_a_study_without_streams_says_nothing_of_variance(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 4), "roper": noise(1, 4)})
    comparison = compare(tmp_path / "s")
    assert (stream_factors(comparison.study), only_streams(comparison.study)) == ([], False)
    assert variance_data(comparison) == {"sentences": []}


def test_every_output_leads_with_the_shares_and_gives_no_verdicts(tmp_path):
    comparison = crossed(tmp_path / "s")
    assert report.main([str(tmp_path / "s")]) == 0
    out = tmp_path / "s" / "report"
    markdown, page = (out / "report.md").read_text(), (out / "report.html").read_text()
    assert markdown.splitlines()[2].startswith("- Of the variance of eval/loss over 16 runs")
    assert "| seeds.init | 3 |" in markdown
    assert markdown.index("share of variance") < markdown.index("## Cells")
    assert page.index("Of the variance of eval/loss") < page.index("insufficient")
    assert "insufficient against" not in markdown + page
    data = json.loads((out / "comparison.json").read_text())
    assert len(data["variants"]) == 16
    assert [one["source"] for one in data["variance"]["variance"]] == ["seeds.init", "seeds.data", "the rest"]
    assert (out / "tables" / "variance.csv").is_file()
    console = Console(width=140, record=True, file=io.StringIO())
    print_comparison(comparison, console)
    text = console.export_text()
    assert "Of the variance of eval/loss" in text
    assert "insufficient" not in text


def test_two_cells_compared_by_name_are_no_variance_study(tmp_path):
    crossed(tmp_path / "s")
    comparison = compare(tmp_path / "s").narrowed(["init=0 data=0", "init=1 data=0"])
    assert variance_report(comparison).sentences == ()
    console = Console(width=140, record=True, file=io.StringIO())
    print_comparison(comparison, console)
    assert "init=1 data=0: insufficient" in console.export_text()


def test_no_figure_compares_streams_as_if_they_were_variants(tmp_path):
    comparison = crossed(tmp_path / "s")
    empty = {plot.name for plot in all_plots() if plot.prepare(comparison).empty}
    assert empty >= {"forest", "interaction", "paired_difference"}
    assert "heat_map" not in empty


def test_the_terminal_shows_the_table_whole_at_80_characters(tmp_path):
    table = variance_report(crossed(tmp_path / "s")).tables[0]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(to_terminal(table))
    assert all(cell.text.split(" [")[0] in console.export_text(clear=False) for row in table.rows for cell in row)

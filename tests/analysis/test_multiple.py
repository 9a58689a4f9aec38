"""Many comparisons: q values beside Holm's p in exploratory grids, and every pair of variants on request."""

import csv
import io
import json

import numpy as np
import pytest
from fake_study import ending, noise, write_study
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ablate.records import Status
from analysis import report
from analysis.all_pairs import all_pairs, all_pairs_table
from analysis.comparison import compare
from analysis.comparison_table import comparison_table
from analysis.export import comparison_data
from analysis.statistics.multiple import benjamini_hochberg
from analysis.tables import to_csv
from analysis.terminal import print_comparison
from analysis.wording import discoveries

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(P_VALUES)
def test_q_values_are_those_of_statsmodels(p_values):
    assert benjamini_hochberg(p_values) == pytest.approx(list(multipletests(p_values, method="fdr_bh")[1]))


def test_q_values_are_worked_out_by_hand():
    # Sorted .01 .02 .04 .5 times 4/1 4/2 4/3 4/4 is .04 .04 .0533 .5, already rising.
    assert benjamini_hochberg([0.5, 0.01, 0.04, 0.02]) == pytest.approx([0.5, 0.04, 0.16 / 3, 0.04])


def test_a_comparison_without_a_p_counts_in_the_family_as_1():
    assert benjamini_hochberg([0.01, None, 0.02]) == [pytest.approx(0.03), None, pytest.approx(0.03)]
    assert benjamini_hochberg([]) == []


def many(path, cells, shift=-0.02):
    """A baseline, three variants that differ from it by `shift`, and others that do not."""
    base = noise(0, 6)
    moves = {"base": 0.0} | {f"v{i}": shift if i < 3 else 0.0 for i in range(cells - 1)}
    arms = {
        label: [b + move + y for b, y in zip(base, noise(i + 19, 6, mean=0, sd=0.008), strict=True)]
        for i, (label, move) in enumerate(moves.items())
    }
    write_study(path, arms)
    return compare(path)


def test_over_ten_cells_the_table_has_a_column_for_q_and_the_verdict_stays_with_holm(tmp_path):
    comparison = many(tmp_path / "s", 11)
    table = comparison_table(comparison)
    assert [column.title for column in table.columns][-3:] == ["p (Holm)", "q (BH)", "verdict"]
    p = [against.difference.p for _, against in comparison.others]
    q = multipletests(p, method="fdr_bh")[1]
    assert [against.q_bh for _, against in comparison.others] == pytest.approx(list(q))
    assert [row[-2].text for row in table.rows[1:]] == [
        "<.001" if one < 0.001 else f"{one:.3f}".removeprefix("0") for one in q
    ]
    assert "q after Benjamini and Hochberg (exploratory; no verdict rests on it)" in table.caption
    found = [result.variant.label for (result, _), one in zip(comparison.others, q, strict=True) if one <= 0.05]
    better = [r.variant.label for r, a in comparison.others if a.judgement.verdict in ("better", "worse")]
    assert set(better) < set(found) == {"v0", "v1", "v2"}
    (sentence,) = discoveries(comparison)
    assert sentence.endswith(f"5 %: 3 of 10 variants differ from the baseline: {', '.join(found)}")
    console = Console(width=160, record=True, file=io.StringIO())
    print_comparison(comparison, console)
    assert "exploratory, Benjamini and Hochberg" in console.export_text()


def test_nothing_found_names_nothing(tmp_path):
    (sentence,) = discoveries(many(tmp_path / "s", 12, shift=0.0))
    assert sentence.endswith(": 0 of 11 variants differ from the baseline")


def test_a_grid_without_any_p_says_nothing_of_q(tmp_path):
    write_study(tmp_path / "s", {f"v{i}": noise(i, 1) for i in range(12)})
    assert discoveries(compare(tmp_path / "s")) == []


def test_up_to_ten_cells_q_is_in_json_and_csv_only(tmp_path):
    comparison = many(tmp_path / "s", 10)
    table = comparison_table(comparison)
    assert "q (BH)" not in [column.title for column in table.columns]
    assert "Hochberg" not in table.caption
    assert discoveries(comparison) == []
    expected = [against.q_bh for _, against in comparison.others]
    assert [v["q_bh"] for v in comparison_data(comparison)["variants"]] == [None, *expected]
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [float(row["q_bh"]) for row in rows[1:]] == expected


def three(path, seeds=6, **more):
    values = {label: noise(i, 6, mean=0.45 + 0.02 * i)[:seeds] for i, label in enumerate(("a", "b", "c"))}
    write_study(path, values, **more)
    return values


def test_every_pair_is_a_paired_t_test_with_holm_over_all_of_them(tmp_path):
    values = three(tmp_path / "s")
    pairs = all_pairs(compare(tmp_path / "s"))
    expected = [("b", "a"), ("c", "a"), ("c", "b")]
    assert [(one.variant.label, one.reference.label) for one in pairs] == expected
    tests = [stats.ttest_rel(values[x], values[y]) for x, y in expected]
    holm = multipletests([test.pvalue for test in tests], method="holm")[1]
    assert [one.p_holm for one in pairs] == pytest.approx(list(holm))
    for one, test in zip(pairs, tests, strict=True):
        assert one.difference.p == pytest.approx(test.pvalue)
        assert tuple(one.difference.interval) == pytest.approx(tuple(test.confidence_interval(0.95)))


def test_the_chosen_baseline_is_the_reference_of_all(tmp_path):
    three(tmp_path / "s")
    pairs = all_pairs(compare(tmp_path / "s", baseline="c"))
    assert [(one.variant.label, one.reference.label) for one in pairs] == [("a", "c"), ("b", "c"), ("b", "a")]


def test_a_pair_without_common_seeds_keeps_its_row(tmp_path):
    three(tmp_path / "s", changes={("b", s): ending(Status.diverged) for s in range(6)})
    table = all_pairs_table(compare(tmp_path / "s"))
    assert [[cell.text for cell in row[2:]] for row in table.rows if "b" in (row[0].text, row[1].text)] == [
        ["n/a", "0", "–", "n/a", "n/a"]
    ] * 2
    assert "over 3 pairs" in table.caption


def test_the_logarithm_gives_ratios(tmp_path):
    values = three(tmp_path / "s")
    table = all_pairs_table(compare(tmp_path / "s", transform="log"))
    assert table.columns[2].title == "ratio of geometric means [95 % CI]"
    ratio = np.exp(np.mean(np.log(values["b"])) - np.mean(np.log(values["a"])))
    assert float(table.rows[0][2].text.split()[0]) == pytest.approx(ratio, abs=0.01)


def test_seeds_added_after_a_look_widen_the_intervals_of_all_pairs(tmp_path):
    three(tmp_path / "s")
    plain = all_pairs(compare(tmp_path / "s"))
    three(tmp_path / "t", seeds=3, looks=[9])
    three(tmp_path / "t", sweep="20260201T000000-bbbb")
    comparison = compare(tmp_path / "t")
    for one, before in zip(all_pairs(comparison), plain, strict=True):
        assert one.difference.p > before.difference.p
    assert "anytime-valid paired t" in all_pairs_table(comparison).caption


def test_the_command_adds_the_table_on_request_only(tmp_path, capsys):
    three(tmp_path / "s")
    assert report.main([str(tmp_path / "s")]) == 0
    assert "Every pair" not in capsys.readouterr().out
    out = tmp_path / "s" / "report"
    assert not (out / "tables" / "all_pairs.csv").exists()
    assert report.main([str(tmp_path / "s"), "--all-pairs"]) == 0
    assert "Every pair of variants on eval/loss" in capsys.readouterr().out
    assert len((out / "tables" / "all_pairs.csv").read_text().splitlines()) == 4
    for name in ("report.md", "report.html"):
        text = (out / name).read_text()
        assert "All pairs" in text
        assert "--all-pairs" in text
    assert json.loads((out / "comparison.json").read_text())["baseline"] == "a"

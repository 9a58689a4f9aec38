"""The renderings of a table, and how numbers are written."""

import csv
import io
import re

import pytest
from fake_study import ending, noise, write_study
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ablate.records import Status
from analysis import formatting as fmt
from analysis.comparison import compare
from analysis.comparison_table import comparison_table, completeness, factors_table, failures_table
from analysis.tables import Cell, Column, Table, to_csv, to_markdown, to_terminal


def table_of(*texts, caption=""):
    return Table("t_1", [Column("my_head %"), Column("n", "right")], [[Cell(x), Cell("1")] for x in texts], caption)


@given(st.text(alphabet="ab|\\*_`<>[]# ", max_size=12))
def test_markdown_cells_keep_the_number_of_columns(text):
    row = to_markdown(table_of(text)).splitlines()[2]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3


def test_markdown_marks_alignment_and_bold():
    text = to_markdown(Table("t", [Column("a"), Column("b", "right")], [[Cell("x", bold=True), Cell("1")]], "why"))
    assert text == "| a | b |\n| --- | ---: |\n| **x** | 1 |\n\nwhy\n"


def test_csv_and_json_hold_the_unrounded_values():
    table = Table("t", [Column("a")], [[Cell("0.33", {"mean": 1 / 3, "ci": [0.1, 0.2]})], [Cell("–", {"mean": None})]])
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert float(rows[0]["mean"]) == 1 / 3
    assert rows[0]["ci"] == "[0.1,0.2]"
    assert rows[1] == {"mean": "", "ci": ""}
    assert table.records()[0] == {"mean": 1 / 3, "ci": [0.1, 0.2]}


def test_a_cell_is_sorted_by_the_value_that_it_names_or_by_its_first():
    values = {"ci": [0.25, 0.5], "n": 3, "label": "rope"}
    assert Cell("", values).sort_value == 0.25
    assert Cell("", values, sort="n").sort_value == 3
    assert Cell("", {"label": "rope"}).sort_value == "rope"
    assert Cell("", {"p": None}).sort_value is None
    assert Cell("text").sort_value is None


def test_a_row_with_a_cell_too_few_is_an_error():
    with pytest.raises(ValueError, match="a row has 1 cells for 2 columns"):
        Table("t", [Column("a"), Column("b")], [[Cell("x")]])


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_shows_every_value_whole(tmp_path, width):
    write_study(tmp_path / "s", {"rope": noise(0, 6), "roper_2022": noise(1, 6)})
    table = comparison_table(compare(tmp_path / "s"))
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(to_terminal(table))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    for row in table.rows:
        for index in (0, 1, 5, 6, 7):
            assert row[index].text.split(" (")[0] in text


def test_an_underscore_or_bracket_in_a_label_is_not_taken_for_markup():
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(to_terminal(table_of("[red]_base[/red]")))
    assert "[red]_base[/red]" in console.export_text()


def test_the_comparison_has_the_agreed_columns_and_one_row_per_variant(tmp_path):
    changes = {("roper", 2): ending(Status.diverged)}
    write_study(tmp_path / "s", {"rope": noise(0, 6), "roper": noise(1, 6)}, changes=changes)
    table = comparison_table(compare(tmp_path / "s"))
    assert [column.title for column in table.columns] == [
        "variant", "seeds ok", "finished [95 % CI]", "mean ± SD", "95 % CI", "Δ vs baseline [95 % CI]", "wins",
        "p", "verdict",
    ]  # fmt: skip
    assert [row[0].text for row in table.rows] == ["rope", "roper"]
    assert table.rows[1][1].text == "5/6 (1 diverged)"


def test_one_seed_is_na_and_never_zero(tmp_path):
    write_study(tmp_path / "s", {"rope": [0.4], "roper": [0.3]})
    row = [cell.text for cell in comparison_table(compare(tmp_path / "s")).rows[1]]
    assert row[2:] == ["0.3000 (n = 1)", "n/a", "−0.1000 [n/a]", "1/1", "n/a", "insufficient"]


def test_a_factor_that_a_variant_lacks_is_a_dash(tmp_path):
    factors = {"none": {"attention": "none"}, "rope": {"attention": "rope", "rope_percentage": 0.5}}
    study = write_study(tmp_path / "s", {"none": noise(0, 3), "rope": noise(1, 3)}, factors=factors)
    comparison = compare(study.path)
    assert [[c.text for c in row] for row in factors_table(comparison.study).rows] == [
        ["none", "none", "–"], ["rope", "rope", "0.5"],
    ]  # fmt: skip
    assert len(comparison_table(comparison).rows) == 2


def test_failures_are_listed_with_reason_and_folder(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 3)}, changes={("rope", 1): ending(Status.failed, "no\nmemory")})
    (row,) = failures_table(compare(tmp_path / "s").study, "eval/loss").rows
    assert [cell.text for cell in row[:4]] == ["rope", "1", "failed", "RuntimeError: no"]
    assert row[4].text.startswith("runs/")
    assert row[4].text.endswith("/seed=1")


def test_completeness_shows_each_seed_of_each_variant(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 3)}, changes={("rope", 1): ending(Status.failed)})
    table = completeness(compare(tmp_path / "s"))
    assert [cell.text for cell in table.rows[0]] == ["rope", "✓", "✗", "✓"]
    assert table.caption == "✓ ok, ✗ failed"


@pytest.mark.parametrize(
    ("scale", "places"), [(0.031, 3), (0.0099, 4), (0.0996, 2), (0.01, 3), (1.2, 1), (45.0, 0), (0.0, 4), (None, 4)]
)
def test_two_significant_digits_of_the_scale_are_shown(scale, places):
    assert fmt.decimals(scale) == places


@pytest.mark.parametrize(
    ("p", "text"), [(0.0123, ".012"), (0.0004, "<.001"), (0.5, ".500"), (1.0, "1"), (None, "n/a"), (0.9999, ">.999")]
)
def test_p_values_have_three_digits_and_no_zero_before_the_point(p, text):
    assert fmt.p_value(p) == text


@pytest.mark.parametrize(
    ("value", "scale", "text"),
    [
        (4.5e-10, 2.3e-11, "4.50e−10"),
        (4.4986e11, 2.3e10, "4.50e+11"),
        (1234.5, 350.0, "1234"),
        (1000000.4, 0.024, "1000000.400"),
        (0.25, 1e-17, "0.2500"),
        (0.0, 1e-12, "0.000000000"),
    ],
)
def test_very_large_and_small_numbers_are_short_and_rounding_has_no_digits(value, scale, text):
    assert fmt.number(value, fmt.decimals(scale, value)) == text


def test_signs_and_infinities_are_true_characters():
    assert fmt.number(-0.5, 2, sign=True) == "−0.50"
    assert fmt.interval((-float("inf"), float("inf")), 2) == "[−∞, ∞]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        ("1", '"1"'),
        ("rope", "rope"),
        ([2, 2], "[2,2]"),
        (None, "null"),
        (True, "true"),
        ("1e-3", '"1e-3"'),
    ],
)
def test_factor_values_are_shown_by_one_rule(value, text):
    assert fmt.factor_value(value) == text


def test_seeds_are_listed_in_spans():
    assert fmt.seed_list([0, 1, 2, 3, 7, 9, 10]) == "0–3, 7, 9, 10"

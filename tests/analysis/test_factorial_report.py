"""How a report shows a factorial study: both tables, a sentence per factor, or why there is none."""

import json
from dataclasses import replace

import pytest
from fake_study import ending, noise, write_study

from ablate.records import Status
from analysis import report
from analysis.comparison import compare
from analysis.crossing import crossing
from analysis.export import comparison_data
from analysis.factorial_tables import FactorialReport, factorial_report
from analysis.latex import to_latex
from analysis.load import load_study
from analysis.tables import to_csv

LABELS = {f"{a}, {w}": {"attention": a, "model.width": w} for a in ("rope", "ro_per") for w in (64, 128)}


def crossed(path, effect=(0.0, 0.0, -0.05, -0.05), seeds=5, **more):
    shared = noise(0, 5)[:seeds]
    arms = {
        label: [s + e + 0.002 * z for s, z in zip(shared, noise(i + 1, 5, mean=0, sd=1), strict=False)]
        for i, (label, e) in enumerate(zip(LABELS, effect, strict=True))
    }
    write_study(path, arms, factors=LABELS, **more)
    return compare(path)


def test_a_crossed_study_gets_both_tables_and_a_sentence_per_factor(tmp_path):
    shown = factorial_report(crossed(tmp_path / "s"))
    terms, contrasts = shown.tables
    assert [row[0].text for row in terms.rows] == [
        "attention",
        "model.width",
        "attention × model.width",
        "seed",
        "residual",
    ]
    assert [tuple(c.text for c in row[:3]) for row in contrasts.rows] == [
        ("attention", "ro_per", "rope"),
        ("model.width", "128", "64"),
        ("attention × model.width", "ro_per, 128", "rope, 64"),
    ]
    assert shown.sentences[0].startswith("attention: the levels differ on average (F(1, 12) = ")
    assert shown.sentences[1].startswith("model.width: inconclusive (F(1, 12) = ")
    assert "sum_squares" in to_csv(terms)
    assert r"ro\_per" in to_latex(contrasts)


def test_a_crossing_interaction_is_said_instead_of_a_main_effect(tmp_path):
    shown = factorial_report(crossed(tmp_path / "s", (0.0, 0.1, 0.1, 0.0)))
    assert "attention: no main effect is claimed" in shown.sentences[0]
    assert "attention × model.width" in shown.sentences[0]


def test_of_two_cells_of_a_complete_grid_none_is_called_missing(tmp_path):
    crossed(tmp_path / "s")
    two = compare(tmp_path / "s", baseline="rope, 64").narrowed(["rope, 64", "ro_per, 128"])
    assert factorial_report(two) == FactorialReport()
    assert comparison_data(two)["factorial_analysis"] == {"sentences": []}


def test_the_level_of_the_baseline_is_the_reference(tmp_path):
    crossed(tmp_path / "s")
    contrasts = factorial_report(compare(tmp_path / "s", baseline="ro_per, 128")).tables[1]
    assert [row[2].text for row in contrasts.rows[:2]] == ["ro_per", "128"]


def test_an_incomplete_design_says_why_in_one_sentence(tmp_path):
    changes = {("ro_per, 64", 2): ending(Status.diverged)}
    shown = factorial_report(crossed(tmp_path / "s", changes=changes))
    assert shown.tables == ()
    (sentence,) = shown.sentences
    assert sentence.endswith("without a value: attention=ro_per, model.width=64 (seed 2).")


def test_a_main_effect_that_no_contrast_shows_says_so(tmp_path):
    write_study(tmp_path / "s", {label: noise(i, 2) for i, label in enumerate(LABELS)}, factors=LABELS)
    shown = factorial_report(compare(tmp_path / "s"))
    assert [row[3].text.split()[-1] for row in shown.tables[1].rows] == ["[n/a]"] * 3
    assert [row[6].text for row in shown.tables[1].rows] == ["n/a", "n/a", "–"]
    wide = {label: [y + 9 * (i > 1) for y in noise(i, 2)] for i, label in enumerate(LABELS)}
    write_study(tmp_path / "t", wide, factors=LABELS)
    sentences = factorial_report(compare(tmp_path / "t")).sentences
    assert sentences[0].endswith("; no contrast with the first level is significant after Holm's correction.")


def test_seeds_added_after_a_look_make_the_analysis_exploratory(tmp_path):
    crossed(tmp_path / "s", seeds=2)
    shown = factorial_report(crossed(tmp_path / "s", sweep="20260201T000000-bbbb"))
    assert shown.sentences[-1].endswith("for a single look, and the study was looked at 2, 5 seeds.")


def test_seeds_that_share_nothing_get_no_factorial_analysis(tmp_path):
    crossed(tmp_path / "s")
    study = replace(load_study(tmp_path / "s"), shared_seeds=False)
    shown = factorial_report(compare(study))
    assert (shown.tables, len(shown.sentences)) == ((), 1)
    assert shown.sentences[0].startswith("No factorial analysis: equal seeds")


def test_factors_that_do_not_tell_the_variants_apart_make_no_grid(tmp_path):
    factors = {label: {"attention": label[0], "width": label[1]} for label in ("a1", "a2", "b1", "b2", "b2 again")}
    write_study(tmp_path / "s", {label: noise(i, 3) for i, label in enumerate(factors)}, factors=factors)
    assert crossing(compare(tmp_path / "s")).factors == ()


def test_one_factor_gets_neither_table_nor_sentence(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 4), "roper": noise(1, 4)})
    shown = factorial_report(compare(tmp_path / "s"))
    assert (shown.tables, shown.sentences) == ((), ())


@pytest.mark.parametrize("complete", [True, False])
def test_the_report_shows_the_tables_or_the_reason(tmp_path, complete):
    changes = {} if complete else {("ro_per, 64", 2): ending(Status.failed)}
    crossed(tmp_path / "s", changes=changes)
    assert report.main([str(tmp_path / "s")]) == (0 if complete else 1)
    out = tmp_path / "s" / "report"
    for name in ("factorial", "contrasts"):
        assert (out / "tables" / f"{name}.csv").exists() == complete
    data = json.loads((out / "comparison.json").read_text())["factorial_analysis"]
    assert ({"factorial", "contrasts"} <= data.keys()) == complete
    for file in ("report.html", "report.md"):
        text = (out / file).read_text()
        assert "Factorial analysis" in text
        assert ("partial ω²" in text) == complete
        assert ("No factorial analysis" in text) != complete

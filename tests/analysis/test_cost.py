"""What a study cost, and the answers for the checklist of a paper."""

from dataclasses import replace

import pandas as pd
import pytest
from fake_study import changed, ending, never_started, noise, write_study

from ablate.records import Status
from analysis.checklist import checklist
from analysis.comparison import compare
from analysis.cost import cost_tables
from analysis.formatting import duration, scientific
from analysis.plain_csv import load_csv

BASE = noise(2, 6)
BETTER = [b - 0.05 + 0.003 * (-1) ** i for i, b in enumerate(BASE)]
NEAR = [b + 0.001 * (-1) ** i for i, b in enumerate(BASE)]


def sized(**values):
    """A change that gives a run parameters and tokens too."""
    return changed(parameters=1000, **values)


def comparison_of(path, values, changes=None, **question):
    given = {(label, seed): sized() for label, arm in values.items() for seed in range(len(arm))} | (changes or {})
    write_study(path / "s", values, changes=given)
    return compare(path / "s", **question)


def rows_of(table):
    return {row[0].text: {k: v for cell in row[1:] for k, v in cell.values.items()} for row in table.rows}


def test_time_tokens_and_flops_are_summed_over_every_run_that_was_started(tmp_path):
    def lost(run):
        return replace(ending(Status.failed)(sized()(run)), seconds=10.0, tokens=1600)

    found = comparison_of(tmp_path, {"rope": BASE, "roper": BETTER}, {("roper", 1): lost, ("roper", 2): never_started})
    rows = rows_of(cost_tables(found)[0])
    assert rows["rope"]["runs"] == 6
    assert rows["rope"]["tokens"] == 6 * 6400
    assert rows["rope"]["seconds"] == 6 * 25
    assert rows["rope"]["flops"] == 6 * 1000 * 6 * 6400
    assert rows["roper"]["runs"] == 5
    assert rows["roper"]["seconds"] == 4 * 25 + 10
    assert rows["roper"]["seconds_per_run"] == pytest.approx(22)
    assert rows["roper"]["tokens_per_second"] == pytest.approx((4 * 6400 + 1600) / 110)
    assert rows["roper"]["flops"] == 6 * 1000 * (4 * 6400 + 1600)
    assert rows["all"]["seconds"] == 260
    assert rows["all"]["runs"] == 11


def test_a_decided_comparison_costs_both_arms_and_the_study_is_divided_by_their_number(tmp_path):
    values = {"rope": BASE, "roper": BETTER, "near": NEAR, "noisy": noise(5, 6, sd=0.1)}
    variants, decided = cost_tables(comparison_of(tmp_path, values, margin=0.01))
    assert [[cell.text for cell in row[:3]] for row in decided.rows] == [
        ["roper against rope", "better", "12"],
        ["near against rope", "equivalent", "12"],
    ]
    assert all(row[3].values == {"seconds": 300} for row in decided.rows)
    # 24 runs of 25 s are 600 s, and 24 x 6 x 1000 x 6400 FLOPs
    assert "2 of 3 comparisons decided (better, worse or equivalent), at 300 s and 4.61e8 FLOPs" in variants.caption


def test_without_a_decision_there_is_no_price_of_one(tmp_path):
    tables = cost_tables(comparison_of(tmp_path, {"rope": BASE, "noisy": noise(5, 6, sd=0.1)}))
    assert len(tables) == 1
    assert "None of 1 comparison is decided" in tables[0].caption


def test_one_variant_has_a_cost_and_no_row_for_all(tmp_path):
    (table,) = cost_tables(comparison_of(tmp_path, {"rope": BASE}))
    assert [row[0].text for row in table.rows] == ["rope"]
    assert "comparison" not in table.caption


def csv_comparison(path):
    frame = pd.DataFrame({"variant": ["a"] * 3 + ["b"] * 3, "seed": [0, 1, 2] * 2, "loss": [1, 2, 3, 2, 3, 5]})
    frame.to_csv(path / "x.csv", index=False)
    return compare(load_csv(path / "x.csv", metric="loss"), "loss")


def test_a_study_that_recorded_no_time_has_no_table_of_cost(tmp_path):
    found = csv_comparison(tmp_path)
    assert cost_tables(found) == ()
    assert checklist(found)[1].text == "No time and no device was recorded with these runs."


def test_the_checklist_names_error_bars_variability_method_assumptions_and_n(tmp_path):
    significance, compute = checklist(comparison_of(tmp_path, {"rope": BASE, "roper": BETTER}))
    assert significance.title == "Experiment statistical significance"
    for part in (
        "± is between training runs and is a standard deviation, not a standard error",
        "n = 6 of 6 planned runs per variant (seeds 0–5); between seeds vary: init, data, dropout",
        "evaluated on the same 2048 sequences",
        "differences paired by seed; intervals: Student t, 95 %",
        "differences between runs of one seed are about normal",
        "the exact sign-flip test, Wilcoxon's test, Welch's test, unpaired",
        "No run is excluded.",
    ):
        assert part in significance.text
    assert compute.title == "Experiments compute resources"


def test_the_checklist_counts_failed_runs_into_the_compute_and_gives_the_peak_of_memory(tmp_path):
    changes = {
        ("rope", 0): sized(peak_memory_bytes=3 * 2**20),
        ("rope", 1): sized(peak_memory_bytes=2**20),
        ("roper", 1): ending(Status.failed),
    }
    significance, compute = checklist(comparison_of(tmp_path, {"rope": BASE, "roper": BETTER}, changes))
    assert "1 failed" in significance.text
    assert "Devices: cpu" in compute.text
    assert "at most 3 MiB" in compute.text
    assert "25 s per run on average, 300 s for 12 runs, those that failed or diverged included" in compute.text
    assert "trials before this one" in compute.text


def test_one_variant_and_a_log_scale_have_their_own_words(tmp_path):
    assert "independent runs" in checklist(comparison_of(tmp_path / "a", {"rope": BASE}))[0].text
    logs = checklist(comparison_of(tmp_path / "b", {"rope": BASE, "roper": BETTER}, transform="log"))[0].text
    assert "spread in parentheses" in logs


@pytest.mark.parametrize(
    ("seconds", "text"), [(28.44, "28.4 s"), (359, "359 s"), (360, "0.1 h"), (7200, "2 h"), (4.5e6, "1,250 h")]
)
def test_durations_are_seconds_and_from_six_minutes_on_hours(seconds, text):
    assert duration(seconds) == text


def test_large_numbers_are_shown_by_their_size():
    assert [scientific(x) for x in (0, 1, 1.58e11)] == ["0", "1.00e0", "1.58e11"]

"""Tables of scores at other lengths and along the positions."""

import numpy as np
import pytest
from fake_study import changed, ending, noise, write_study

from ablate.records import Status
from analysis.comparison import compare
from analysis.lengths import at_lengths, length_tables
from analysis.report import main

ARMS = {"rope": noise(0, 4), "none": noise(1, 4)}


def study(path, *, lengths=(128, 32), extra=None, changes=None):
    """A study whose run of value v has v + length / 1000 at each length, and accuracy at two spans of 128."""
    every = {
        (label, seed): changed(
            metrics={
                "eval/loss": value,
                **{f"eval/loss@{n}": value + n / 1000 for n in lengths},
                "eval/accuracy@128[1-64]": 1 - value,
                "eval/accuracy@128[65-128]": 0.5 - value / 10,
                **(extra or {}),
            }
        )
        for label, values in ARMS.items()
        for seed, value in enumerate(values)
    }
    write_study(path, ARMS, changes=every | (changes or {}))
    return path


def test_lengths_are_found_by_name_and_in_order():
    names = ["eval/loss", "eval/loss@64", "eval/loss@9", "eval/loss@9_se", "eval/accuracy@9", "eval/loss@9[1-3]"]
    assert at_lengths(names, "eval/loss") == {9: "eval/loss@9", 64: "eval/loss@64"}


def test_each_length_has_mean_and_deviation_of_the_finished_runs(tmp_path):
    lengths, positions = length_tables(compare(study(tmp_path / "s")))
    assert [column.title for column in lengths.columns] == ["variant", "trained length", "32", "128"]
    for row, values in zip(lengths.rows, ARMS.values(), strict=True):
        for cell, metric, plus in zip(
            row[1:], ("eval/loss", "eval/loss@32", "eval/loss@128"), (0, 0.032, 0.128), strict=True
        ):
            assert cell.values[metric] == pytest.approx(np.mean(values) + plus)
            assert cell.values[f"{metric} sd"] == pytest.approx(np.std(values, ddof=1))
            assert " ± " in cell.text
            assert "n =" not in cell.text
    assert [column.title for column in positions.columns] == ["variant", "1–64 of 128", "65–128 of 128"]
    assert positions.rows[1][2].values["eval/accuracy@128[65-128]"] == pytest.approx(0.5 - np.mean(ARMS["none"]) / 10)


def test_runs_without_a_value_are_counted(tmp_path):
    changes = {("rope", 0): ending(Status.diverged), ("none", 0): changed(metrics={"eval/loss": 0.4})}
    lengths, _ = length_tables(compare(study(tmp_path / "s", changes=changes)))
    assert lengths.rows[0][1].text.endswith("(n = 3)")
    assert "n =" not in lengths.rows[1][1].text
    assert lengths.rows[1][2].text.endswith("(n = 3)")


def test_a_study_without_other_lengths_has_no_such_table(tmp_path):
    write_study(tmp_path / "s", ARMS)
    assert length_tables(compare(tmp_path / "s")) == ()


def test_the_report_shows_both(tmp_path, capsys):
    main([str(study(tmp_path / "s"))])
    capsys.readouterr()
    report = tmp_path / "s" / "report"
    text = (report / "report.md").read_text()
    assert "## Other lengths" in text
    assert "## Accuracy by position" in text
    assert (report / "tables" / "lengths.tex").is_file()
    page = (report / "report.html").read_text()
    assert "<h2>Other lengths</h2>" in page

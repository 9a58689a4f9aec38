"""Steps to the threshold: Kaplan-Meier by hand, the log-rank test by its formula, the table and the figure."""

import json

import numpy as np
import pytest
from fake_study import changed, ending, never_started, planned, write_study
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from ablate.records import Status, StudyFolder
from analysis import report
from analysis.comparison import compare
from analysis.plots import success
from analysis.statistics.survival import Times, kaplan_meier, logrank_p, median_steps
from analysis.steps import steps_table, times_to_threshold
from analysis.tables import to_csv


def times(reached, censored=()):
    return Times(np.array(reached, dtype=float), np.array(censored, dtype=float))


def test_kaplan_meier_is_the_product_worked_out_by_hand():
    curve = kaplan_meier(times([10, 20, 20, 40], [20, 30]))
    assert list(curve.steps) == [10, 20, 30, 40]
    assert curve.share == pytest.approx([5 / 6, 5 / 6 * 3 / 5, 5 / 6 * 3 / 5, 0])
    assert median_steps(curve)[0] == 20


def test_the_interval_of_the_median_is_where_the_log_log_limits_cross_a_half():
    reached = np.arange(10, 210, 10)
    curve = kaplan_meier(times(reached))
    n = reached.size
    share = 1 - np.arange(1, n) / n
    variance = np.cumsum([1 / ((n - i) * (n - i - 1)) for i in range(n - 1)])
    limits = [share ** np.exp(sign * 1.959964 * np.sqrt(variance) / np.log(share)) for sign in (-1, 1)]
    low, high = sorted(int(reached[np.flatnonzero(limit <= 0.5)[0]]) for limit in limits)
    assert median_steps(curve) == (100, (low, high))


def test_without_a_run_that_reached_it_there_is_no_median():
    median, interval = median_steps(kaplan_meier(times([], [100, 100])))
    assert (median, interval) == (np.inf, (np.inf, np.inf))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12))
def test_without_censoring_the_median_is_that_of_the_sorted_steps(steps):
    assert median_steps(kaplan_meier(times(steps)))[0] == sorted(steps)[(len(steps) - 1) // 2]


def test_the_log_rank_p_is_that_of_the_formula():
    a, b = times([10, 20, 30, 35], [60]), times([40, 50, 55], [60, 60])
    observed = expected = variance = 0.0
    everything = [(t, 1, 0) for t in a.reached] + [(t, 1, 1) for t in b.reached]
    ends = everything + [(t, 0, 0) for t in a.censored] + [(t, 0, 1) for t in b.censored]
    for t, _, _ in everything:
        at_risk, in_a = sum(e[0] >= t for e in ends), sum(e[0] >= t and e[2] == 0 for e in ends)
        observed += t in a.reached
        expected += in_a / at_risk
        variance += in_a * (at_risk - in_a) / at_risk**2
    from scipy.stats import norm

    assert logrank_p(a, b) == pytest.approx(2 * norm.sf(abs(observed - expected) / np.sqrt(variance)))
    assert logrank_p(a, b) == pytest.approx(logrank_p(b, a))
    assert logrank_p(times([], [60]), times([], [60])) is None
    assert logrank_p(times([]), a) is None


SOLVED_AT = {"rope": [40, 60, 60, 80, None], "roper": [20, 20, 40, 40, 40]}


def study(path, solved_at=None, **more):
    """Runs whose evaluation loss falls under 0.1 at the given step, or never, evaluated every 20 steps to 100."""
    chosen = solved_at or SOLVED_AT
    final = {label: [0.9 if at is None else 0.05 for at in steps] for label, steps in chosen.items()}
    folder = write_study(path, final, **more)
    for label, steps in chosen.items():
        for seed, at in enumerate(steps):
            run = folder.run(planned(label).folder, seed)
            if run.path.is_dir():
                losses = [(s, 0.05 if at is not None and s >= at else 0.9) for s in range(0, 101, 20)]
                run.append_metrics([{"step": s, "tokens": s, "split": "eval", "loss": loss} for s, loss in losses])
    return path


def test_a_run_reaches_the_threshold_at_its_first_evaluation_there_and_is_else_censored_at_its_last(tmp_path):
    rope, roper = times_to_threshold(compare(study(tmp_path / "s"), threshold=0.1))
    assert (list(rope.times.reached), list(rope.times.censored)) == ([40, 60, 60, 80], [100])
    assert (list(roper.times.reached), list(roper.times.censored)) == ([20, 20, 40, 40, 40], [])


def test_runs_that_failed_are_censored_and_runs_that_have_not_ended_do_not_count(tmp_path):
    changes = {
        ("rope", 4): ending(Status.diverged),
        ("roper", 0): never_started,
        ("roper", 1): ending(Status.running),
        ("roper", 2): changed(status=Status.pruned),
    }
    rope, roper = times_to_threshold(compare(study(tmp_path / "s", changes=changes), threshold=0.1))
    assert (rope.times.n, list(rope.times.censored)) == (5, [100])
    assert list(roper.times.reached) == [40, 40]


def test_a_run_without_evaluations_is_censored_at_0(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": [0.05, 0.05]}, curves=True)
    folder.run(planned("rope").folder, 1).metrics.unlink()
    (rope,) = times_to_threshold(compare(tmp_path / "s", threshold=0.1))
    assert (list(rope.times.reached), list(rope.times.censored)) == ([80], [0])


def without(run, *steps):
    lines = run.metrics.read_text().splitlines(keepends=True)
    run.metrics.write_text("".join(line for line in lines if json.loads(line)["step"] not in steps))


def test_a_run_whose_log_lost_evaluations_counts_up_to_the_gap(tmp_path):
    """It may have reached the threshold in the gap: neither a later step nor its last one would be true."""
    path = study(tmp_path / "s")
    folder = StudyFolder(path)
    without(folder.run(planned("rope").folder, 1), 60)  # reached at 60, still there at 80
    without(folder.run(planned("rope").folder, 3), 20)  # reached at 80
    without(folder.run(planned("rope").folder, 4), 60, 80, 100)  # never reached; torn off
    without(folder.run(planned("roper").folder, 0), 40, 100)  # reached at 20, before the gap
    rope, roper = times_to_threshold(compare(path, threshold=0.1))
    assert (sorted(rope.times.reached), sorted(rope.times.censored)) == ([40, 60], [0, 40, 40])
    assert (sorted(roper.times.reached), list(roper.times.censored)) == ([20, 20, 40, 40, 40], [])


def test_a_step_that_one_log_alone_has_is_no_gap_of_the_others(tmp_path):
    path = study(tmp_path / "s")
    odd = {"step": 30, "tokens": 30, "split": "eval", "loss": 0.9}
    StudyFolder(path).run(planned("rope").folder, 0).append_metrics([odd])
    rope, _ = times_to_threshold(compare(path, threshold=0.1))
    assert (sorted(rope.times.reached), list(rope.times.censored)) == ([40, 60, 60, 80], [100])


def test_the_table_has_a_row_per_variant_and_numbers_behind_its_texts(tmp_path):
    table = steps_table(compare(study(tmp_path / "s"), threshold=0.1))
    assert [[cell.text for cell in row[:3]] for row in table.rows] == [["rope", "5", "4"], ["roper", "5", "5"]]
    assert [row[3].text.split(" [")[0] for row in table.rows] == ["60", "40"]
    assert table.rows[0][4].text == "–"
    rope, roper = times_to_threshold(compare(tmp_path / "s", threshold=0.1))
    assert table.records()[1]["p_holm"] == pytest.approx(logrank_p(rope.times, roper.times))
    assert "eval/loss ≤ 0.1" in table.caption
    assert "inf" not in to_csv(table)


def test_a_variant_that_never_reaches_it_says_so(tmp_path):
    table = steps_table(compare(study(tmp_path / "s", {"rope": [40, 40, 60], "none": [None] * 3}), threshold=0.1))
    assert [row[3].text.split(" [")[0] for row in table.rows] == ["40", "not reached"]
    assert json.loads(json.dumps(table.records()[1], allow_nan=False))["median_steps"] is None


def test_without_a_threshold_or_a_curve_there_is_no_table_and_no_figure(tmp_path):
    plain = compare(study(tmp_path / "s"))
    write_study(tmp_path / "t", {"rope": [0.05]})
    for comparison in (plain, compare(tmp_path / "t", threshold=0.1)):
        assert steps_table(comparison).rows == []
        assert success.prepare(comparison).empty


def test_the_figure_shows_one_minus_kaplan_meier(tmp_path):
    comparison = compare(study(tmp_path / "s"), threshold=0.1)
    numbers = success.prepare(comparison)
    rope = numbers[numbers["label"] == "rope"]
    assert list(rope["step"]) == [0, 40, 60, 80, 100]
    assert list(rope["share"]) == pytest.approx([0, 0.2, 0.6, 0.8, 0.8])
    assert list(rope["censored"]) == [0, 0, 0, 0, 1]
    inner = rope[rope["step"] == 60].iloc[0]
    assert 0 < inner["low"] < inner["share"] < inner["high"] < 1
    figure = Figure()
    success.draw(numbers, figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["rope (4 of 5)", "roper (5 of 5)"]
    assert figure.axes[0].get_title(loc="left") or figure.axes[0].get_title() == "eval/loss ≤ 0.1"


def test_the_report_has_the_table_and_the_figure_when_a_threshold_is_declared(tmp_path):
    out = study(tmp_path / "s") / "report"
    assert report.main([str(tmp_path / "s"), "--threshold", "0.1"]) == 0
    assert {f"success.{e}" for e in ("png", "svg", "pdf", "csv")} <= {p.name for p in (out / "figures").iterdir()}
    assert (out / "tables" / "steps_to_threshold.tex").is_file()
    for name in ("report.md", "report.html"):
        text = (out / name).read_text()
        assert "Steps to the threshold" in text
        assert "success" in text
    assert report.main([str(tmp_path / "s"), "--out", str(tmp_path / "plain")]) == 0
    assert not (tmp_path / "plain" / "tables" / "steps_to_threshold.md").exists()
    assert not (tmp_path / "plain" / "figures" / "success.png").exists()

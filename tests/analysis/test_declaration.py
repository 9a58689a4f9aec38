"""What a user declares of the metric: the scale on which it is compared, and the threshold that solves the task."""

import json
import math

import numpy as np
import pytest
from fake_study import changed, noise, study_of, write_study
from scipy import stats

from analysis import report
from analysis.captions import caption
from analysis.compare import main as compare_main
from analysis.comparison import compare
from analysis.comparison_table import comparison_table
from analysis.plots.paired_difference import prepare
from analysis.scale import SCALES
from analysis.statistics.verdict import Verdict
from analysis.study import StudyError
from analysis.wording import beside, verdict_sentences

BASE = noise(2, 8)
HALF = [b * f for b, f in zip(BASE, (0.5, 0.52, 0.49, 0.51, 0.5, 0.48, 0.53, 0.5), strict=True)]

# The scale


def test_on_the_log_scale_the_statistics_are_those_of_the_logarithms():
    result = compare(study_of({"rope": BASE, "roper": HALF}), transform="log").result("roper")
    expected = stats.ttest_rel(np.log(HALF), np.log(BASE))
    assert result.against.difference.p == pytest.approx(expected.pvalue)
    assert result.against.difference.interval == pytest.approx(tuple(expected.confidence_interval()))
    assert math.exp(result.summary.mean) == pytest.approx(stats.gmean(HALF))
    assert result.against.judgement.verdict == Verdict.better


def test_ratios_are_shown_and_the_caption_says_so():
    comparison = compare(study_of({"rope": BASE, "roper": HALF}), transform="log", margin="10%")
    table = comparison_table(comparison)
    titles = [column.title for column in table.columns]
    assert titles[2] == "geom. mean (log SD)"
    assert titles[4] == "ratio to baseline [95 % CI]"
    ratio = stats.gmean(HALF) / stats.gmean(BASE)
    assert table.rows[1][4].text.startswith(f"{ratio:.3f} [0.4")
    assert table.rows[1][2].text.startswith(f"{stats.gmean(HALF):.3f} (")
    assert f"ratio of geometric means {ratio:.3f}, 95 % interval [" in verdict_sentences(comparison)[0]
    assert "by a meaningful margin" in verdict_sentences(comparison)[0]
    assert "Statistics on natural logarithms, shown back-transformed" in caption(comparison)
    assert "margin of interest a factor of 1.1" in caption(comparison)
    assert "detectable with 80 % power about a factor of 1.0" in beside(comparison, comparison.result("roper").against)
    assert set(prepare(comparison)["metric"]) == {"log eval/loss"}


def test_the_unit_of_the_metric_changes_no_ratio():
    scaled = {"rope": [1000 * b for b in BASE], "roper": [1000 * h for h in HALF]}
    one, two = (compare(study_of(arms), transform="log") for arms in ({"rope": BASE, "roper": HALF}, scaled))
    assert one.result("roper").against.difference.mean == pytest.approx(two.result("roper").against.difference.mean)
    assert one.result("roper").against.judgement == two.result("roper").against.judgement


def test_a_margin_of_a_ratio_is_in_per_cent():
    study = study_of({"rope": BASE, "roper": HALF})
    assert compare(study, transform="log", margin="2%").question.margin == pytest.approx(math.log(1.02))
    with pytest.raises(StudyError, match=r"margin '0\.01' must be in per cent \(2%\) with transform log"):
        compare(study, transform="log", margin=0.01)


def test_the_logarithm_of_what_is_not_positive_is_refused():
    with pytest.raises(StudyError, match="transform log needs positive values, and a run has eval/loss = 0"):
        compare(study_of({"rope": [0.0, 0.1, 0.2]}), transform="log")


def test_an_unknown_transform_lists_those_there_are():
    with pytest.raises(StudyError, match="transform 'sqrt' is unknown; there are: none, log"):
        compare(study_of({"rope": BASE}), transform="sqrt")


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_every_scale_leads_back_to_the_unit_of_the_metric(scale):
    assert [scale.back(scale.forward(x)) for x in (0.25, 1.0, 40.0)] == pytest.approx([0.25, 1.0, 40.0])
    assert scale.back(scale.forward(math.inf)) == math.inf


def test_the_evaluation_error_is_compared_on_the_scale_of_the_comparison(tmp_path):
    big = {("rope", s): changed(metrics={"eval/loss": 100 * BASE[s], "eval/loss_se": 0.01}) for s in range(8)}
    write_study(tmp_path / "s", {"rope": BASE}, changes=big)
    (result,) = compare(tmp_path / "s", transform="log").results
    assert not any("evaluation error" in flag for flag in result.flags)


def test_the_commands_take_the_transform_and_the_report_says_how_to_write_it_again(tmp_path, capsys):
    write_study(tmp_path / "s", {"rope": BASE, "roper": HALF})
    assert compare_main([str(tmp_path / "s"), "roper", "rope", "--transform", "log", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["transform"], data["threshold"]) == ("log", None)
    assert data["ratio"] == pytest.approx(stats.gmean(HALF) / stats.gmean(BASE))
    assert data["geometric_mean"] == pytest.approx(stats.gmean(HALF))
    assert data["ratio_ci"] == pytest.approx([math.exp(end) for end in data["delta_ci"]])
    report.main([str(tmp_path / "s"), "--transform", "log", "--threshold", "0.3"])
    assert "copy_repeat --transform log --threshold 0.3" in (tmp_path / "s" / "report" / "report.md").read_text()


# The threshold


@pytest.mark.parametrize("threshold", ["high", "nan", "inf", ""])
def test_a_threshold_that_is_no_number_is_refused(threshold):
    with pytest.raises(StudyError, match="is not a finite number"):
        compare(study_of({"rope": BASE}), threshold=threshold)


EASY = [0.02, 0.03, 0.01, 0.025, 0.015, 0.02]
HARD = [0.9, 0.95, 0.85, 0.92, 0.88, 0.91]


def test_a_run_at_or_beyond_the_threshold_has_solved_the_task_in_the_direction_of_the_metric():
    study = study_of({"rope": [0.1, 0.2, 0.3, None]})
    assert compare(study, threshold=0.2).baseline.arm.solved == (0, 1)
    assert compare(study, threshold=0.2, direction="higher").baseline.arm.solved == (1, 2)
    assert compare(study, threshold=0.2, transform="log").baseline.arm.solved == (0, 1)
    assert compare(study).baseline.arm.solved == (0, 1, 2)


def test_success_has_a_rate_and_the_wilson_interval():
    arm = compare(study_of({"rope": [*EASY[:4], 0.5, None]}), threshold="0.1").baseline.arm
    expected = stats.binomtest(4, 6).proportion_ci(method="wilson")
    assert arm.success_rate == pytest.approx(4 / 6)
    assert tuple(arm.success_interval) == pytest.approx((expected.low, expected.high))


def test_arms_of_which_one_solves_and_one_does_not_are_unstable_and_lead_with_the_rates():
    comparison = compare(study_of({"rope": HARD, "roper": EASY}), threshold=0.1)
    against = comparison.result("roper").against
    assert against.judgement.verdict == Verdict.unstable
    assert verdict_sentences(comparison)[0].startswith(
        "roper: unstable against rope (success rates differ); 6 of 6 seeds solved it (≤ 0.1) against 0 of 6 "
        "(McNemar p = .031); on the runs that finished, mean difference"
    )
    assert "a run solves the task with loss ≤ 0.1" in caption(comparison)


def test_equal_rates_between_0_and_1_are_the_flag_of_two_groups():
    mixed = {"rope": [*EASY[:3], *HARD[:3]], "roper": [*HARD[:3], *EASY[:3]]}
    comparison = compare(study_of(mixed), threshold=0.1)
    judgement = comparison.result("roper").against.judgement
    assert (judgement.verdict, judgement.qualifier) == (
        Verdict.unstable,
        "seeds that solve the task and seeds that do not in roper, on different sides of rope and "
        "seeds that solve the task and seeds that do not in rope, on different sides of roper",
    )
    assert "3 of 6 runs solve the task, the others do not" in comparison.baseline.flags


@pytest.mark.parametrize("threshold", [0.001, 2.0])
def test_a_threshold_that_all_or_no_runs_reach_leaves_the_verdict_on_the_mean(threshold):
    study = study_of({"rope": HARD, "roper": EASY})
    plain, declared = (compare(study, threshold=t).result("roper").against for t in (None, threshold))
    assert plain.judgement == declared.judgement
    assert plain.judgement.verdict == Verdict.better


def test_unpaired_success_is_compared_by_boschloo():
    study = study_of({"rope": HARD, "roper": EASY}, shared_seeds=False)
    against = compare(study, threshold=0.1).result("roper").against
    assert against.success.p(paired=False) == pytest.approx(stats.boschloo_exact([[6, 0], [0, 6]]).pvalue)


def test_the_success_column_is_there_only_with_a_threshold_or_a_failure():
    def column(arms, **more):
        table = comparison_table(compare(study_of(arms), **more))
        found = [i for i, c in enumerate(table.columns) if "solved" in c.title or "finished" in c.title]
        return [table.columns[i].title for i in found], [row[i].text for row in table.rows for i in found]

    assert column({"rope": EASY}) == ([], [])
    assert column({"rope": [*EASY[:5], None]}) == (["finished [95 % CI]"], ["5/6 [0.44, 0.97]"])
    assert column({"rope": EASY}, threshold=0.015) == (["solved (≤ 0.015) [95 % CI]"], ["2/6 [0.10, 0.70]"])


def test_comparison_json_holds_the_successes(tmp_path, capsys):
    write_study(tmp_path / "s", {"rope": HARD, "roper": EASY})
    assert compare_main([str(tmp_path / "s"), "roper", "rope", "--threshold", "0.1", "--json"]) == 13
    data = json.loads(capsys.readouterr().out)
    assert (data["threshold"], data["solved"], data["success_rate"]) == (0.1, 6, 1.0)
    assert data["success_ci"] == pytest.approx([0.6097, 1.0], abs=1e-4)
    assert data["success_p"] == pytest.approx(2 / 2**6)

"""From a study to verdicts: the edge cases, the invariances, the looks, and the published study as a golden check."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_study import (
    FIRST_SWEEP,
    changed,
    damage,
    ending,
    never_started,
    noise,
    planned,
    record,
    shift_source,
    study_of,
    write_run,
    write_study,
)
from scipy import stats
from statsmodels.stats.power import TTestPower

from ablate.records import RunFolder, Status
from analysis import question
from analysis.captions import caption
from analysis.comparison import compare
from analysis.load import load_study
from analysis.plain_csv import load_csv
from analysis.results import MORE_THAN_200
from analysis.statistics.paired import paired_difference
from analysis.statistics.power import seeds_needed
from analysis.statistics.sequential import anytime_interval
from analysis.statistics.verdict import Verdict
from analysis.study import StudyError
from analysis.wording import beside, flag_lines, headline, notes, verdict_sentences

GOLDEN = Path(__file__).parents[1] / "golden" / "labml_copy_repeat.csv"
SHARED = Path(__file__).parents[3] / "shared" / "golden" / "labml_copy_repeat.csv"


def verdict(comparison, label):
    return comparison.result(label).against.judgement.verdict


def flags(comparison, label):
    return " | ".join(comparison.result(label).flags)


def shifted(base, shift, spread=0.004, seed=9):
    return [
        b + shift + float(e)
        for b, e in zip(base, np.random.default_rng(seed).normal(0, spread, len(base)), strict=True)
    ]


BASE = noise(2, 10)


@pytest.mark.parametrize("path", [GOLDEN, SHARED], ids=["committed", "shared"])
def test_the_published_study_is_inconclusive(path):
    if not path.exists():
        pytest.skip("the shared copy is not here")
    comparison = compare(load_csv(path, metric="loss", seed_column="run", shared_seeds=False), "loss")
    rope, roper = comparison.result("rope").summary, comparison.result("roper").summary
    against = comparison.result("roper").against
    d = against.difference
    assert (rope.mean, roper.mean) == pytest.approx((0.3302, 0.3185), abs=6e-5)
    assert (rope.sd, roper.sd) == pytest.approx((0.0174, 0.0044), abs=6e-5)
    assert (rope.median, roper.median) == pytest.approx((0.3256, 0.3200), abs=6e-5)
    assert (rope.iqm, roper.iqm) == pytest.approx((0.3265, 0.3196), abs=6e-5)
    dropped = [float(np.sort(comparison.result(label).arm.sample)[:-1].mean()) for label in ("rope", "roper")]
    assert dropped == pytest.approx([0.3264, 0.3180], abs=6e-5)
    assert not d.paired
    assert d.mean == pytest.approx(-0.0116, abs=6e-5)
    assert d.interval == pytest.approx((-0.0243, 0.0010), abs=6e-5)
    assert d.p == pytest.approx(0.068, abs=5e-4)
    assert d.superiority == pytest.approx(0.745)
    assert against.judgement.verdict == Verdict.inconclusive
    assert seeds_needed(d.sd, d.mean, paired=False) == 20
    (tail,) = [flag for flag in comparison.result("roper").flags if "tail" in flag]
    assert tail.startswith("slow tail of rope: 3 of 10 runs above 0.3291, the fence of roper; spreads differ (")


def test_every_variant_is_a_row_and_the_first_is_the_baseline():
    comparison = compare(study_of({"rope": BASE, "roper": shifted(BASE, -0.05), "none": shifted(BASE, 0.5)}))
    assert [result.variant.label for result in comparison.results] == ["rope", "roper", "none"]
    assert comparison.baseline.variant.label == "rope"
    assert (verdict(comparison, "roper"), verdict(comparison, "none")) == (Verdict.better, Verdict.worse)


def test_p_is_corrected_over_all_comparisons_with_the_baseline():
    arms = {"a": BASE, "b": shifted(BASE, -0.003, seed=1), "c": shifted(BASE, 0.0, seed=2)}
    comparison = compare(study_of(arms))
    raw = sorted(against.difference.p for _, against in comparison.others)
    adjusted = sorted(against.p_holm for _, against in comparison.others)
    assert adjusted == pytest.approx([min(1, 2 * raw[0]), max(min(1, 2 * raw[0]), raw[1])])


def test_a_bounded_metric_where_higher_is_better_is_the_mirror_of_its_error(tmp_path):
    accuracy = {"rope": [1 - x for x in BASE], "roper": [1 - x for x in shifted(BASE, -0.05)]}
    write_study(tmp_path / "s", accuracy, metric="eval/accuracy")
    mirror = compare(load_study(tmp_path / "s"), "eval/accuracy").result("roper")
    plain = compare(study_of({"rope": BASE, "roper": shifted(BASE, -0.05)})).result("roper")
    assert mirror.against.judgement.verdict == plain.against.judgement.verdict == Verdict.better
    assert mirror.against.difference.wins == plain.against.difference.wins
    assert mirror.against.difference.mean == pytest.approx(-plain.against.difference.mean)


def test_the_interval_of_a_bounded_metric_stays_within_its_limits(tmp_path):
    write_study(tmp_path / "s", {"rope": [1.0, 0.99, 0.9], "roper": [1.0, 1.0, 1.0]}, metric="eval/accuracy")
    comparison = compare(load_study(tmp_path / "s"), "eval/accuracy")
    assert comparison.result("rope").summary.interval.high == 1.0
    assert "seed is not applied" not in flags(comparison, "roper")


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_seeds_are_insufficient_and_have_no_interval(n):
    comparison = compare(study_of({"rope": BASE[:n], "roper": BASE[:n]}))
    result = comparison.result("roper")
    assert verdict(comparison, "roper") == Verdict.insufficient
    assert result.summary.interval is None
    assert result.against.difference.interval is None
    assert f"{n} pair" in verdict_sentences(comparison)[0]


def test_missing_seeds_leave_the_pairs_that_are_there_and_are_listed(tmp_path):
    changes = {("roper", seed): ending(Status.failed) for seed in (1, 4)} | {("rope", 7): never_started}
    write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, -0.05)}, changes=changes)
    comparison = compare(tmp_path / "s")
    against = comparison.result("roper").against
    assert against.pairs.seeds == (0, 2, 3, 5, 6, 8, 9)
    assert against.pairs.dropped == (1, 4, 7)
    assert "seeds without a pair: 1, 4, 7" in flags(comparison, "roper")
    assert against.welch is not None


def test_few_lost_seeds_need_no_second_test(tmp_path):
    write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, -0.05)}, changes={("rope", 7): never_started})
    assert compare(tmp_path / "s").result("roper").against.welch is None


def test_without_common_seeds_the_arms_are_compared_unpaired(tmp_path):
    rest = {("rope", s): ending(Status.pruned) for s in range(5, 10)}
    rest |= {("roper", s): ending(Status.pruned) for s in range(5)}
    write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, -0.2)}, changes=rest)
    comparison = compare(tmp_path / "s")
    assert not comparison.result("roper").against.difference.paired
    assert "unpaired" in flags(comparison, "roper")
    assert verdict(comparison, "roper") == Verdict.better
    assert "unpaired (Welch)" in caption(comparison)
    assert "unpaired (Welch), 5 and 5 runs" in verdict_sentences(comparison)[0]


def test_a_crash_a_nan_a_cut_file_and_a_running_run_are_counted_and_never_averaged(tmp_path):
    changes = {
        ("roper", 0): ending(Status.failed),
        ("roper", 1): changed(metrics={"eval/loss": float("nan")}),
        ("roper", 3): ending(Status.running),
    }
    folder = write_study(tmp_path / "s", {"rope": BASE[:5], "roper": [9.0] * 4 + [0.4]}, changes=changes)
    damage(folder, "roper", 2)
    result = compare(tmp_path / "s").result("roper")
    assert dict(result.counts) == {"failed": 1, "diverged": 1, "damaged": 1, "running": 1, "ok": 1}
    assert result.summary.mean == 0.4
    assert result.summary.sd is None
    assert result.against.judgement.verdict == Verdict.insufficient


def test_a_variant_of_which_all_seeds_diverged_has_no_mean(tmp_path):
    changes = {("roper", seed): ending(Status.diverged) for seed in range(5)}
    write_study(tmp_path / "s", {"rope": BASE[:5], "roper": BASE[:5]}, changes=changes)
    comparison = compare(tmp_path / "s")
    assert comparison.result("roper").summary.mean is None
    assert verdict(comparison, "roper") == Verdict.unstable
    assert "all 5 diverged" in verdict_sentences(comparison)[0]
    assert "0 of 5 seeds succeeded against 5 of 5 (McNemar p = .062)" in verdict_sentences(comparison)[0]


def test_a_baseline_of_which_all_seeds_diverged_is_the_mirror(tmp_path):
    changes = {("rope", seed): ending(Status.diverged) for seed in range(6)}
    write_study(tmp_path / "s", {"rope": BASE[:6], "roper": BASE[:6]}, changes=changes)
    comparison = compare(tmp_path / "s")
    assert verdict(comparison, "roper") == Verdict.unstable
    assert verdict_sentences(comparison)[0] == (
        "roper: unstable against rope (all 6 seeds of the baseline failed); 6 of 6 seeds succeeded against 0 of 6 "
        "(McNemar p = .031)."
    )


def test_too_few_pairs_because_of_failures_leave_the_success_rates_to_be_told(tmp_path):
    changes = {("roper", seed): ending(Status.diverged) for seed in range(8)}
    write_study(tmp_path / "s", {"rope": BASE, "roper": BASE}, changes=changes)
    comparison = compare(tmp_path / "s")
    assert verdict(comparison, "roper") == Verdict.insufficient
    assert "2 of 10 seeds succeeded against 10 of 10 (McNemar p = .008)" in verdict_sentences(comparison)[0]


def test_a_value_whose_square_would_overflow_is_that_of_a_run_that_diverged(tmp_path):
    write_study(tmp_path / "s", {"rope": BASE[:5], "roper": [1e200, *BASE[1:5]]})
    result = compare(tmp_path / "s").result("roper")
    assert result.counts["diverged"] == 1
    assert "too large" in result.arm.outcomes[0].reason


def test_an_unstable_sentence_leads_with_the_success_rates(tmp_path):
    changes = {("roper", seed): ending(Status.diverged) for seed in (0, 1)}
    write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, -0.05)}, changes=changes)
    sentence = verdict_sentences(compare(tmp_path / "s"))[0]
    assert "8 of 10 seeds succeeded against 10 of 10 (McNemar p = .500)" in sentence
    assert "without a verdict on the mean" in sentence


def test_a_difference_that_does_not_vary_is_called_out():
    comparison = compare(study_of({"rope": BASE, "copy": BASE, "shift": [b + 0.25 for b in BASE]}))
    assert [verdict(comparison, label) for label in ("copy", "shift")] == [Verdict.inconclusive] * 2
    assert "check that the factor takes effect and the seed reaches the generator" in flags(comparison, "copy")
    assert "check that the factor" not in flags(comparison, "shift")
    assert "the same difference for every seed" in flags(comparison, "shift")


def test_an_arm_with_one_value_for_all_seeds_is_called_out():
    assert "the seed is not applied" in flags(compare(study_of({"rope": BASE, "stuck": [0.4] * 10})), "stuck")


def test_two_groups_of_runs_are_unstable_only_on_different_sides_of_the_other_arm():
    split = [0.1, 0.11, 0.12, 0.13, 0.1, 0.12, 0.9, 0.91, 0.92, 0.93]
    far = [b + 5 for b in BASE]
    comparison = compare(study_of({"rope": BASE, "split": split, "far": far}))
    assert verdict(comparison, "split") == Verdict.unstable
    against = comparison.result("split").against
    assert against.judgement.qualifier == "two groups of runs in split, on different sides of rope"
    assert "two groups of runs: 6 runs around 0.11 and 4 runs around 0.92" in flags(comparison, "split")
    beside_far = compare(study_of({"far": far, "split": split}))
    assert verdict(beside_far, "split") == Verdict.better
    assert "two groups of runs" in flags(beside_far, "split")


def test_the_evaluation_error_is_compared_with_the_spread(tmp_path):
    noisy = {("rope", s): changed(metrics={"eval/loss": BASE[s], "eval/loss_se": 0.1}) for s in range(10)}
    write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, 0.1)}, changes=noisy)
    comparison = compare(tmp_path / "s")
    assert "evaluate on more sequences" in flags(comparison, "rope")
    assert "evaluate on more sequences" not in flags(comparison, "roper")


def test_different_step_budgets_are_labelled(tmp_path):
    longer = {("roper", s): changed(steps_planned=200, steps_done=200) for s in range(10)}
    write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, -0.1)}, changes=longer)
    assert "different step budgets: 100 and 200 steps" in flags(compare(tmp_path / "s"), "roper")


def test_pruned_runs_are_listed_and_excluded(tmp_path):
    changes = {("roper", s): ending(Status.pruned) for s in range(7, 10)}
    write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, -0.05)}, changes=changes)
    comparison = compare(tmp_path / "s")
    assert comparison.result("roper").counts["pruned"] == 3
    assert verdict(comparison, "roper") == Verdict.better


def test_a_rerun_that_changed_a_result_is_flagged_and_the_newest_stands(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, -0.05)})
    cell = planned("roper")
    write_run(RunFolder(folder.run(cell.folder, 3).previous / "20260101T000000"), record(cell, 3, 9.9))
    comparison = compare(tmp_path / "s")
    assert "a rerun changed the result of seed 3" in flags(comparison, "roper")
    assert comparison.result("roper").summary.high < 1
    assert "replaced by a rerun: roper, seed 3" in notes(comparison.study)[0]


def test_mixed_code_is_marked_on_every_row_and_in_the_caption(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, -0.05)})
    shift_source(folder)
    comparison = compare(tmp_path / "s")
    assert all("mixed code" in result.flags for result in comparison.results)
    assert caption(comparison).startswith("MIXED CODE")


def test_a_result_that_hangs_on_one_seed_is_fragile():
    differences = (-0.1, -0.1, -0.12, -0.09, -0.11, -0.1, -0.08, 0.13)
    moved = [b + d for b, d in zip(BASE, differences, strict=False)]
    assert "fragile" in flags(compare(study_of({"rope": BASE[:8], "roper": moved})), "roper")
    fewer = compare(study_of({"rope": BASE[2:8], "roper": moved[2:]}))
    assert "fragile" not in flags(fewer, "roper"), "with few pairs nearly every result hangs on one seed"


def test_what_one_seed_can_change_is_the_corrected_verdict():
    near = [b + d for b, d in zip(BASE, noise(15, 10, mean=-0.012, sd=0.008), strict=True)]
    others = {f"x{i}": shifted(BASE, 0.0, spread=0.02, seed=i) for i in range(6)}
    alone, family = (
        compare(study_of({"rope": BASE, "near": near})),
        compare(study_of({"rope": BASE, "near": near} | others)),
    )
    assert (verdict(alone, "near"), verdict(family, "near")) == (Verdict.better, Verdict.better)
    assert "fragile" not in flags(alone, "near")
    assert "fragile: leaving out one seed changes significance" in flags(family, "near")


def test_runs_that_have_not_ended_are_flagged(tmp_path):
    changes = {("roper", 8): never_started, ("roper", 9): ending(Status.running)}
    write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, -0.05)}, changes=changes)
    assert "without an outcome so far: 1 missing, 1 running" in flags(compare(tmp_path / "s"), "roper")


def test_a_flag_of_several_variants_is_said_once_and_verdicts_are_counted():
    arms = {"rope": BASE, "x": [b + 0.25 for b in BASE], "y": [b + 0.5 for b in BASE], "z": shifted(BASE, -0.1)}
    comparison = compare(study_of(arms))
    assert [line[:30] for line in flag_lines(comparison) if "same diff" in line] == ["x, y: the same difference for "]
    assert headline(comparison) == "1 better, 2 inconclusive"


@pytest.mark.parametrize(
    ("metric", "values", "limits"),
    [
        ("eval/accuracy", [0.2, 1.0], (0.0, 1.0)),
        ("eval/accuracy", [20.0, 99.0], (-np.inf, np.inf)),
        ("eval/loss", [0.2, 1.4], (0.0, np.inf)),
        ("eval/loss", [-0.2, 1.4], (-np.inf, np.inf)),
        ("margin", [0.2, 1.4], (-np.inf, np.inf)),
    ],
)
def test_the_limits_of_a_metric_come_from_its_name_and_its_values(metric, values, limits):
    assert question.limits_of(metric, values) == limits


def test_in_bold_is_all_that_cannot_be_told_from_the_best():
    arms = {"a": BASE, "b": shifted(BASE, -0.0005, seed=4), "c": shifted(BASE, 0.3)}
    assert [result.among_best for result in compare(study_of(arms)).results] == [True, True, False]


def test_in_bold_no_run_number_pairs_arms_that_share_no_seeds():
    values = {"a": noise(1, 8), "b": [v + 0.01 for v in noise(2, 8)]}
    bold = []
    for order in (range(8), (3, 1, 7, 0, 5, 2, 6, 4)):
        study = study_of({"a": values["a"], "b": [values["b"][i] for i in order]}, shared_seeds=False)
        bold.append([result.among_best for result in compare(study).results])
    assert bold[0] == bold[1]


def test_arms_that_are_each_constant_are_told_apart():
    arms = {"a": [0.0] * 6, "b": [1.0] * 6}
    assert [result.among_best for result in compare(study_of(arms)).results] == [True, False]


def test_a_metric_at_its_limits_is_compared_by_success(tmp_path):
    write_study(tmp_path / "s", {"rope": [0.0] * 10, "roper": [1.0] * 10}, metric="eval/accuracy")
    comparison = compare(tmp_path / "s", "eval/accuracy")
    against = comparison.result("roper").against
    assert against.judgement.verdict is Verdict.unstable
    assert against.success.p(paired=True) == pytest.approx(2 / 2**10)
    assert "10 of 10 seeds solved it" in verdict_sentences(comparison)[0]
    assert "identical" not in flags(comparison, "roper")


# How often the data were looked at


def looked(path, looks, seeds=10, **more):
    arms = {"rope": BASE[:seeds], "roper": shifted(BASE[:seeds], -0.05)}
    write_study(path, arms, looks=looks, **more)
    return compare(path)


def test_one_look_at_the_planned_seeds_leaves_the_plain_interval(tmp_path):
    comparison = looked(tmp_path / "s", [20, 20])
    against = comparison.result("roper").against
    assert comparison.looks == [10]
    assert against.looks == ()
    assert against.difference == paired_difference(against.pairs.variant, against.pairs.baseline)


def test_one_look_before_the_planned_seeds_makes_the_anytime_interval_primary(tmp_path):
    changes = {(label, seed): never_started for label in ("rope", "roper") for seed in range(5, 10)}
    comparison = looked(tmp_path / "s", [10], changes=changes)
    against = comparison.result("roper").against
    assert against.looks == (5,)
    expected = anytime_interval(against.pairs.variant - against.pairs.baseline)
    assert against.difference.interval == pytest.approx(expected)
    assert "looked at 5 seeds: anytime-valid paired t" in flags(comparison, "roper")
    assert "anytime-valid" in caption(comparison)


def test_a_crashed_variant_is_no_early_look_at_the_others(tmp_path):
    arms = {"rope": BASE, "roper": shifted(BASE, -0.05), "dead": BASE}
    changes = {("dead", seed): ending(Status.failed) for seed in range(10)}
    write_study(tmp_path / "s", arms, changes=changes, looks=[30])
    assert compare(tmp_path / "s").result("roper").against.looks == ()


def test_looks_on_the_way_to_the_planned_seeds_leave_the_plain_test(tmp_path):
    comparison = looked(tmp_path / "s", [10, 20])
    against = comparison.result("roper").against
    assert comparison.looks == [5, 10]
    assert against.looks == ()
    assert against.difference.interval == paired_difference(against.pairs.variant, against.pairs.baseline).interval
    text = caption(comparison)
    assert "Looked at 5, 10 of 10 planned seeds." in text
    assert "Student t, 95 %" in text


def test_seeds_added_after_a_look_make_the_anytime_interval_primary(tmp_path):
    looked(tmp_path / "s", [10], seeds=5)
    comparison = looked(tmp_path / "s", [20], sweep="20260201T000000-bbbb")
    against = comparison.result("roper").against
    assert comparison.looks == [5, 10]
    expected = anytime_interval(against.pairs.variant - against.pairs.baseline)
    assert against.difference.interval == pytest.approx(expected)
    assert "looked at 5, 10 seeds: anytime-valid paired t" in flags(comparison, "roper")


def test_reading_from_python_while_seeds_are_pending_is_a_look_like_any_other(tmp_path):
    """Compared in Python at 5 of 5, then five seeds more: the second comparison knows of the first."""
    looked(tmp_path / "s", [], seeds=5)
    assert compare(tmp_path / "s").result("roper").against.looks == ()
    assert looked(tmp_path / "s", [], sweep="20260201T000000-bbbb").result("roper").against.looks == (5, 10)
    never = {(label, seed): never_started for label in ("rope", "roper") for seed in range(6, 10)}
    pending = looked(tmp_path / "t", [], changes=never).result("roper").against
    assert pending.looks == (6,)


def test_looks_of_earlier_sweeps_at_the_same_cells_count(tmp_path):
    looked(tmp_path / "s", [10], seeds=5)
    assert looked(tmp_path / "s", [20], sweep="20260201T000000-bbbb").looks == [5, 10]
    first = compare(load_study(tmp_path / "s", FIRST_SWEEP))
    assert first.looks == [5]
    assert first.result("roper").against.looks == ()


def test_looks_at_other_cells_do_not_count(tmp_path):
    write_study(tmp_path / "s", {"rope": BASE[:5], "none": noise(7, 5)}, looks=[10])
    assert looked(tmp_path / "s", [20], sweep="20260201T000000-bbbb").looks == [10]


def test_an_unrecorded_look_after_a_recorded_one_counts_as_another(tmp_path):
    looked(tmp_path / "s", [10], seeds=5)
    assert looked(tmp_path / "s", [], sweep="20260201T000000-bbbb").result("roper").against.looks == (5, 10)


# Invariances


def test_the_order_of_rows_and_variants_changes_no_number():
    arms = {"rope": BASE, "roper": shifted(BASE, -0.02), "none": shifted(BASE, 0.3)}
    study = study_of(arms)
    turned = replace(study, variants=study.variants[::-1], loaded=study.loaded[::-1], seeds=study.seeds[::-1])
    there, back = compare(study), compare(turned, baseline="rope")
    for label in ("roper", "none"):
        one, two = there.result(label).against, back.result(label).against
        assert one.p_holm == pytest.approx(two.p_holm)
        assert one.difference.mean == pytest.approx(two.difference.mean)
        assert one.judgement == two.judgement


def test_swapping_the_baseline_flips_the_sign_and_the_verdict():
    study = study_of({"rope": BASE, "roper": shifted(BASE, -0.05)})
    there, back = compare(study).result("roper").against, compare(study, baseline="roper").result("rope").against
    assert there.difference.mean == -back.difference.mean
    assert (there.judgement.verdict, back.judgement.verdict) == (Verdict.better, Verdict.worse)


def test_another_unit_changes_no_verdict():
    arms = {"rope": BASE, "roper": shifted(BASE, -0.004), "none": shifted(BASE, 0.3)}
    scaled = {label: [1000 * v for v in values] for label, values in arms.items()}
    one, two = compare(study_of(arms), margin=0.01), compare(study_of(scaled), margin=10)
    for label in ("roper", "none"):
        assert one.result(label).against.judgement == two.result(label).against.judgement
        assert one.result(label).against.seeds_needed == two.result(label).against.seeds_needed


def test_two_copies_of_one_variant_are_told_apart_in_at_most_5_per_cent_of_sweeps():
    generator = np.random.default_rng(5)
    decided = 0
    for _ in range(500):  # 5 % within two standard errors
        shared = generator.normal(0.45, 0.02, 8)
        arms = {name: list(shared + generator.normal(0, 0.01, 8)) for name in ("a", "b")}
        decided += verdict(compare(study_of(arms)), "b") in (Verdict.better, Verdict.worse)
    assert decided / 500 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 500)


def test_a_diverged_seed_more_never_improves_a_verdict():
    order = [Verdict.unstable, Verdict.worse, Verdict.inconclusive, Verdict.equivalent, Verdict.better]
    for shift in (-0.1, -0.002, 0.0, 0.1):
        arms = {"rope": BASE, "roper": shifted(BASE, shift)}
        worse = {"rope": [*BASE, 0.45], "roper": [*arms["roper"], None]}
        before = verdict(compare(study_of(arms), margin=0.02), "roper")
        after = verdict(compare(study_of(worse), margin=0.02), "roper")
        assert before != Verdict.unstable
        assert order.index(after) <= order.index(before)


def test_one_lost_seed_of_the_baseline_withholds_no_win():
    """Nine of nine pairs, ten deviations: the verdict stays, with the counts in its sentence."""
    comparison = compare(study_of({"rope": [None, *BASE[1:]], "roper": shifted(BASE, -0.05)}))
    assert verdict(comparison, "roper") == Verdict.better
    assert "10 of 10 seeds succeeded against 9 of 10 (McNemar p = 1)" in verdict_sentences(comparison)[0]
    mirrored = compare(study_of({"rope": BASE, "roper": [None, *shifted(BASE, -0.05)[1:]]}))
    assert verdict(mirrored, "roper") == Verdict.unstable


def test_what_the_machine_lost_is_told_apart_from_what_diverged(tmp_path):
    changes = {("roper", 0): ending(Status.diverged), ("rope", 1): ending(Status.failed)}
    changes[("rope", 2)] = changed(status=Status.failed, error={"type": "ProcessDied", "message": "killed"}, metrics={})
    write_study(tmp_path / "s", {"rope": BASE, "roper": shifted(BASE, 0.1)}, changes=changes)
    comparison = compare(tmp_path / "s")
    assert "1 of 10 seeds diverged" in flags(comparison, "roper")
    assert "1 of 10 seeds failed with an error" in flags(comparison, "rope")
    assert "1 of 10 seeds lost to the machine" in flags(comparison, "rope")
    assert "sweep.rerun=failed" in flags(comparison, "rope")
    assert "sweep.rerun=failed" not in flags(comparison, "roper")


def test_seeds_without_a_pair_are_named_with_the_means_that_are_subtracted():
    roper = shifted(BASE, -0.05)
    comparison = compare(study_of({"rope": [None, *BASE[1:]], "roper": roper}))
    own, base = np.mean(roper[1:]), np.mean(BASE[1:])
    assert "seeds without a pair: 0; over the 9 pairs the means are" in flags(comparison, "roper")
    assert comparison.result("roper").against.difference.mean == pytest.approx(own - base)
    assert "seeds without a pair (0)" in caption(comparison)
    assert "No run is excluded" not in caption(comparison)


def test_few_pairs_are_compared_by_all_their_runs():
    two = study_of({"rope": BASE, "roper": shifted(BASE, -0.2)})
    loaded = tuple(r for r in two.loaded if r.seed in (range(6) if r.variant.label == "rope" else range(4, 10)))
    comparison = compare(replace(two, loaded=loaded))
    against = comparison.result("roper").against
    assert not against.difference.paired
    assert verdict(comparison, "roper") == Verdict.better
    assert "unpaired: 2 of 6 runs have a partner of the same seed" in flags(comparison, "roper")
    expected = stats.ttest_ind(
        [r.record.metrics["eval/loss"] for r in loaded if r.variant.label == "roper"],
        [r.record.metrics["eval/loss"] for r in loaded if r.variant.label == "rope"],
        equal_var=False,
    )
    assert against.difference.p == pytest.approx(expected.pvalue)


def test_pairs_of_less_than_half_of_the_runs_give_way_to_welch():
    two = study_of({"rope": BASE, "roper": shifted(BASE, -0.2)})
    few, half = (tuple(r for r in two.loaded if r.variant.label == "rope" or r.seed < n) for n in (4, 5))
    assert not compare(replace(two, loaded=few)).result("roper").against.difference.paired
    assert compare(replace(two, loaded=half)).result("roper").against.difference.paired


def test_power_and_seeds_are_those_of_the_family():
    arms = {"rope": BASE, "roper": shifted(BASE, 0.0, spread=0.02)}
    others = {f"x{i}": shifted(BASE, 0.0, spread=0.02, seed=i) for i in range(6)}
    alone = compare(study_of(arms), margin=0.01).result("roper").against
    family = compare(study_of(arms | others), margin=0.01).result("roper").against
    sd = alone.difference.sd
    solved = TTestPower().solve_power(nobs=10, alpha=0.05 / 7, power=0.8)
    assert family.mde == pytest.approx(sd * solved, rel=1e-4)
    assert alone.mde == pytest.approx(sd * TTestPower().solve_power(nobs=10, alpha=0.05, power=0.8), rel=1e-4)
    assert family.seeds_needed > alone.seeds_needed


def test_some_of_eight_equal_variants_is_set_apart_in_few_studies():
    generator = np.random.default_rng(8)
    apart = 0
    for _ in range(150):
        shared = generator.normal(0.45, 0.02, 6)
        arms = {f"x{i}": list(shared + generator.normal(0, 0.01, 6)) for i in range(8)}
        apart += not all(result.among_best for result in compare(study_of(arms)).results)
    assert apart / 150 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 150)


# What the user asks


def test_the_margin_says_how_many_seeds_it_needs():
    arms = {"rope": BASE, "roper": shifted(BASE, 0.0, spread=0.02)}
    comparison = compare(study_of(arms), margin=0.01)
    needed = comparison.result("roper").against.seeds_needed
    assert f"To resolve 0.01 it needs about {needed} seeds." in verdict_sentences(comparison)[0]
    assert compare(study_of(arms)).result("roper").against.seeds_needed is None
    assert compare(study_of(arms), margin=1e-5).result("roper").against.seeds_needed == MORE_THAN_200


def test_seeds_that_are_already_here_are_not_asked_for():
    noisy = np.linspace(-1, 1, 20)
    error = 0.01 / np.sqrt(20)
    moved = 0.4 + 1.95 * error + 0.01 * (noisy - noisy.mean()) / noisy.std(ddof=1)
    comparison = compare(study_of({"rope": [0.4] * 20, "roper": list(moved)}), margin=3.6 * error)
    assert verdict(comparison, "roper") == Verdict.inconclusive
    assert "it needs about 19 seeds, no more than the 20 here." in verdict_sentences(comparison)[0]


def test_beside_a_verdict_stand_wins_effect_and_power():
    comparison = compare(study_of({"rope": BASE, "roper": shifted(BASE, -0.05)}), margin=0.01)
    text = beside(comparison, comparison.result("roper").against)
    for part in ("P(better) 1.00 [0.69, 1.00]", "d_z", "detectable with 80 % power", "for the margin about 4"):
        assert part in text


def test_a_margin_in_per_cent_is_of_the_mean_of_the_baseline():
    study = study_of({"rope": [0.4, 0.5, 0.6], "roper": [0.4, 0.5, 0.6]})
    assert compare(study, margin="2%").question.margin == pytest.approx(0.01)


@pytest.mark.parametrize("margin", ["-1", "0", "two", "nan", "inf", "%"])
def test_a_margin_that_is_no_positive_number_is_refused(margin):
    with pytest.raises(StudyError, match="is not a positive number"):
        compare(study_of({"rope": BASE, "roper": BASE}), margin=margin)


@pytest.mark.parametrize("name", ["roper", "attention=roper"])
def test_the_baseline_can_be_named_by_label_factor_or_level(name):
    assert compare(study_of({"rope": BASE, "roper": BASE}), baseline=name).baseline.variant.label == "roper"


def test_a_baseline_named_by_a_level_that_two_variants_share_is_refused(tmp_path):
    factors = {"a": {"attention": "rope", "width": 32}, "b": {"attention": "rope", "width": 64}}
    write_study(tmp_path / "s", {"a": BASE, "b": BASE}, factors=factors)
    study = load_study(tmp_path / "s")
    assert question.find_baseline(study, "attention=rope, width=64").label == "b"
    with pytest.raises(StudyError, match="names 2 variants; choose one: a, b"):
        question.find_baseline(study, "rope")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("dims=[3,4]", "b"),
        ("dims=[3, 4]", "b"),
        ("[ 3, 4 ]", "b"),
        ("width=1, dims=[3,4]", "b"),
        ('dims={"k":[1,2]},width=1', "c"),
        ('dims=["],",2]', "d"),
    ],
)
def test_a_comma_inside_a_value_does_not_part_the_pairs_that_name_a_baseline(tmp_path, name, label):
    dims = {"a": [1, 2], "b": [3, 4], "c": {"k": [1, 2]}, "d": ["],", 2]}
    factors = {label: {"dims": value, "width": 1} for label, value in dims.items()}
    write_study(tmp_path / "s", {label: noise(0, 3) for label in dims}, factors=factors)
    assert question.find_baseline(load_study(tmp_path / "s"), name).label == label


def test_an_unknown_baseline_lists_the_variants():
    with pytest.raises(StudyError, match=r"no baseline 'alibi' .* the variants are: rope, roper"):
        compare(study_of({"rope": BASE, "roper": BASE}), baseline="alibi")


def test_an_unknown_metric_lists_those_there_are():
    with pytest.raises(StudyError, match=r"no metric 'eval/los' .*; did you mean eval/loss\? There are: eval/loss"):
        compare(study_of({"rope": BASE, "roper": BASE}), "eval/los")


def test_a_direction_is_lower_or_higher():
    with pytest.raises(StudyError, match="neither lower nor higher"):
        compare(study_of({"rope": BASE}), direction="up")


def test_a_study_without_a_finished_run_is_refused_with_what_there_is(tmp_path):
    changes = {("rope", 0): ending(Status.failed), ("rope", 1): never_started}
    write_study(tmp_path / "s", {"rope": BASE[:2]}, changes=changes)
    with pytest.raises(StudyError, match=r"no finished run to compare \(1 failed, 1 missing\)"):
        compare(tmp_path / "s")


def test_an_unknown_label_lists_those_there_are():
    with pytest.raises(StudyError, match=r"no variant 'x' .* there are: rope"):
        compare(study_of({"rope": BASE})).narrowed(["x"])


def test_one_variant_alone_is_described():
    comparison = compare(study_of({"rope": BASE}))
    assert comparison.others == []
    assert "n = 10" in caption(comparison)

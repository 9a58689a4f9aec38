"""When adding seeds is over for a comparison: the rule, its error rate, and what tables say of those that stopped."""

from dataclasses import replace

import numpy as np
import pytest
from fake_study import FIRST_SWEEP, changed, ending, never_started, noise, planned, write_study
from scipy import stats

from ablate.records import Status
from analysis.captions import caption
from analysis.compare import main as compare_main
from analysis.comparison import compare
from analysis.comparison_table import completeness
from analysis.load import load_study
from analysis.statistics.sequential import anytime_p, nominal_level, overall_p
from analysis.statistics.t_tests import AnyLooks, PlannedLooks
from analysis.statistics.verdict import Verdict
from analysis.study import Look
from analysis.until import decisions, why

BASE = noise(2, 10)
CLEAR = [b - 0.05 + e for b, e in zip(BASE, noise(3, 10, mean=0.0, sd=0.002), strict=True)]
CLOSE = [b + e for b, e in zip(BASE, noise(4, 10, mean=0.0, sd=0.002), strict=True)]
OPEN = noise(9, 10)
LOOKS = tuple(range(5, 41, 5))


def adding(path, arms, *, stopped=None, margin=None, **more):
    """A study whose sweep adds seeds until decided, in blocks of five."""
    folder = write_study(path, arms, **more)
    plan = folder.read_sweep(FIRST_SWEEP)
    plan.question = {"metric": "eval/loss", "direction": None, "transform": "none", "threshold": None, "margin": margin}
    cells = {planned(label).cell: {"seeds": n, "why": text} for label, (n, text) in (stopped or {}).items()}
    plan.until = {"block": 5, "max_seeds": 40, "stopped": cells, "ended": None}
    folder.write_sweep(plan)
    return folder


def standing(path):
    return {one.label: one for one in decisions(path, FIRST_SWEEP).decisions}


def test_a_clear_difference_is_decided_and_an_open_one_is_not(tmp_path):
    adding(tmp_path / "s", {"rope": BASE, "roper": CLEAR, "none": OPEN}, looks=[15, 30])
    found = standing(tmp_path / "s")
    assert (found["roper"].why, found["none"].why) == ("better", "")
    assert found["roper"].text.startswith("roper: better; mean difference −0.050")
    assert found["none"].text.startswith("none: undecided; ")


def test_the_rule_is_the_p_over_all_planned_looks_at_alpha_over_the_number_of_comparisons(tmp_path):
    weak = [b - 0.012 * (1 + i % 3) for i, b in enumerate(BASE)]
    noisy = [w + e for w, e in zip(weak, noise(5, 10, mean=0.0, sd=0.018), strict=True)]
    decided = []
    for others in range(1, 9):
        arms = {
            "rope": BASE,
            "x": noisy,
            **{f"o{i}": [b + 0.3 + 0.01 * (s % 4) for s, b in enumerate(BASE)] for i in range(others - 1)},
        }
        adding(tmp_path / str(others), arms, looks=[10 * (others + 1)])
        comparison = compare(tmp_path / str(others))
        against = comparison.result("x").against
        assert bool(why(comparison, against)) == (against.difference.p <= 0.05 / others)
        decided.append(bool(why(comparison, against)))
    assert len(set(decided)) == 2, "the example must cross the rule"


def test_a_small_difference_is_decided_only_when_a_margin_is_declared(tmp_path):
    adding(tmp_path / "a", {"rope": BASE, "roper": CLOSE}, looks=[20])
    adding(tmp_path / "b", {"rope": BASE, "roper": CLOSE}, looks=[20], margin=0.01)
    adding(tmp_path / "c", {"rope": BASE, "roper": CLOSE}, looks=[20], margin=0.0005)
    assert [standing(tmp_path / name)["roper"].why for name in "abc"] == ["", "equivalent", ""]
    d = np.array(CLOSE) - np.array(BASE)
    half = stats.t.isf(nominal_level(0.1, LOOKS) / 2, 9) * stats.sem(d)
    assert -0.01 < d.mean() - half < d.mean() + half < 0.01


def test_an_arm_that_lost_all_its_seeds_is_decided_and_one_lost_seed_is_not(tmp_path):
    dead = {("dead", seed): ending(Status.diverged) for seed in range(10)}
    hurt = {("hurt", 0): ending(Status.diverged)}
    adding(tmp_path / "s", {"rope": BASE, "dead": BASE, "hurt": OPEN}, changes=dead | hurt, looks=[30])
    found = standing(tmp_path / "s")
    assert found["dead"].why == "unstable (all 10 seeds failed)"
    assert found["hurt"].why == ""
    assert "hurt: undecided; " in found["hurt"].text


def test_a_study_without_any_finished_run_ends_the_adding_with_the_reason(tmp_path):
    changes = {(label, seed): ending(Status.failed) for label in ("rope", "roper") for seed in range(10)}
    adding(tmp_path / "s", {"rope": BASE, "roper": CLEAR}, changes=changes)
    found = decisions(tmp_path / "s", FIRST_SWEEP)
    assert found.decisions == ()
    assert "no finished run to compare (20 failed)" in found.problem


def test_even_the_first_look_of_such_a_sweep_has_the_interval_of_all_planned_looks(tmp_path):
    adding(tmp_path / "s", {"rope": BASE[:5], "roper": CLEAR[:5]}, looks=[10])
    against = compare(tmp_path / "s").result("roper").against
    d = np.array(CLEAR[:5]) - np.array(BASE[:5])
    half = stats.t.isf(nominal_level(0.05, LOOKS) / 2, 4) * stats.sem(d)
    assert against.looks == (5,)
    assert against.difference.interval == pytest.approx((d.mean() - half, d.mean() + half))
    assert against.difference.p == pytest.approx(overall_p(stats.ttest_1samp(d, 0).pvalue, LOOKS))
    assert "group-sequential t" in caption(compare(tmp_path / "s"))


def test_p_is_that_of_the_best_look_so_far(tmp_path):
    """Clear after five seeds and noisy after ten: the first look decided, so the second may not undo it."""
    late = [*CLEAR[:5], *(b + 0.3 * (-1) ** i for i, b in enumerate(BASE[5:]))]
    adding(tmp_path / "s", {"rope": BASE, "roper": late}, looks=[10, 20])
    d = np.array(CLEAR[:5]) - np.array(BASE[:5])
    found = compare(tmp_path / "s").result("roper").against.difference
    assert found.p == pytest.approx(overall_p(stats.ttest_1samp(d, 0).pvalue, LOOKS))


def test_raising_the_most_seeds_after_a_look_makes_the_interval_anytime_valid(tmp_path):
    folder = adding(tmp_path / "s", {"rope": BASE[:5], "roper": CLEAR[:5]}, looks=[10])
    write_study(tmp_path / "s", {"rope": BASE, "roper": CLEAR}, looks=[20], sweep="20260201T000000-bbbb")
    plan = folder.read_sweep("20260201T000000-bbbb")
    for most, test in ((40, PlannedLooks(10, LOOKS)), (60, AnyLooks(10))):
        plan.until = {"block": 5, "max_seeds": most, "stopped": {}, "ended": None}
        folder.write_sweep(plan)
        assert compare(tmp_path / "s").result("roper").against.difference.test == test


def test_seeds_that_are_pending_within_a_block_make_the_interval_anytime_valid(tmp_path):
    changes = {("roper", 9): never_started}
    adding(tmp_path / "s", {"rope": BASE, "roper": CLEAR}, changes=changes)
    assert compare(tmp_path / "s").result("roper").against.difference.test == AnyLooks(9)


def test_a_variant_that_stopped_keeps_its_row_its_pairs_and_says_at_how_many_seeds(tmp_path):
    stopped = {"roper": (8, "better")}
    adding(tmp_path / "s", {"rope": BASE, "roper": CLEAR[:8], "none": OPEN}, stopped=stopped, looks=[24, 30])
    comparison = compare(tmp_path / "s")
    result = comparison.result("roper")
    assert "stopped at n = 8: better" in result.flags
    assert not [flag for flag in result.flags if "without a pair" in flag]
    assert result.counts.total() == result.counts["ok"] == 8
    assert comparison.result("none").counts.total() == 10
    assert result.against.welch is None
    assert result.against.judgement.verdict is Verdict.better
    assert [row[0].text for row in completeness(comparison).rows] == ["rope", "roper", "none"]
    assert "Seeds added in blocks of 5 until decided, at most 40; looked at 8, 10 seeds." in caption(comparison)


def test_the_verdict_that_stopped_a_variant_stands_whatever_seeds_the_others_get(tmp_path):
    arms = {"rope": BASE[:5], "roper": CLEAR[:5], "none": OPEN[:5]}
    adding(tmp_path / "early", arms, looks=[15])
    late = {"rope": BASE, "roper": CLEAR[:5], "none": OPEN}
    adding(tmp_path / "late", late, stopped={"roper": (5, "better")}, looks=[15, 30])
    early, now = (compare(tmp_path / name).result("roper").against for name in ("early", "late"))
    assert early.difference == now.difference
    assert early.judgement.verdict == now.judgement.verdict


def test_all_looks_together_decide_wrongly_in_at_most_five_per_cent_of_studies():
    """Four equal variants, one of them the baseline, looked at after 5, 10, ..., 40 seeds; 2,000 simulated studies.

    Bonferroni's bound leaves room: the three comparisons share the baseline.
    """
    generator = np.random.default_rng(20260701)
    values = generator.normal(size=(2000, 4, 40)) + generator.normal(size=(2000, 1, 40))
    differences = values[:, 1:] - values[:, :1]
    wrong = np.zeros(2000, dtype=bool)
    for n in range(5, 41, 5):
        seen = differences[..., :n]
        t = seen.mean(axis=-1) / (seen.std(axis=-1, ddof=1) / np.sqrt(n))
        wrong |= (2 * stats.t.sf(np.abs(t), n - 1) <= nominal_level(0.05 / 3, LOOKS)).any(axis=-1)
    assert wrong.mean() <= 0.05


def test_a_variant_keeps_its_verdict_when_later_seeds_of_the_baseline_fall_into_two_groups(tmp_path):
    later = [*BASE[:8], 0.9, 0.91, 0.905, 0.92, 0.9, 0.91]
    above = [v + 0.05 for v in noise(9, 14)]  # worse than the first group of the baseline, better than the second
    stopped = {"roper": (8, "better")}
    adding(tmp_path / "s", {"rope": later, "roper": CLEAR[:8], "none": above}, stopped=stopped, looks=[24, 42])
    found = compare(tmp_path / "s").result("roper")
    assert found.against.judgement.verdict is Verdict.better
    assert compare(tmp_path / "s").result("none").against.judgement.verdict is Verdict.unstable


def test_without_a_noted_look_the_present_one_counts_all_the_same(tmp_path):
    adding(tmp_path / "s", {"rope": BASE, "roper": CLEAR})
    assert compare(tmp_path / "s").result("roper").against.looks == (10,)


# Declared with the sweep, and noted when looked at


def test_what_the_sweep_declared_is_the_default_and_what_is_given_later_is_named(tmp_path):
    adding(tmp_path / "s", {"rope": BASE, "roper": CLOSE}, margin="5%", looks=[20])
    declared, given = compare(tmp_path / "s"), compare(tmp_path / "s", margin=0.2, transform="none")
    assert declared.question.margin == pytest.approx(0.05 * np.mean(BASE[:5])), "of the first block, for every look"
    assert declared.question.chosen_after == ()
    assert given.question.margin == 0.2
    assert given.question.chosen_after == ("margin",)
    assert "as the sweep's plan declared them" in caption(declared)
    assert "Chosen after the sweep was planned: margin." in caption(given)


def test_what_was_declared_for_one_metric_does_not_hold_for_another(tmp_path):
    other = {
        (label, seed): changed(metrics={"eval/loss": 0.5, "eval/accuracy": 0.9 - seed / 100})
        for label in ("a", "b")
        for seed in range(4)
    }
    adding(tmp_path / "s", {"a": BASE[:4], "b": CLOSE[:4]}, changes=other, margin=0.01)
    question = compare(tmp_path / "s", "eval/accuracy").question
    assert (question.margin, question.lower_is_better, question.chosen_after) == (None, False, ("metric",))


def test_a_command_notes_its_look_in_the_sweep_once(tmp_path, capsys):
    folder = write_study(tmp_path / "s", {"rope": BASE[:5], "roper": CLEAR[:5]})
    for _ in range(2):
        compare_main([str(tmp_path / "s"), "roper", "rope"])
    cells = {planned(label).cell: [0, 1, 2, 3, 4] for label in ("rope", "roper")}
    assert [look["seeds"] for look in folder.read_sweep(FIRST_SWEEP).looks] == [cells]
    assert "[n/a]" not in capsys.readouterr().out


def test_a_look_by_a_command_while_seeds_are_missing_makes_the_interval_anytime_valid(tmp_path, capsys):
    missing = {(label, seed): lambda _: None for label in ("rope", "roper") for seed in range(6, 10)}
    write_study(tmp_path / "s", {"rope": BASE, "roper": CLEAR}, changes=missing)
    compare_main([str(tmp_path / "s"), "roper", "rope"])
    assert "looked at 6 seeds: anytime-valid paired t" in " ".join(capsys.readouterr().out.split())
    write_study(tmp_path / "s", {"rope": BASE, "roper": CLEAR})
    later = compare(load_study(tmp_path / "s"))
    assert (later.looks, later.result("roper").against.looks) == ([6, 10], ()), "all seeds were planned before it"


def test_a_study_that_cannot_be_written_is_compared_all_the_same(tmp_path, monkeypatch, capsys):
    write_study(tmp_path / "s", {"rope": BASE, "roper": CLEAR})

    def refuse(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr("ablate.records.StudyFolder.note_look", refuse)
    assert compare_main([str(tmp_path / "s"), "roper", "rope"]) == 0
    assert "better" in capsys.readouterr().out


def test_the_p_of_several_looks_follows_the_seeds_that_each_look_saw(tmp_path):
    """A first sweep saw seeds 5 to 9, the second all ten: nobody ever looked at seeds 0 to 4 alone."""
    effect = [*([-0.05] * 5), *([0.0] * 5)]
    roper = [b + e + n for b, e, n in zip(BASE, effect, noise(6, 10, mean=0.0, sd=0.004), strict=True)]
    write_study(tmp_path / "s", {"rope": BASE[5:], "roper": roper[5:]}, seeds=range(5, 10), looks=[10])
    write_study(tmp_path / "s", {"rope": BASE, "roper": roper}, looks=[20], sweep="20260201T000000-bbbb")
    differences = np.array(roper) - np.array(BASE)
    seen = np.concatenate([differences[5:], differences[:5]])
    found = compare(tmp_path / "s").result("roper").against
    assert found.difference.p == pytest.approx(anytime_p(seen, [5, 10]))
    assert found.difference.p != pytest.approx(anytime_p(differences, [5, 10]))


def test_unpaired_arms_that_were_looked_at_claim_no_interval_for_it(tmp_path):
    missing = {("rope", 4): lambda _: None, ("roper", 14): lambda _: None}
    write_study(tmp_path / "s", {"rope": BASE[:5]}, seeds=range(5), changes=missing, looks=[4])
    write_study(
        tmp_path / "s",
        {"roper": CLEAR[:5]},
        seeds=range(10, 15),
        changes=missing,
        looks=[4],
        sweep="20260201T000000-bbbb",
    )
    study = load_study(tmp_path / "s", "all")
    both = replace(study, looks=(Look(study.ended),))
    comparison = compare(both)
    flags = " ".join(comparison.result("roper").flags)
    assert "looked at 4 seeds: unpaired arms have no interval that allows for it" in flags
    said = caption(comparison)
    assert "intervals: Student t" in said
    assert "n = 4 of 5 planned runs per variant" in said
    assert "Looked at 4 of 5 planned seeds" in said


def test_what_is_spelt_out_but_not_changed_is_no_choice_and_another_baseline_is(tmp_path):
    adding(tmp_path / "s", {"rope": BASE, "roper": CLOSE}, margin="2%", looks=[20])
    same = compare(tmp_path / "s", direction="lower", transform="none", margin="2 %")
    assert same.question.chosen_after == ()
    other = compare(tmp_path / "s", baseline="roper", threshold=0.5)
    assert other.question.chosen_after == ("baseline", "threshold")


def test_a_declared_absolute_margin_does_not_hold_on_the_log_scale(tmp_path):
    adding(tmp_path / "s", {"rope": BASE, "roper": CLOSE}, margin=0.01, looks=[20])
    assert compare(tmp_path / "s", transform="log").question.margin is None


def test_a_torn_note_of_a_look_is_left_out(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": BASE, "roper": CLEAR})
    folder.looks_file(FIRST_SWEEP).write_text('{"time": "x", "seeds": {"a": [0, 1, 2]}}\n{"time": "x", "see')
    assert folder.read_sweep(FIRST_SWEEP).looks == [{"time": "x", "seeds": {"a": [0, 1, 2]}}]
    assert replace(folder.read_sweep(FIRST_SWEEP), looks=[]).seeds == list(range(10))

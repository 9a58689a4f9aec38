"""Verdicts that were withheld, given twice over, or given on the wrong test: points W11 and W14 to W18.

Values are worked out with scipy and statsmodels or by hand; the rates of whole designs are simulated in
`benchmarks.verdict_rates` (docs/analysis.md has the table).
"""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from fake_study import FIRST_SWEEP, noise, study_of, write_study
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from ablate.records import StudyFolder
from analysis.captions import caption
from analysis.comparison import compare
from analysis.load import load_study
from analysis.statistics.groups import two_groups
from analysis.statistics.sequential import nominal_level
from analysis.statistics.verdict import Verdict
from analysis.wording import verdict_sentences

SECOND_SWEEP = "20260201T000000-bbbb"


def verdicts(comparison):
    return {result.variant.label: str(against.judgement.verdict) for result, against in comparison.others}


def family(k, sd=0.02, n=10, seed=3):
    """A baseline and k copies of it, paired."""
    generator = np.random.default_rng(seed)
    shared = generator.normal(0.45, 0.02, n)
    return {f"x{i}": list(shared + generator.normal(0, sd, n)) for i in range(k + 1)}


# W11: which sweep is the latest


def test_w11_a_plan_dated_in_the_future_is_not_the_latest_for_ever(sweep):
    assert sweep("attention=rope,none", "seed=0").code == 0
    folder = StudyFolder(Path("multirun/copy_repeat"))
    (first,) = folder.sweep_ids()
    ahead = f"20990101T000000-{first.partition('-')[2]}"
    plan = json.loads(folder.sweep_file(first).read_text())
    folder.sweep_file(ahead).write_text(json.dumps({**plan, "id": ahead}))
    folder.sweep_file(first).unlink()
    assert sweep("attention=alibi,none", "seed=0").code == 0
    assert folder.sweep_ids()[0] == ahead
    assert [variant.label for variant in load_study(folder.path).variants] == ["alibi", "none"]
    newest = folder.read_sweep(folder.sweep_ids()[-1])
    assert newest.id.startswith("20990101T000001-")
    assert abs(datetime.fromisoformat(newest.created) - datetime.now(UTC)).days < 1, "the time itself is not changed"


# W14: two groups of runs


def test_w14_a_difference_that_every_seed_shows_is_called_whatever_groups_the_seeds_make():
    hard = [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    base = [0.4 + h + e for h, e in zip(hard, noise(1, 10, mean=0, sd=0.01), strict=True)]
    clear = [b - 0.07 + e for b, e in zip(base, noise(2, 10, mean=0, sd=0.001), strict=True)]
    comparison = compare(study_of({"rope": base, "roper": clear}))
    assert two_groups(base), "the seeds do fall into two groups"
    assert verdicts(comparison) == {"roper": "better"}
    assert any("two groups of runs: 7 runs around 0.4 and 3 runs around 1.4" in f for f in comparison.baseline.flags)


def test_w14_an_even_split_astride_the_baseline_is_unstable():
    base = noise(5, 10, mean=0.5, sd=0.01)
    astride = [
        b + 0.2 * (-1) ** seed + e for seed, (b, e) in enumerate(zip(base, noise(2, 10, mean=0, sd=0.01), strict=True))
    ]
    judgement = compare(study_of({"rope": base, "roper": astride})).result("roper").against.judgement
    assert judgement.verdict is Verdict.unstable
    assert judgement.qualifier == "two groups of runs in roper, on different sides of rope"


def test_w14_counts_a_step_apart_are_one_group():
    assert not two_groups([0.5, 0.5, 0.5, 0.501, 0.501])
    assert two_groups([0.5, 0.502, 0.499, 0.901, 0.902])


# W15: failed seeds


@pytest.mark.parametrize(("lost", "expected"), [("rope", "better"), ("roper", "unstable")])
def test_w15_one_lost_run_withholds_a_win_only_where_it_points_against_it(lost, expected):
    base = noise(1, 10)
    arms = {
        "rope": list(base),
        "roper": [b - 0.1 + e for b, e in zip(base, noise(2, 10, mean=0, sd=0.01), strict=True)],
    }
    arms[lost][4] = None
    comparison = compare(study_of(arms))
    assert verdicts(comparison) == {"roper": expected}
    counts = (
        "10 of 10 seeds succeeded against 9 of 10" if lost == "rope" else "9 of 10 seeds succeeded against 10 of 10"
    )
    assert counts in verdict_sentences(comparison)[0]


# W16: what belongs to the family


def test_w16_equivalence_is_corrected_over_all_comparisons():
    """At a margin that some of seven copies meet alone, those remain that Holm's correction of their p leaves."""
    arms = family(7)
    base = np.array(arms["x0"])
    margin = 0.0145
    alone = []
    for label in list(arms)[1:]:
        d = np.array(arms[label]) - base
        error = stats.sem(d)
        alone.append(max(stats.t.sf((d.mean() + margin) / error, 9), stats.t.cdf((d.mean() - margin) / error, 9)))
    kept = multipletests(alone, method="holm")[0]
    found = [verdict == "equivalent" for verdict in verdicts(compare(study_of(arms), margin=margin)).values()]
    assert found == list(kept)
    assert sum(kept) < sum(p < 0.05 for p in alone), "the example must tell the two rules apart"


def test_w16_the_detectable_difference_is_that_of_the_family():
    comparison = compare(study_of(family(7)))
    for _, against in comparison.others:
        effect = TTestPower().solve_power(nobs=10, alpha=0.05 / 7, power=0.8)
        assert against.mde == pytest.approx(against.difference.sd * effect, rel=1e-4)
    assert "detects about a difference of" in verdict_sentences(comparison)[0]
    assert "corrected for 7 comparisons" in verdict_sentences(comparison)[0]
    assert "95 % each, not together" in caption(comparison)


def test_w16_holm_is_named_only_where_there_is_something_to_correct():
    assert "Holm p" not in verdict_sentences(compare(study_of(family(1))))[0]
    assert "Holm p" in verdict_sentences(compare(study_of(family(2))))[0]


def test_w16_bold_is_corrected_over_all_pairs_that_the_best_may_be_one_of():
    arms = family(7, sd=0.01, seed=25)
    values = np.array(list(arms.values()))
    best = values.mean(axis=1).argmin()
    p = {label: stats.ttest_rel(values[i], values[best]).pvalue for i, label in enumerate(arms) if i != best}
    results = compare(study_of(arms)).results
    assert min(p.values()) < 0.05 / 7, "corrected for 7 comparisons alone, an equal variant would be set apart"
    assert min(p.values()) * 28 > 0.05
    assert all(result.among_best for result in results)


# W17: looks


def test_w17_looks_on_the_way_cost_nothing_when_the_seeds_were_planned(tmp_path):
    arms = {"rope": noise(1, 10), "roper": noise(2, 10, mean=0.43)}
    write_study(tmp_path / "s", arms, looks=[6, 12, 20])
    found = compare(tmp_path / "s").result("roper").against.difference
    expected = stats.ttest_rel(arms["roper"], arms["rope"])
    assert found.p == pytest.approx(expected.pvalue)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval()))


def test_w17_seeds_added_after_a_look_make_it_anytime_valid_from_python_too(tmp_path):
    arms = {"rope": noise(1, 10), "roper": noise(2, 10, mean=0.43)}
    write_study(tmp_path / "s", {label: values[:5] for label, values in arms.items()})
    assert "Student t" in caption(compare(tmp_path / "s"))
    write_study(tmp_path / "s", arms, sweep=SECOND_SWEEP)
    d = np.subtract(arms["roper"], arms["rope"])
    half = 3.87 * stats.sem(d)  # the factor at 10 pairs, as published for tau = 1
    found = compare(tmp_path / "s").result("roper").against.difference
    assert found.interval == pytest.approx((d.mean() - half, d.mean() + half), rel=2e-3)


def test_w17_blocks_until_decided_have_a_group_sequential_bound(tmp_path):
    arms = {"rope": noise(1, 5), "roper": noise(2, 5, mean=0.35)}
    folder = write_study(tmp_path / "s", arms, looks=[10])
    plan = folder.read_sweep(FIRST_SWEEP)
    plan.until = {"block": 5, "max_seeds": 40, "stopped": {}, "ended": None}
    folder.write_sweep(plan)
    d = np.subtract(arms["roper"], arms["rope"])
    half = stats.t.isf(nominal_level(0.05, range(5, 41, 5)) / 2, 4) * stats.sem(d)
    found = compare(tmp_path / "s").result("roper").against.difference
    assert found.interval == pytest.approx((d.mean() - half, d.mean() + half))


# W18: means, pairs and words


def test_w18_the_means_shown_beside_a_difference_are_those_that_are_subtracted():
    base = [None, *noise(1, 9, mean=0.5)]
    roper = noise(2, 10, mean=0.5)
    comparison = compare(study_of({"rope": base, "roper": roper}))
    (flag,) = (flag for flag in comparison.result("roper").flags if "without a pair" in flag)
    own, other = (float(text.strip(" ,")) for text in (flag.split("are ")[1].split(" and")[0], flag.split(", ")[-1]))
    assert own == pytest.approx(np.mean(roper[1:]), abs=6e-4)
    assert other == pytest.approx(np.mean(base[1:]), abs=6e-4)
    assert "No run is excluded" not in caption(comparison)


def test_w18_few_common_seeds_are_no_reason_to_throw_the_runs_away():
    base, roper = noise(1, 8, mean=0.5), noise(2, 8, mean=0.3)
    study = study_of({"rope": base, "roper": roper})
    apart = tuple(run for run in study.loaded if (run.seed < 5) == (run.variant.label == "rope") or run.seed == 5)
    comparison = compare(replace(study, loaded=apart))
    assert verdicts(comparison) == {"roper": "better"}
    assert "unpaired (Welch)" in verdict_sentences(comparison)[0]
    expected = stats.ttest_ind(roper[5:], base[:6], equal_var=False).pvalue
    assert comparison.result("roper").against.difference.p == pytest.approx(expected)


def test_w18_a_constant_difference_that_is_not_0_takes_effect():
    base = noise(1, 6)
    flags = compare(study_of({"rope": base, "roper": [b - 0.1 for b in base]})).result("roper").flags
    assert not any("check that the factor takes effect" in flag for flag in flags)

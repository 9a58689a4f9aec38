"""Several tasks: scores that do not hang on which variants are in the study, and a verdict over tasks.

Ranks and tests are worked out with scipy, by hand, from Demšar's tables, or by going through every order of the ranks.
"""

import io
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from fake_study import changed, ending, noise, suite, write_study
from matplotlib.figure import Figure
from rich.console import Console
from scipy import stats

from ablate.config.errors import ConfigError
from ablate.config.schema import RunConfig
from ablate.records import Status, StudyFolder
from ablate.sweep.plan import _check_reference
from analysis import report
from analysis.over_tasks import rank_tasks, sentences
from analysis.overall_tables import overall_tables
from analysis.plots.base import ranking_plots, render
from analysis.plots.critical_difference import groups
from analysis.references import parse
from analysis.statistics.aggregate import iqm
from analysis.statistics.ranks import critical_difference, exact_p, friedman, iman_davenport, rank
from analysis.study import StudyError
from analysis.task_sets import compare_tasks
from analysis.terminal import print_task_set

TASKS = ("copy", "sort", "count", "add", "mod", "find")
SHIFTS = {task: float(i) for i, task in enumerate(TASKS)}


def values(tasks=TASKS, *, gain=0.03, seeds=5, **more):
    """Losses of rope, roper (better by `gain`), alibi and of what else is given, independent between tasks."""
    found = {}
    for i, task in enumerate(tasks):
        for j, arm in enumerate(("rope", "roper", "alibi")):
            found[task, arm] = [i + x - (gain if arm == "roper" else 0) for x in noise(100 * i + j, seeds)]
        for arm, value in more.items():
            found[task, arm] = [value + x for x in noise(7 + i, seeds)]
    return found


def several(path, tasks=TASKS, own=None, **more):
    own = own or values(tasks)
    arms = dict.fromkeys((arm for _, arm in own), [0.0] * len(next(iter(own.values()))))
    suite(path, arms, shifts=dict.fromkeys(tasks, 0.0), values=own, **more)
    return path


def scored(task_set):
    return {one.label: one for one in task_set.aggregate.variants}


@pytest.mark.parametrize("reference", [None, [0, 10], "alibi,roper"])
def test_a_hopeless_third_variant_changes_no_score(tmp_path, reference):
    few = scored(compare_tasks(several(tmp_path / "few"), reference=reference))
    more = scored(compare_tasks(several(tmp_path / "more", own=values(bad=50.0)), reference=reference))
    for label, one in few.items():
        assert more[label].scores == one.scores
        assert (more[label].iqm, more[label].difference, more[label].wins) == (one.iqm, one.difference, one.wins)


def test_without_a_reference_a_score_is_the_difference_in_deviations_of_the_baseline(tmp_path):
    own = values()
    found = scored(compare_tasks(several(tmp_path / "s", own=own)))
    for task in TASKS:
        base, other = np.array(own[task, "rope"]), np.array(own[task, "roper"])
        assert list(found["roper"].scores[task].values()) == pytest.approx((base.mean() - other) / base.std(ddof=1))
    pooled = np.concatenate([list(own.values()) for own in found["roper"].scores.values()])
    assert found["roper"].iqm.value == pytest.approx(iqm(pooled))


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_two_values_are_the_worse_and_the_better_end_in_either_order(tmp_path, direction):
    path, own = several(tmp_path / "s"), values()
    one, other = (scored(compare_tasks(path, direction=direction, reference=r)) for r in ([0, 10], "10, 0"))
    assert {label: v.scores for label, v in one.items()} == {label: v.scores for label, v in other.items()}
    expected = np.array(own["sort", "roper"]) / 10
    expected = expected if direction == "higher" else 1 - expected
    assert list(one["roper"].scores["sort"].values()) == pytest.approx(expected)


def test_values_by_task_and_two_variants_are_scales_of_their_own(tmp_path):
    path, own = several(tmp_path / "s"), values()
    by_task = scored(compare_tasks(path, reference={task: [i, i + 1] for i, task in enumerate(TASKS)}))
    assert by_task["rope"].scores["mod"][2] == pytest.approx(5 - own["mod", "rope"][2])
    variants = compare_tasks(path, reference=["rope", "attention=roper"])
    zero, one = np.mean(own["mod", "rope"]), np.mean(own["mod", "roper"])
    assert scored(variants)["alibi"].scores["mod"][1] == pytest.approx((own["mod", "alibi"][1] - zero) / (one - zero))
    for label, mean in (("rope", 0), ("roper", 1)):
        assert np.mean(list(scored(variants)[label].scores["add"].values())) == pytest.approx(mean, abs=1e-12)


def test_a_logarithm_is_taken_of_the_reference_too(tmp_path):
    path, own = several(tmp_path / "s"), values()
    found = scored(compare_tasks(path, transform="log", reference=[0.1, 10]))
    y = own["mod", "rope"][0]
    assert found["rope"].scores["mod"][0] == pytest.approx((np.log(10) - np.log(y)) / np.log(100))
    with pytest.raises(StudyError, match="transform log needs numbers above 0"):
        compare_tasks(path, transform="log", reference=[0, 10])


FORMS = "must be two numbers .* two variants .* or two numbers by task"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("rope,nope", "no reference 'nope' in study .* the variants are: rope, roper, alibi"),
        ("rope,rope", "both are rope; name two variants"),
        ("[1, 1]", "both ends are 1; the scores 0 and 1 need two different values"),
        ("0.3,0.30000000000000004", "both ends are 0.3; the scores"),
        ("[0, nan]", "is not two finite numbers"),
        ("0,inf", "is not two finite numbers"),
        ("{copy: [0, 1], srot: [0, 1]}", "no task 'srot'; there is: copy, sort, count"),
        ("{copy: [0, high]}", "reference of task copy: .* is not two finite numbers"),
        ("{copy: 3}", "reference of task copy: 3 is not two finite numbers"),
        ({"copy": [0, 0]}, "reference of task copy: both ends are 0"),
        ({}, "no task in it"),
        ("0,1,2", FORMS),
        ("0,rope", FORMS),
        ("rope", FORMS),
        ("", FORMS),
        ("[0,", FORMS),
        (0.5, FORMS),
        ([True, [1]], FORMS),
        ([["rope"], ["roper"]], FORMS),
    ],
)
def test_a_bad_reference_is_one_line_before_anything_is_written(tmp_path, capsys, reference, message):
    path = several(tmp_path / "s")
    with pytest.raises(StudyError, match=message):
        compare_tasks(path, reference=reference)
    if isinstance(reference, str):
        assert report.main([str(path), f"--reference={reference}"]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not (path / "report").exists()


def load_plan(path):
    folder = StudyFolder(path)
    return folder.read_sweep(folder.sweep_ids()[-1])


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (["rope", "nope"], "^sweep.reference: no reference 'nope' in study"),
        ([0, 0], "^sweep.reference: both ends are 0"),
        ({"cpy": [0, 1]}, "^sweep.reference={cpy: .0, 1.}: no task 'cpy'; there is: copy, sort"),
        ("abc", f"^sweep.reference=abc: {FORMS}"),
        ([0.0, 1.0], ""),
        (["rope", "alibi"], ""),
        ({"copy": [0, 1], "find": [2, 3]}, ""),
        (None, ""),
    ],
)
def test_a_sweep_checks_its_reference_against_its_own_tasks_and_variants(tmp_path, reference, message):
    plan, config = load_plan(several(tmp_path / "s")), RunConfig(task={"_target_": "ablate.tasks.copy.Copy"})
    config.sweep.reference = reference
    if not message:
        return _check_reference(plan, config)
    with pytest.raises(ConfigError, match=message) as error:
        _check_reference(plan, config)
    assert "\n" not in str(error.value)
    return None


def declare(path, **question):
    folder, plan = StudyFolder(path), load_plan(path)
    folder.write_sweep(replace(plan, question={"metric": "eval/loss", **question}))


def test_what_the_plan_declares_is_the_default_and_another_one_is_named_in_the_caption(tmp_path):
    path = several(tmp_path / "s")
    declare(path, reference=[0, 10])
    declared, same, after = (compare_tasks(path, reference=r) for r in (None, "0,10", "rope,roper"))
    assert declared.aggregate.reference.values == {None: (0, 10)}
    assert [one.reference.after for one in (declared, same, after)] == [False, False, True]
    assert "chosen after the sweep was planned" in caption_of(after)
    assert "0 at the worse and 1 at the better of two declared values (0 and 10)" in caption_of(declared)
    declare(path, reference={"other task": [0, 1]})
    left = compare_tasks(path)
    assert left.reference is None
    assert any("no task 'other task'" in text and "not used" in text for text in left.remarks)


def caption_of(task_set):
    return overall_tables(task_set)["aggregate"].caption


def test_a_task_without_a_scale_is_left_out_of_the_aggregate_and_says_why(tmp_path):
    own = values() | {("copy", "rope"): [0.5] * 5}
    changes = {("sort", "rope", seed): ending(Status.diverged) for seed in (0, 1, 2)}
    path = several(tmp_path / "s", own=own, changes=changes)
    found = compare_tasks(path)
    assert found.aggregate.tasks == TASKS[2:]
    assert [line.split(";")[0] for line in found.remarks] == [
        "task copy is in no aggregate: all runs of rope, the baseline, have the same value",
        "task sort is in no aggregate: fewer than 3 runs of rope, the baseline, have finished",
    ]
    assert compare_tasks(path, reference=[0, 10]).aggregate.tasks == TASKS
    flipped = compare_tasks(path, reference="roper,rope")
    assert flipped.aggregate is None
    assert "rope is not better there than roper, so they give no scale" in flipped.remarks[0]
    partial = compare_tasks(path, reference={"copy": [0, 1], "sort": [0, 2], "count": [0, 3]})
    assert partial.aggregate.tasks == TASKS[:3]
    assert partial.remarks[0] == "task add is in no aggregate: the reference has no values for it"


def test_a_task_on_which_the_baseline_hardly_varies_is_named(tmp_path):
    own = values(TASKS[:3], bad=50.0) | {("sort", "rope"): [1.45 + 1e-7 * i for i in range(5)]}
    path = several(tmp_path / "s", TASKS[:3], own=own)
    (line,) = [text for text in compare_tasks(path).remarks if "outweighs" in text]
    assert line.startswith("task sort outweighs the others in the scores: runs of rope, the baseline, hardly differ")
    for found in (compare_tasks(path, reference=[0, 9]), compare_tasks(several(tmp_path / "t", own=values(bad=50.0)))):
        assert not [text for text in found.remarks if "outweighs" in text]


def test_a_baseline_at_zero_has_scores(tmp_path):
    own = {(t, a): [x - np.mean(v) * (a == "rope") - i * (a != "rope") for x in v] for i, t in enumerate(TASKS)
           for a in ("rope", "roper") for v in [values()[t, a]]}  # fmt: skip
    found = scored(compare_tasks(several(tmp_path / "s", own=own)))
    assert all(np.isfinite(list(s.values())).all() for one in found.values() for s in one.scores.values())


@pytest.mark.parametrize(("k", "q05", "q10"), [
    (2, 1.960, 1.645), (3, 2.343, 2.052), (4, 2.569, 2.291), (5, 2.728, 2.459), (6, 2.850, 2.589), (7, 2.949, 2.693),
    (8, 3.031, 2.780), (9, 3.102, 2.855), (10, 3.164, 2.920),
])  # fmt: skip
def test_critical_differences_are_those_of_demsars_table_5a(k, q05, q10):
    scale = np.sqrt(k * (k + 1) / (6 * 14))
    assert critical_difference(k, 14) == pytest.approx(q05 * scale, abs=0.001 * scale)
    assert critical_difference(k, 14, 0.10) == pytest.approx(q10 * scale, abs=0.0015 * scale)


DEMSAR = np.array([  # Table 6: AUC of C4.5, C4.5+m, C4.5+cf, C4.5+m+cf on 14 data sets
    [.763, .768, .771, .798], [.599, .591, .590, .569], [.954, .971, .968, .967], [.628, .661, .654, .657],
    [.882, .888, .886, .898], [.936, .931, .916, .931], [.661, .668, .609, .685], [.583, .583, .563, .625],
    [.775, .838, .866, .875], [1.0, 1.0, 1.0, 1.0], [.940, .962, .965, .962], [.619, .666, .614, .669],
    [.972, .981, .9751, .975], [.957, .978, .946, .970],
])  # fmt: skip


def test_demsars_own_example_comes_out_as_published():
    ranks = rank(-DEMSAR)
    assert ranks.mean(axis=0) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=6e-4)
    n, k = ranks.shape
    plain = 12 * n / (k * (k + 1)) * ((ranks.mean(axis=0) - 2.5) ** 2).sum()
    assert plain == pytest.approx(9.28, abs=0.006)  # he does not correct for ties, scipy does
    assert friedman(ranks) == pytest.approx(stats.friedmanchisquare(*DEMSAR.T).statistic)
    assert (n - 1) * plain / (n * (k - 1) - plain) == pytest.approx(3.69, abs=0.01)
    assert critical_difference(4, 14, 0.10) == pytest.approx(2.291 * np.sqrt(20 / (6 * 14)), abs=0.001)


@pytest.mark.parametrize("seed", range(4))
def test_friedman_and_iman_davenport_are_those_of_scipy(seed):
    drawn = np.random.default_rng(seed).integers(0, 4, size=(7, 4)).astype(float)  # with ties
    ranks = rank(drawn)
    chi2 = stats.friedmanchisquare(*drawn.T).statistic
    assert friedman(ranks) == pytest.approx(chi2)
    f, p = iman_davenport(ranks)
    assert f == pytest.approx(6 * chi2 / (7 * 3 - chi2))
    assert p == pytest.approx(stats.f.sf(f, 3, 18))


@pytest.mark.parametrize("rows", [
    [[1, 2, 3]] * 3, [[1, 3, 2], [2, 1, 3], [1, 2, 3]], [[1.5, 1.5, 3], [1, 2, 3], [2, 2, 2]], [[1, 2]] * 5,
])  # fmt: skip
def test_p_is_the_share_of_all_orders_with_as_large_a_difference(rows):
    ranks = np.array(rows, dtype=float)
    orders = [list(itertools.permutations(row)) for row in ranks]
    found = [abs(sum(row[0] - row[1] for row in one)) for one in itertools.product(*orders)]
    seen = abs((ranks[:, 0] - ranks[:, 1]).sum())
    assert exact_p(ranks, 0, 1) == pytest.approx(np.mean(np.array(found) >= seen - 1e-9))


def test_total_agreement_is_not_a_p_of_zero_and_total_ties_are_no_difference():
    f, p = iman_davenport(np.array([[1.0, 2.0]] * 5))
    assert (f, p) == (np.inf, pytest.approx(1 / 16))
    f, p = iman_davenport(np.array([[2.0, 2.0, 2.0]] * 5))
    assert (f, p) == (0, 1)
    assert list(rank(np.array([[0.1 + 0.2, 0.3, 0.0]]))[0]) == [2.5, 2.5, 1]
    assert list(rank(np.zeros((1, 3)))[0]) == [2, 2, 2]


@pytest.mark.parametrize(("k", "tasks"), [(2, 6), (4, 5), (5, 10)])
def test_without_an_effect_at_most_one_study_in_twenty_decides(k, tasks):
    generator = np.random.default_rng(5)
    wrong = 0
    for _ in range(300):
        ranks = rank(generator.normal(size=(tasks, k)))
        p = min(exact_p(ranks, at, 0) for at in range(1, k)) * (k - 1)
        wrong += iman_davenport(ranks)[1] < 0.05 and p < 0.05
    assert wrong / 300 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_the_verdict_over_tasks_is_as_worked_out(tmp_path):
    own = values(bad=50.0)
    found = compare_tasks(several(tmp_path / "s", own=own)).ranking
    arms = ("rope", "roper", "alibi", "bad")
    means = np.array([[np.mean(own[task, arm]) for arm in arms] for task in TASKS])
    ranks = stats.rankdata(means, axis=1)
    assert found.ranks == pytest.approx(ranks)
    chi2 = stats.friedmanchisquare(*means.T).statistic
    assert found.f == pytest.approx(5 * chi2 / (18 - chi2))
    rope, roper, _, bad = found.variants
    assert [str(one.verdict) for one in found.variants] == ["None", "better", "inconclusive", "inconclusive"]
    assert (roper.mean_rank, rope.mean_rank) == pytest.approx(tuple(ranks.mean(axis=0)[[1, 0]]))
    assert (roper.won, roper.lost, roper.sign_p) == (6, 0, pytest.approx(2 / 64))
    assert (bad.won, bad.lost) == (0, 6)
    lines = sentences(found)
    assert lines[0].startswith(
        "Over 6 tasks the mean ranks of 4 variants differ (Friedman with Iman and Davenport, F(3"
    )
    assert "roper: better than rope over 6 tasks; mean rank 1.00 against " in lines[1]
    assert "6 tasks won, 0 lost (sign test p = .031), Holm p = " in lines[1]


def test_more_is_better_turns_the_verdict_over_tasks(tmp_path):
    path = several(tmp_path / "s", own=values(gain=0.5))
    lower, higher = (compare_tasks(path, direction=d).ranking for d in ("lower", "higher"))
    assert [str(lower.variants[1].verdict), str(higher.variants[1].verdict)] == ["better", "worse"]
    assert higher.ranks == pytest.approx(4 - lower.ranks)


def test_seeds_are_no_tasks_and_a_failed_run_is_the_worst_of_its_task(tmp_path):
    many = values(seeds=7)
    few = {pair: own[:5] for pair, own in many.items()}
    one, other = (rank_tasks(compare_tasks(several(tmp_path / n, own=o)).comparisons) for n, o in
                  (("many", many), ("few", few)))  # fmt: skip
    assert one.ranks.shape == other.ranks.shape == (6, 3)
    lost = {(task, "roper", seed): ending(Status.diverged) for task in TASKS for seed in range(4)}
    failed = compare_tasks(several(tmp_path / "lost", own=few, changes=lost)).ranking
    worst = [[max(v for arm in ("rope", "alibi") for v in few[t, arm]), few[t, "roper"][4]] for t in TASKS]
    for row, (high, last) in zip(failed.ranks, worst, strict=True):
        assert row[1] == 3 or (4 * max(high, last) + last) / 5 < high


def test_a_missing_seed_leaves_the_seeds_that_all_variants_have(tmp_path):
    own = {("copy", "rope"): [0.1, 0.2, 9.0], ("copy", "roper"): [0.15, 0.25, 0.0]}
    own |= {(task, arm): noise(len(task + arm), 3) for task in TASKS[1:] for arm in ("rope", "roper")}
    changes = {("copy", "roper", 2): lambda _: None}
    found = compare_tasks(several(tmp_path / "s", own=own, changes=changes)).ranking
    assert list(found.ranks[0]) == [1, 2]  # by the first two seeds; with all of rope's it would be the other way round


@pytest.mark.parametrize("n", [3, 4])
def test_with_fewer_than_five_tasks_there_is_no_verdict_and_it_says_so(tmp_path, n):
    found = compare_tasks(several(tmp_path / "s", TASKS[:n]))
    assert found.ranking is None
    assert f"no verdict over tasks: it takes 5 such tasks, and there are {n}" in found.remarks


def test_two_variants_on_five_tasks_cannot_be_decided_and_it_says_so(tmp_path):
    own = {pair: v for pair, v in values(TASKS[:5], gain=1.0).items() if pair[1] != "alibi"}
    found = compare_tasks(several(tmp_path / "s", TASKS[:5], own=own)).ranking
    assert str(found.variants[1].verdict) == "inconclusive"
    assert "With 5 tasks no result could decide: the smallest p is 0.0625." in sentences(found)[0]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = several(tmp_path_factory.mktemp("studies") / "suite", own=values(seeds=3))
    assert report.main([str(path), "--reference", "alibi,roper"]) == 0
    return path / "report"


def test_the_report_has_the_verdict_over_tasks_everywhere(written):
    data = json.loads((written / "comparison.json").read_text(), parse_constant=pytest.fail)
    over = data["over_tasks"]
    assert [one["verdict"] for one in over["variants"]] == [None, "better", "inconclusive"]
    assert over["ranks"]["sort"].keys() == {"rope", "roper", "alibi"}
    for name in ("report.md", "report.html"):
        text = (written / name).read_text()
        assert "verdict over tasks" in text
        assert "6 tasks won, 0 lost" in text
    assert "--reference alibi,roper" in (written / "report.md").read_text()
    assert {f"figures/critical_difference.{e}" for e in ("png", "svg", "pdf", "csv")} <= {
        str(file.relative_to(written)) for file in written.rglob("*")
    }


def test_the_terminal_has_the_verdict_over_tasks(tmp_path):
    console = Console(width=200, record=True, file=io.StringIO())
    print_task_set(compare_tasks(several(tmp_path / "s")), console)
    text = console.export_text()
    assert "roper: better than rope over 6 tasks" in text
    assert "tasks won : lost" in text


def test_groups_are_the_largest_sets_within_the_critical_difference():
    assert groups([1.0, 1.5, 2.5, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert groups([1.0, 1.5, 2.0], 1.0) == [(0, 2)]
    assert groups([1.0, 3.0], 1.0) == []
    assert groups([1.0, 3.0, 3.0], np.inf) == [(0, 2)]


@pytest.mark.parametrize("arms", [2, 14])
def test_the_figure_of_ranks_is_drawn_the_same_twice(tmp_path, arms):
    own = {(task, f"$_a{j}%"): noise(100 * i + j, 3) for i, task in enumerate(TASKS) for j in range(arms)}
    ranking = compare_tasks(several(tmp_path / "s", own=own)).ranking
    (plot,) = ranking_plots()
    numbers = plot.prepare(ranking)
    assert list(numbers["mean_rank"]) == sorted(numbers["mean_rank"])
    assert (len(numbers), numbers["baseline"].sum()) == (arms, 1)
    assert render(plot, numbers).files == render(plot, numbers).files
    figure = Figure(layout="constrained")
    plot.draw(numbers, figure)
    assert [text.get_text().split(" (")[0] for text in figure.axes[0].get_yticklabels()] == list(numbers["label"])
    plot.draw(numbers.iloc[:0], Figure(layout="constrained"))


def test_a_study_of_one_task_takes_a_reference_and_has_nothing_over_tasks(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(0, 4), "roper": noise(1, 4)}, changes={("rope", 0): changed()})
    found = compare_tasks(tmp_path / "s", reference=[0, 1])
    assert (found.aggregate, found.ranking, found.remarks) == (None, None, [])


def test_text_and_python_values_are_read_alike():
    for given in ("0,1", "[0, 1]", [0, 1], (0, 1), "0.0, 1e0", ["0", "1"]):
        assert parse(given, ["copy"], str).values == {None: (0, 1)}
    for given in ("off, on", ["off", "on"]):
        assert parse(given, ["copy"], str).variants == ("off", "on")
    assert parse([False, True], ["copy"], str).variants == ("false", "true")
    assert parse("{copy: [0, 1]}", ["copy"], str) == parse({"copy": (0, 1)}, ["copy"], str)
    assert parse(None, [], str) is None

"""Studies of several tasks: each task against its own baseline, Holm over all, what is left out, and how it is told."""

import io
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fake_study import changed, ending, never_started, noise, suite, write_study
from matplotlib.figure import Figure
from rich.console import Console
from statsmodels.stats.multitest import multipletests

from ablate.records import Status
from analysis import report
from analysis.captions import caption
from analysis.compare import main as compare_main
from analysis.comparison import compare
from analysis.load import load_study
from analysis.plots.base import aggregate_plots, all_plots, render
from analysis.statistics.verdict import Verdict
from analysis.study import StudyError
from analysis.summary import print_summary
from analysis.task_sets import compare_tasks

SHIFTS = {"copy": 0.0, "sort": 1.0, "count": 5.0}
BASE = noise(2, 6)
ARMS = {"rope": BASE, "roper": [b - 0.05 + 0.003 * (-1) ** i for i, b in enumerate(BASE)], "none": noise(3, 6)}
PLOTS = {plot.name: plot for plot in aggregate_plots()}


def noisy(path, tasks=SHIFTS, **more):
    """A study whose values are independent between tasks."""
    values = {
        (task, arm): [x + SHIFTS[task] for x in noise(100 * i + j, 6)]
        for i, task in enumerate(SHIFTS)
        for j, arm in enumerate(ARMS)
    }
    suite(path, ARMS, shifts={task: SHIFTS[task] for task in tasks}, values=values, **more)
    return compare_tasks(path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The folder of such a study; for tests that write nothing into it."""
    path = tmp_path_factory.mktemp("plain") / "s"
    noisy(path)
    return path


def verdicts(task_set):
    return {
        (task, result.variant.label): against.judgement.verdict
        for task, one in task_set.comparisons.items()
        for result, against in one.others
    }


def test_a_study_of_one_task_is_compared_as_before(tmp_path):
    write_study(tmp_path / "s", ARMS)
    task_set = compare_tasks(tmp_path / "s", baseline="roper", margin="1%")
    assert not task_set.several
    assert (task_set.aggregate, task_set.remarks) == (None, [])
    alone = compare(tmp_path / "s", baseline="roper", margin="1%")
    assert caption(task_set.first) == caption(alone)
    assert [r.against and r.against.p_holm for r in task_set.first.results] == [
        r.against and r.against.p_holm for r in alone.results
    ]


def test_tasks_are_never_compared_with_one_another(plain):
    with pytest.raises(StudyError, match=r"has 3 tasks, .* copy, sort, count"):
        compare(plain)
    alone = compare(plain, task="sort")
    assert [result.variant.label for result in alone.results] == list(ARMS)
    assert alone.family == 6
    among = compare_tasks(plain).comparisons["sort"]
    assert [against.p_holm for _, against in alone.others] == [against.p_holm for _, against in among.others]


def test_every_task_has_its_own_baseline(plain):
    task_set = compare_tasks(plain)
    assert list(task_set.comparisons) == list(SHIFTS)
    for i, one in enumerate(task_set.comparisons.values()):
        assert one.question.baseline.label == "rope"
        delta = np.mean(noise(100 * i + 1, 6)) - np.mean(noise(100 * i, 6))
        assert one.result("roper").against.difference.mean == pytest.approx(delta)


def test_holm_goes_over_the_comparisons_of_all_tasks(plain):
    task_set = compare_tasks(plain)
    every = [against for one in task_set.comparisons.values() for _, against in one.others]
    assert len(every) == 6
    expected = multipletests([one.difference.p for one in every], method="holm")[1]
    assert [one.p_holm for one in every] == pytest.approx(list(expected))
    for one in task_set.comparisons.values():
        assert one.family == 6
        assert "p Holm-corrected over 6 comparisons, those of all tasks" in caption(one)


@pytest.mark.parametrize("name", ["roper", "attention=roper", "sort roper"])
def test_the_baseline_is_named_with_or_without_a_task(plain, name):
    task_set = compare_tasks(plain, baseline=name)
    assert {one.question.baseline.label for one in task_set.comparisons.values()} == {"roper"}
    assert task_set.aggregate.baseline == "roper"


@pytest.mark.parametrize("name", ["alibi", "sort", "task=sort"])
def test_a_baseline_that_is_no_variant_is_refused(plain, name):
    with pytest.raises(StudyError, match=f"no baseline '{name}' .* the variants are: rope, roper, none"):
        compare_tasks(plain, baseline=name)


def test_a_metric_that_no_task_has_is_refused(plain):
    with pytest.raises(StudyError, match="did you mean eval/loss"):
        compare_tasks(plain, "eval/los")


def test_a_margin_in_per_cent_is_of_each_tasks_baseline(tmp_path):
    suite(tmp_path / "s", ARMS, shifts=SHIFTS)
    task_set = compare_tasks(tmp_path / "s", margin="2%")
    margins = {task: one.question.margin for task, one in task_set.comparisons.items()}
    assert margins == pytest.approx({task: 0.02 * (np.mean(BASE) + shift) for task, shift in SHIFTS.items()})


def test_the_order_of_tasks_changes_no_verdict(plain, tmp_path):
    one, other = compare_tasks(plain), noisy(tmp_path / "t", tasks=["count", "copy", "sort"])
    assert list(other.comparisons) == ["count", "copy", "sort"]
    assert verdicts(one) == verdicts(other)
    for task, found in one.comparisons.items():
        for result, against in found.others:
            p = other.comparisons[task].result(result.variant.label).against.p_holm
            assert p == pytest.approx(against.p_holm)


def test_two_tasks_are_compared_and_not_put_together(tmp_path):
    task_set = noisy(tmp_path / "s", tasks=["copy", "sort"])
    assert task_set.several
    assert task_set.aggregate is None
    aggregate, verdict = task_set.remarks
    assert aggregate.startswith("no aggregate over tasks: it takes 3 ")
    assert verdict == "no verdict over tasks: it takes 5 such tasks, and there are 2"


def test_a_variant_missing_on_a_task_is_told_and_that_task_is_not_put_together(tmp_path):
    suite(tmp_path / "s", ARMS, shifts={**SHIFTS, "add": 2.0}, leave_out=[("sort", "none")])
    task_set = compare_tasks(tmp_path / "s")
    assert task_set.aggregate.tasks == ("copy", "count", "add")
    assert task_set.remarks[0] == "task sort is in no aggregate: no run of none has ended"
    assert [r.variant.label for r in task_set.comparisons["sort"].results] == ["rope", "roper"]
    assert task_set.first.family == 7


def test_a_variant_whose_runs_have_not_ended_on_a_task_is_missing_there(tmp_path):
    changes = {("sort", "none", seed): never_started for seed in range(6)}
    task_set = noisy(tmp_path / "s", changes=changes)
    assert task_set.remarks[0] == "task sort is in no aggregate: no run of none has ended"
    assert task_set.aggregate is None


def test_a_task_without_the_baseline_is_left_out_and_told(tmp_path):
    suite(tmp_path / "s", ARMS, shifts=SHIFTS, leave_out=[("sort", "rope")])
    task_set = compare_tasks(tmp_path / "s")
    assert list(task_set.comparisons) == ["copy", "count"]
    assert task_set.remarks[0] == "task sort is left out: it has no rope, the baseline, only roper, none"
    other = compare_tasks(tmp_path / "s", baseline="none")
    assert list(other.comparisons) == list(SHIFTS)
    assert other.aggregate is None


def test_a_task_without_the_metric_is_left_out_and_told(tmp_path):
    lacking = changed(metrics={"eval/accuracy": 0.5})
    changes = {("sort", arm, seed): lacking for arm in ARMS for seed in range(6)}
    task_set = noisy(tmp_path / "s", changes=changes)
    assert task_set.remarks[0] == "task sort is left out: its runs have no eval/loss, only eval/accuracy"


def test_with_no_task_left_the_reasons_are_given(tmp_path):
    lacking = changed(metrics={"eval/accuracy": 0.5})
    changes = {("copy", "rope", seed): lacking for seed in range(6)}
    suite(
        tmp_path / "s", ARMS, shifts={"copy": 0, "sort": 1}, changes=changes,
        leave_out=[("sort", "rope"), ("copy", "roper"), ("copy", "none")],
    )  # fmt: skip
    with pytest.raises(StudyError, match=r"no task .* can be compared \(copy: its .*; sort: it has no rope"):
        compare_tasks(tmp_path / "s")


@pytest.mark.parametrize("transform", ["none", "log"])
def test_a_task_on_which_every_run_diverged_is_listed_without_a_mean(tmp_path, transform):
    changes = {("sort", arm, seed): ending(Status.diverged) for arm in ARMS for seed in range(6)}
    noisy(tmp_path / "s", changes=changes)
    task_set = compare_tasks(tmp_path / "s", margin="2%", transform=transform)
    sort = task_set.comparisons["sort"]
    assert [result.counts["diverged"] for result in sort.results] == [6, 6, 6]
    assert all(result.summary.mean is None for result in sort.results)
    assert {against.judgement.verdict for _, against in sort.others} <= {Verdict.unstable, Verdict.insufficient}
    assert task_set.first.family == 6
    assert task_set.aggregate is None
    assert "task sort is in no aggregate: no run has finished" in task_set.remarks


def test_a_baseline_without_a_value_on_one_task_leaves_the_others_their_margin(tmp_path):
    changes = {("sort", "rope", seed): ending(Status.failed) for seed in range(6)}
    noisy(tmp_path / "s", changes=changes)
    task_set = compare_tasks(tmp_path / "s", margin="2%")
    assert task_set.comparisons["sort"].question.margin is None
    assert task_set.remarks[0] == "task sort has no margin: no run of its baseline has finished"
    assert task_set.remarks[1].startswith("task sort is in no aggregate: fewer than 3 runs of rope, the baseline, have")
    assert task_set.comparisons["copy"].question.margin is not None
    assert compare_tasks(tmp_path / "s", margin=0.01).comparisons["sort"].question.margin == 0.01


def test_tasks_may_have_different_seeds(tmp_path):
    few = {("sort", arm): [x + 1 for x in own[:4]] for arm, own in ARMS.items()}
    suite(tmp_path / "s", ARMS, shifts=SHIFTS, values=few)
    study = load_study(tmp_path / "s")
    task_set = compare_tasks(replace(study, loaded=tuple(run for run in study.loaded if run.record is not None)))
    assert [one.study.seeds for one in task_set.comparisons.values()] == [tuple(range(n)) for n in (6, 4, 6)]
    assert task_set.comparisons["sort"].result("roper").against.difference.n == 4
    (rope, *_) = task_set.aggregate.variants
    assert (rope.n_runs, rope.iqm.n) == (16, 6)


def test_a_variant_has_one_style_in_the_figures_of_all_tasks(tmp_path):
    suite(tmp_path / "s", ARMS, shifts={**SHIFTS, "add": 2.0}, leave_out=[("sort", "roper")], curves=True)
    task_set = compare_tasks(tmp_path / "s")
    expected = {"rope": 0, "roper": 1, "none": 2}
    frames = [plot.prepare(one) for one in task_set.comparisons.values() for plot in all_plots()]
    frames += [plot.prepare(task_set.aggregate) for plot in aggregate_plots()]
    for numbers in (frame for frame in frames if "order" in frame):
        assert all(expected[a] == b for a, b in zip(numbers["label"], numbers["order"], strict=True))


def test_looks_are_told_by_task_and_beside_the_aggregate(tmp_path):
    fewer = {label: values[:3] for label, values in ARMS.items()}
    suite(tmp_path / "s", fewer, shifts=SHIFTS, looks=[27])
    suite(tmp_path / "s", ARMS, shifts=SHIFTS, looks=[54], sweep="20260201T000000-bbbb")
    task_set = compare_tasks(tmp_path / "s")
    for one in task_set.comparisons.values():
        assert one.looks == [3, 6]
        assert "anytime-valid" in caption(one)
    text = printed(tmp_path / "s")
    assert "Exploratory: they are for a single look, and the study was looked at 3, 6 seeds." in text


def printed(study):
    console = Console(width=400, record=True, file=io.StringIO())
    print_summary(study, "latest", console)
    return console.export_text()


def test_the_summary_shows_a_table_per_task_then_the_verdicts_and_the_aggregate(plain):
    text = printed(plain)
    places = [text.index(part) for part in ("task copy ─", "task sort ─", "task count ─", "all tasks ─", "IQM score")]
    assert places == sorted(places)
    assert text.count("variant ") >= 5


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("studies") / "copy_repeat"
    shifts = {"copy": 0.0, "big/sort it": 1.0, "big-sort-it": 5.0}
    changes = {("copy", "none", 1): ending(Status.diverged)}
    suite(path, ARMS, shifts=shifts, changes=changes, curves=True, looks=[54])
    assert report.main([str(path), "--margin", "2%"]) == 1
    return path / "report"


FOLDERS = {"copy": "copy", "big/sort it": "big-sort-it", "big-sort-it": "big-sort-it-2"}


def test_tables_and_figures_have_a_folder_per_task_and_those_of_all_are_beside_it(written):
    found = {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()}
    assert {f"tables/{name}.{e}" for name in ("verdicts", "aggregate") for e in ("md", "csv", "tex")} <= found
    assert {f"figures/performance_profile.{e}" for e in ("png", "svg", "pdf", "csv")} <= found
    for folder in FOLDERS.values():
        assert {f"tables/{folder}/comparison.{e}" for e in ("md", "csv", "tex")} <= found
        assert f"figures/{folder}/paired_difference.svg" in found
    assert not {"tables/comparison.md", "figures/paired_difference.svg"} & found


def test_labels_in_latex_are_unique(written):
    labels = [re.search(r"\\label\{(.*?)\}", path.read_text()).group(1) for path in sorted(written.rglob("*.tex"))]
    assert len(labels) == len(set(labels)) > 9


def test_every_table_of_a_task_names_it(written):
    for task, folder in FOLDERS.items():
        text = (written / "tables" / folder / "comparison.md").read_text()
        assert f"Task {task}." in text


def test_markdown_and_page_have_the_aggregate_first_and_a_section_per_task(written):
    text = (written / "report.md").read_text()
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert headings == ["All tasks", *FOLDERS]
    for target in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (written / target).is_file()
    page = (written / "report.html").read_text()
    places = [page.index(part) for part in ("IQM score", "<h1>copy</h1>", "<h1>big/sort it</h1>")]
    assert places == sorted(places)


def test_comparison_json_lists_tasks_and_names_the_task_of_every_variant(written):
    data = json.loads((written / "comparison.json").read_text(), parse_constant=pytest.fail)
    assert data["tasks"] == list(FOLDERS)
    assert [(one["task"], one["label"]) for one in data["variants"]] == [(t, arm) for t in FOLDERS for arm in ARMS]
    assert len({tuple(one) for one in data["variants"]}) == 1
    assert (data["metric"], data["direction"], data["baseline"]) == ("eval/loss", "lower", "rope")
    assert (data["planned_seeds"], data["looks"], data["margin"]) == (6, [6], None)
    assert data["by_task"]["copy"]["margin"] == pytest.approx(0.02 * np.mean(BASE))
    scored = data["aggregate"]["variants"]
    assert [one["label"] for one in scored] == list(ARMS)
    assert scored[2]["scores"]["copy"]["1"] is None  # it diverged
    assert scored[1].keys() >= {"iqm", "iqm_ci", "delta", "delta_ci", "wins", "wins_ci", "runs", "n_failed", "profile"}
    assert data["aggregate"]["tasks"] == list(FOLDERS)


def test_runs_csv_holds_the_runs_of_all_tasks(written):
    frame = pd.read_csv(written / "runs.csv")
    assert frame.groupby("task", sort=False).size().to_dict() == dict.fromkeys(FOLDERS, 18)


def test_the_same_study_gives_the_same_bytes(written, tmp_path):
    copy = tmp_path / "elsewhere"
    shutil.copytree(written.parent, copy, ignore=shutil.ignore_patterns("report", ".analysis_cache"))
    report.main([str(copy), "--margin", "2%"])
    files = sorted(path.relative_to(written) for path in written.rglob("*") if path.is_file())
    for file in files:
        assert (written / file).read_bytes() == (copy / "report" / file).read_bytes(), file


def test_a_report_on_one_task_says_which_and_has_plain_names(tmp_path, capsys):
    noisy(tmp_path / "s")
    assert report.main([str(tmp_path / "s"), "--task", "sort"]) == 0
    text = (tmp_path / "s" / "report" / "report.md").read_text()
    assert text.startswith("# copy_repeat, sort: eval/loss\n")
    assert "python -m analysis.report multirun/copy_repeat --task sort" in text
    assert (tmp_path / "s" / "report" / "tables" / "comparison.md").is_file()
    assert "all tasks ──" not in capsys.readouterr().out
    assert report.main([str(tmp_path / "s"), "--task", "sorting"]) == 2
    assert "there is: copy, sort, count" in capsys.readouterr().err


def test_two_variants_are_compared_on_the_task_that_is_named(tmp_path, capsys):
    suite(tmp_path / "s", ARMS, shifts=SHIFTS)
    assert compare_main([str(tmp_path / "s"), "roper", "rope"]) == 2
    assert "choose one (--task, in Python task=...) of copy, sort, count" in capsys.readouterr().err
    assert compare_main([str(tmp_path / "s"), "roper", "rope", "--task", "sort"]) == 0
    capsys.readouterr()
    assert compare_main([str(tmp_path / "s"), "rope", "roper", "--task", "sort", "--json"]) == 12
    assert json.loads(capsys.readouterr().out)["label"] == "rope"


def test_figures_of_the_aggregate_are_found_by_themselves():
    assert "performance_profile" in PLOTS
    assert not PLOTS.keys() & {plot.name for plot in all_plots()}


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("case", ["one variant", "one seed", "all of one failed", "many"])
def test_every_figure_of_the_aggregate_draws_little_and_odd_data_the_same_twice(tmp_path, name, case):
    arms = {
        "one variant": {"rope": BASE},
        "one seed": {"rope": [0.4], "roper": [0.5]},
        "many": {f"$_a%{i}": noise(i, 4) for i in range(12)},
    }.get(case, ARMS)
    lost = [(task, "none", seed) for task in SHIFTS for seed in range(6)] if case == "all of one failed" else []
    suite(tmp_path / "s", arms, shifts=SHIFTS, changes=dict.fromkeys(lost, ending(Status.diverged)))
    reference = [0, 6] if case == "one seed" else None  # one seed of the baseline gives no scale
    numbers = PLOTS[name].prepare(compare_tasks(tmp_path / "s", reference=reference).aggregate)
    assert set(numbers["label"]) == set(arms)
    drawn = render(PLOTS[name], numbers)
    assert drawn.files == render(PLOTS[name], numbers).files
    figure = Figure(layout="constrained")
    PLOTS[name].draw(numbers, figure)
    assert len(figure.axes[0].collections) == (0 if case == "many" else len(arms))

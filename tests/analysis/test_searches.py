"""Searches and tunings in the report: numbers by hand, odd files, both formats."""

import itertools
import json
import re
from pathlib import Path

import pytest

from analysis.plots.base import render, search_plots, tuning_plots
from analysis.report import main as report
from analysis.search_parts import search_parts
from analysis.searches import best_so_far, expected_best, load_searches
from tests.analysis.fake_study import write_study

SPACE = {"optimizer.lr": "tag(log,interval(0.0001,0.01))", "model.width": "choice(32,64)"}


def trial(number: int, value, state: str = "finished", **more) -> dict:
    values = None if value is None else (value if isinstance(value, list) else [value])
    lr = 1e-4 * (number + 1)
    found = {
        "number": number,
        "state": state,
        "values": values,
        "params": {"optimizer.lr": lr, "model.width": str(32 * (1 + number % 2))},
        "curve": [[10, 2.0], [20, 1.5]],
        "cell": f"{number}",
        "label": f"lr={lr}",
        "folder": f"f{number}",
        "feasible": True,
        "reason": None,
        "steps": 100,
        "seconds": 1.5,
    }
    return {**found, **more}


def search(trials: list[dict], name: str = "search", **more) -> dict:
    found = {
        "study_name": name,
        "metric": "eval/loss",
        "direction": "minimize",
        "metrics": ["eval/loss"],
        "directions": ["minimize"],
        "sampler": "TPESampler(seed=0)",
        "pruner": "none",
        "space": SPACE,
        "log": ["optimizer.lr"],
        "fixed": [],
        "seeds": [0, 1],
        "n_trials": len(trials),
        "trials": trials,
        "importances": {"eval/loss": {"optimizer.lr": 0.75, "model.width": 0.25}},
    }
    return {**found, **more}


def write(folder: Path, *searches: dict, tunings: tuple[dict, ...] = ()) -> Path:
    for one in searches:
        path = folder / "search" / f"{one['study_name']}.trials.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(one))
    for one in tunings:
        path = folder / "tuning" / f"{one['name']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(one))
    return folder


def tuning(*variants: tuple[str, str]) -> dict:
    return {
        "name": "tune",
        "metric": "eval/loss",
        "direction": "minimize",
        "budget": 4,
        "space": SPACE,
        "tuning_seeds": [1000],
        "report_seeds": [0, 1],
        "report_sweep": "20260101T000000-aaaaaaaa",
        "variants": [
            {"label": label, "search": name, "chosen": {"optimizer.lr": 1e-3, "model.width": "64"}, "score": 0.5}
            for label, name in variants
        ],
    }


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_expected_best_of_k_is_the_mean_over_all_subsets(sign):
    values = [3.0, 1.0, 4.0, None, 1.5, 9.0]
    worst = max if sign > 0 else min
    filled = [worst(v for v in values if v is not None) if value is None else value for value in values]
    best = min if sign > 0 else max
    for k, found in enumerate(expected_best(values, sign), 1):
        subsets = list(itertools.combinations(filled, k))
        assert found == pytest.approx(sum(best(subset) for subset in subsets) / len(subsets))


def test_the_expected_best_of_nothing_is_nothing():
    assert expected_best([None, None], 1.0) == []
    assert expected_best([], 1.0) == []


def test_the_best_so_far_keeps_the_best_and_waits_for_the_first():
    assert best_so_far([None, 3.0, None, 2.0, 5.0], 1.0) == [None, 3.0, 3.0, 2.0, 2.0]
    assert best_so_far([1.0, 3.0, 2.0], -1.0) == [1.0, 3.0, 3.0]


NASTY = {
    "one trial": [trial(0, 0.5)],
    "all failed": [trial(0, None, "failed"), trial(1, None, "failed")],
    "no curve": [trial(i, 1.0 + i, curve=[]) for i in range(8)],
    "equal values": [trial(i, 1.0) for i in range(8)],
    "pruned and lost": [trial(i, 1.0 + i) for i in range(4)] + [trial(4, None, "pruned"), trial(5, None, "lost")],
    "choices only": [trial(i, 1.0 + i, params={"optimizer.lr": "[2,2]", "model.width": "a|b_<x>"}) for i in range(7)],
    "a parameter missing": [trial(0, 1.0, params={"optimizer.lr": 1e-3}), trial(1, 2.0)],
    "not feasible": [trial(i, 1.0 + i, feasible=i > 0) for i in range(7)],
    "no values kept": [trial(i, [None]) for i in range(3)],
}


@pytest.mark.parametrize("name", NASTY)
def test_every_search_has_its_part_and_its_figures(tmp_path, name):
    (one,) = load_searches(write(tmp_path, search(NASTY[name]))).searches
    for plot in search_plots():
        numbers = plot.prepare(one)
        if not numbers.empty:
            assert render(plot, numbers).files["png"][:4] == b"\x89PNG"
    from analysis.plots.base import Earlier

    (part,) = search_parts(load_searches(tmp_path), Earlier())
    assert part.sentences[0].startswith(f"{len(one.counted)} of {len(NASTY[name])} trials")


def test_sentences_name_the_best_feasible_one_and_what_flatters(tmp_path):
    from analysis.plots.base import Earlier

    trials = [trial(0, 0.4, feasible=False), trial(1, 0.5), trial(2, 0.6), trial(3, 0.7), trial(4, None, "lost")]
    (part,) = search_parts(load_searches(write(tmp_path, search(trials))), Earlier())
    text = " ".join(part.sentences)
    assert "4 of 5 trials (4 finished)" in text
    assert "1 more trials were lost" in text
    assert "Best: trial 1, eval/loss 0.5000" in text
    assert "it flatters" in text
    (front, *_) = part.tables[0].rows
    assert [cell.text for cell in front[:3]] == ["0", "finished, breaks a constraint", "0.4000"]


def test_two_metrics_have_a_front_by_hand(tmp_path):
    points = [[1.0, 5.0], [2.0, 3.0], [3.0, 4.0], [4.0, 1.0]]
    data = search([trial(i, point) for i, point in enumerate(points)], importances=None)
    data |= {"metrics": ["eval/loss", "seconds"], "directions": ["minimize", "minimize"]}
    (one,) = load_searches(write(tmp_path, data)).searches
    (front,) = [plot for plot in search_plots() if plot.name == "search_front"]
    assert list(front.prepare(one)["front"]) == [True, True, False, True]


def test_a_tuning_shows_each_variant_and_its_searches_are_not_told_twice(tmp_path):
    trials = [trial(i, 1.0 + i) for i in range(4)]
    searches = [search(trials, "tune-rope"), search(trials, "tune-none")]
    found = load_searches(write(tmp_path, *searches, tunings=(tuning(("rope", "tune-rope"), ("none", "tune-none")),)))
    assert not found.searches
    (one,) = found.tunings
    for plot in tuning_plots():
        numbers = plot.prepare(one)
        assert set(numbers["label"]) == {"rope", "none"}
        render(plot, numbers)


def test_files_that_cannot_be_read_are_told_and_left_out(tmp_path):
    write(tmp_path, search([trial(0, 1.0)]))
    (tmp_path / "search" / "broken.trials.json").write_text('{"study_name": "x"')
    (tmp_path / "search" / "other.trials.json").write_text('{"study_name": "x"}')
    found = load_searches(tmp_path)
    assert [one.name for one in found.searches] == ["search"]
    assert len(found.problems) == 2


def test_the_report_of_a_study_has_its_searches_in_both_formats_and_the_same_bytes(tmp_path, capsys):
    study = write_study(tmp_path / "study", {"rope": [0.4, 0.5], "roper": [0.3, 0.4]})
    trials = [trial(i, 1.0 + i / 10) for i in range(8)] + [trial(8, None, "pruned")]
    evil = search(trials, "a|b_<script>alert(1)</script>")
    evil["study_name"] = "evil"
    evil["space"] = {"optimizer.lr": "<script>alert(1)</script>", "model.width": "choice(32,64)"}
    write(study.path, evil)
    report([str(study.path)])
    capsys.readouterr()
    folder = study.path / "report"
    page, text = (folder / "report.html").read_text(), (folder / "report.md").read_text()
    assert "<h2>Search: evil</h2>" in page
    assert "## Search: evil" in text
    assert "<script>alert(1)" not in page
    figures = {path.stem for path in (folder / "figures" / "search-evil").glob("*.png")}
    assert {"search_history", "search_slices", "search_importances", "search_contours"} <= figures
    assert all(f"figures/search-evil/{name}.svg" in text for name in figures)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    report([str(study.path)])
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert re.search(r"^\| trial \|", (folder / "tables/search-evil/trials.md").read_text(), re.MULTILINE)


def test_a_study_with_nothing_but_a_search_is_told_first_as_that(tmp_path, capsys):
    study = write_study(tmp_path / "study", {"lr=1": [0.4, 0.5], "lr=2": [0.3, 0.4]})
    (sweep,) = study.sweep_ids()
    plan = study.read_sweep(sweep)
    plan.search = {"storage": "x", "study_name": "search", "metric": "eval/loss", "pruner": None, "trials": {}}
    study.write_sweep(plan)
    write(study.path, search([trial(i, 1.0 + i) for i in range(5)]))
    report([str(study.path)])
    assert "these cells are the trials of a search" in " ".join(capsys.readouterr().out.split())
    text = (study.path / "report" / "report.md").read_text()
    assert text.index("## Search: search") < text.index("| variant")
    page = (study.path / "report" / "report.html").read_text()
    assert page.index("<h2>Search: search</h2>") < page.index('id="comparison"')


def test_the_latest_sweep_is_the_newest_that_compares(tmp_path):
    from analysis.load import load_study

    study = write_study(tmp_path / "study", {"rope": [0.4, 0.5], "roper": [0.3, 0.4]})
    write_study(tmp_path / "study", {"lr=1": [0.4], "lr=2": [0.3]}, sweep="20270101T000000-bbbb")
    plan = study.read_sweep("20270101T000000-bbbb")
    plan.search = {"storage": "x", "study_name": "s", "metric": "eval/loss", "pruner": None, "trials": {}}
    study.write_sweep(plan)
    assert [one.label for one in load_study(study.path).variants] == ["rope", "roper"]
    assert [one.label for one in load_study(study.path, "20270101T000000-bbbb").variants] == ["lr=1", "lr=2"]

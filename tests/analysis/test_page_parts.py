"""What the page is made of, without a browser: the interactive figure, the runs and their links, sections."""

import json
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from fake_study import changed, ending, never_started, noise, study_of, write_study
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.records import Status
from analysis.comparison import compare
from analysis.load import load_study
from analysis.page.curves import POINTS, SEED_CURVES, SYMBOLS, interactive
from analysis.page.render import render_page
from analysis.page.runs import anchors, change, links_to_runs, run_groups
from analysis.page.tables import to_html
from analysis.plots import learning_curves
from analysis.plots.style import COLOURS, LINES, MARKERS, style_of
from analysis.sections import report_of
from analysis.study import Variant
from analysis.tables import Cell, Column, Table
from analysis.task_sets import compare_tasks


def curve_rows(order, seed, values, *, status="ok", kind="seed", tokens=64):
    steps = range(len(values))
    return [
        {
            "kind": kind,
            "order": order,
            "label": f"v{order}",
            "seed": seed,
            "step": step,
            "tokens": step * tokens,
            "value": value,
            "low": None,
            "high": None,
            "n": None,
            "status": status if kind == "seed" else None,
            "metric": "eval/loss",
        }
        for step, value in zip(steps, values, strict=True)
    ]


def frame(*parts):
    return pd.DataFrame([row for part in parts for row in part], columns=learning_curves.COLUMNS)


def figure_of(numbers):
    return json.loads(interactive(numbers).json)


def numbers_in(array):
    """An array of a figure, in plotly's compact form or as a list."""
    if isinstance(array, list):
        return array
    return np.frombuffer(b64decode(array["bdata"]), dtype=array["dtype"]).tolist()


def test_a_variant_is_its_mean_its_seeds_and_its_failures_in_one_group_of_the_legend(tmp_path):
    values = {"rope": noise(0, 3), "roper": noise(1, 3)}
    write_study(tmp_path / "s", values, curves=True, changes={("roper", 1): ending(Status.diverged)})
    figure = figure_of(learning_curves.prepare(compare(tmp_path / "s")))
    kinds = [(trace["name"], trace["legendgroup"], trace["mode"], trace["showlegend"]) for trace in figure["data"]]
    assert kinds == [
        ("rope", "0", "lines+markers", True),
        ("rope", "0", "lines", False),
        ("roper", "1", "lines+markers", True),
        ("roper", "1", "lines", False),
        ("roper", "1", "lines", False),
        ("roper", "1", "markers", False),
    ]
    assert [trace["line"]["dash"] for trace in figure["data"][3:5]] == ["solid", "dot"]
    go.Figure(figure)  # raises on a key that plotly does not know


def test_seeds_of_one_trace_are_apart_and_each_point_knows_its_seed():
    (trace,) = figure_of(frame(curve_rows(0, 7, [0.5, 0.25]), curve_rows(0, 9, [1.0, 0.125])))["data"]
    assert trace["customdata"] == [7, 7, 7, 9, 9, 9]
    assert trace["x"] == [0, 1, 1, 0, 1, 1]
    np.testing.assert_array_equal(numbers_in(trace["y"]), [0.5, 0.25, np.nan, 1.0, 0.125, np.nan])


def test_the_mean_tells_n_and_its_interval():
    rows = [{**row, "n": 3, "low": 0.4, "high": 0.6} for row in curve_rows(0, None, [0.5], kind="mean")]
    mean = figure_of(frame(rows, curve_rows(0, 1, [0.5])))["data"][0]
    assert mean["text"] == ["3, 95 % [0.40, 0.60]"]
    lonely = [{**row, "n": 1} for row in curve_rows(0, None, [0.5], kind="mean")]
    assert figure_of(frame(lonely))["data"][0]["text"] == ["1"]


def test_a_run_that_blew_up_ends_in_a_cross_at_the_edge_and_does_not_stretch_the_axis():
    numbers = frame(curve_rows(0, 1, [1.0, 0.5]), curve_rows(0, 2, [1.0, 1e9, None], status="diverged"))
    figure = figure_of(numbers)
    cross = figure["data"][-1]
    low, high = figure["layout"]["yaxis"]["range"]
    assert (low, high) == pytest.approx((0.475, 1.025))
    assert (cross["x"], cross["y"]) == ([1], [high])
    assert cross["customdata"] == ["seed 2, diverged, last value 1e+09"]


def test_a_logarithmic_axis_is_offered_for_positive_values_only():
    positive, negative = (interactive(frame(curve_rows(0, 1, values))) for values in ([1.0, 0.1], [1.0, -0.1]))
    assert positive.log
    assert json.loads(positive.json)["layout"]["meta"]["range"]["log"] == pytest.approx([-1.05, 0.05])
    assert not negative.log


def test_tokens_are_offered_when_every_variant_sees_as_many_at_each_step():
    even = frame(curve_rows(0, 1, [1.0, 0.5], tokens=64), curve_rows(1, 1, [1.0, 0.5], tokens=32))
    assert interactive(even).tokens
    assert [trace["meta"]["tokens"] for trace in figure_of(even)["data"]] == [64, 32]
    uneven = even.assign(tokens=[0, 64, 0, None])
    assert not interactive(uneven).tokens


@settings(max_examples=30)
@given(st.integers(min_value=1, max_value=3 * POINTS))
def test_thinning_keeps_both_ends_and_never_draws_more_than_it_says(length):
    numbers = frame(curve_rows(0, 1, [float(i) for i in range(length)]))
    x = figure_of(numbers)["data"][0]["x"][:-1]
    assert len(x) == min(length, POINTS)
    assert (x[0], x[-1]) == (0, length - 1)
    assert len(set(x)) == len(x)
    assert bool(interactive(numbers).thinned) == (length > POINTS)


def test_a_page_of_forty_variants_with_fifty_seeds_stays_small_and_says_what_it_leaves_out():
    values = [1.0 + 1 / (1 + step) for step in range(POINTS + 10)]
    one = frame(curve_rows(0, 0, values))
    order, seed = np.repeat(np.arange(40), 50 * len(one)), np.tile(np.repeat(np.arange(50), len(one)), 40)
    numbers = pd.concat([one] * 2000).assign(order=order, seed=seed, label=[f"v{place}" for place in order])
    curves = interactive(numbers)
    assert len(curves.json) < 8e6
    share = SEED_CURVES // 40
    assert curves.thinned == (
        "200 of up to 210 points of each curve are drawn; the first 15 of up to 50 seeds of each variant are drawn; "
        "means and crosses are of all."
    )
    drawn = {(trace["name"], seed) for trace in json.loads(curves.json)["data"] for seed in trace["customdata"]}
    assert len(drawn) == 40 * share


def test_colours_dashes_and_markers_are_those_of_the_figures():
    assert set(MARKERS) == set(SYMBOLS)
    means = [curve_rows(order, None, [1.0, 0.5], kind="mean") for order in range(len(COLOURS))]
    for order, trace in enumerate(figure_of(frame(*means))["data"]):
        assert trace["line"]["color"] == style_of(order).colour
        assert trace["marker"]["symbol"] == SYMBOLS[style_of(order).marker]
        assert (trace["line"]["dash"] == "solid") == (order % len(LINES) == 0)
    assert figure_of(frame(*means))["data"][1]["line"]["dash"] == "12.5px,5px"  # 5 and 2 widths of 2.5 pixels


def test_a_label_is_text_in_the_figure_and_cannot_end_the_script():
    text = interactive(frame(curve_rows(0, 1, [1.0])).assign(label="</script><b>")).json
    assert "<" not in text
    assert json.loads(text)["data"][0]["name"] == "&lt;/script&gt;&lt;b&gt;"


def test_curves_without_any_number_do_not_fail():
    assert json.loads(interactive(frame(curve_rows(0, 1, [None, None], status="diverged"))).json)["data"]


# Tables, runs and links


def test_html_is_escaped_sortable_and_breaks_before_brackets_only():
    table = Table("t", [Column("<h>"), Column("n", "right")], [[Cell("<b>"), Cell("1 ± 2 [3, 4]", {"x": 1 / 3})]])
    html = to_html(table, {(0, 1): "#a&b"}, [{"id": '"'}])
    assert '<td class="left" data-title="&lt;h&gt;" data-sort="&lt;b&gt;">&lt;b&gt;</td>' in html
    assert f'data-sort="{1 / 3!r}"><a href="#a&amp;b">1\u00a0±\u00a02 [3,\u00a04]</a>' in html
    assert '<tr id="&#34;">' in html


def test_a_number_that_is_missing_has_nothing_to_sort_by():
    html = to_html(Table("t", [Column("p", "right")], [[Cell("n/a", {"p": None})]]))
    assert 'data-sort=""' in html


@pytest.fixture
def mixed(tmp_path):
    """A study with a run of every sort."""
    values = {"rope": [0.4, 0.41, 0.42], "ro/per": [0.3, 0.31, 0.32]}
    git = {"commit": "0123456789abcdef", "dirty": None}
    changes = {
        ("rope", 0): changed(git=git),
        ("rope", 1): ending(Status.failed),
        ("rope", 2): never_started,
        ("ro/per", 0): changed(git={**git, "dirty": "ff"}),
    }
    factors = {"rope": {"attention": "rope", "p": 1}, "ro/per": {"attention": "roper", "p": 1.0, "width": 8}}
    write_study(tmp_path / "s", values, changes=changes, factors=factors, curves=True)
    return compare(tmp_path / "s")


def test_every_planned_run_has_a_row_with_where_it_came_from(mixed):
    rope, roper = run_groups(mixed, anchors(mixed.study), linked=True)
    texts = [[cell.text for cell in row] for row in rope.table.rows]
    assert texts[0][:7] == ["0", "ok", "0.4", "100/100", "25", "0123456", "aaaaaaaa"]
    assert texts[1][:5] == ["1", "failed", "–", "50/100", "25"]
    assert texts[2] == ["2", "missing", "–", "–", "–", "–", "–", "–"]
    assert roper.table.rows[0][5].text == "0123456+"
    assert (rope.ok, roper.ok) == ("1/3", "3/3")
    assert [row["id"] for row in roper.rows] == ["run-1-0", "run-1-1", "run-1-2"]
    assert roper.links[0, 7] == f"../{roper.table.rows[0][7].text}/"
    assert set(rope.links) == {(0, 7), (1, 7)}


def test_away_from_the_study_a_folder_is_text(mixed):
    for group in run_groups(mixed, anchors(mixed.study), linked=False):
        assert group.links == {}
    assert run_groups(mixed, anchors(mixed.study), linked=False)[0].table.rows[0][7].text.startswith("runs/x-")


def test_a_variant_is_told_by_what_it_changes_and_1_is_1_0(mixed):
    rope, roper = mixed.study.variants
    assert change(mixed.study, rope, rope) == "baseline"
    assert change(mixed.study, roper, rope) == "attention=roper, width=8"
    assert change(mixed.study, rope, roper) == "attention=rope, width=–"
    assert change(mixed.study, Variant("c", "again", rope.factors), rope) == ""


def test_numbers_lead_to_the_runs_of_their_variant_or_to_their_run(mixed):
    tables, places = tables_of(mixed), anchors(mixed.study, "s2-")
    columns = [column.title for column in tables["comparison"].columns]
    links = links_to_runs(tables["comparison"], places)
    assert links[1, columns.index("mean ± SD")] == "#s2-runs-1"
    assert (0, columns.index("wins")) not in links
    assert links_to_runs(tables["failures"], places) == {(0, 1): "#s2-run-0-1", (1, 1): "#s2-run-0-2"}
    assert links_to_runs(tables["cost"], places)[0, 1] == "#s2-runs-0"
    assert not [row for row, _ in links_to_runs(tables["cost"], places) if row == 2]


class Page(HTMLParser):
    """Ids, links and headings of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.targets, self.titles, self._in_title = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.targets += [found["href"]] if "href" in found else []
        self._in_title = tag in ("h1", "h2")

    def handle_data(self, data):
        if self._in_title:
            self.titles.append(data)
            self._in_title = False


def report(study):
    return report_of(compare_tasks(study), "command")


def tables_of(comparison):
    return report(comparison.study).sections[0].tables


def test_a_page_of_two_tasks_has_each_id_once_and_no_link_into_nothing(mixed):
    one = report(mixed.study)
    first, second = (replace(one.sections[0], title=title, folder=f"{title}/") for title in ("first", "second"))
    task_set = replace(one.task_set, left_out={"third": "it has no run"})
    text = render_page(replace(one, task_set=task_set, sections=[first, second]), linked=True)
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    inner = [target[1:] for target in page.targets if target.startswith("#")]
    assert set(inner) <= set(page.ids)
    assert {"s1-run-0-0", "s2-run-0-0", "s1-plot-learning_curves", "s2-plot-learning_curves"} <= set(page.ids)
    assert {"first", "second"} <= set(page.titles)
    assert "task third is left out: it has no run" in text
    assert "Numbers: figures/second/learning_curves.csv" in text
    assert text.count("plotly.js v") == 1


def test_a_page_without_curves_is_written_without_plotly():
    comparison = compare(study_of({"rope": noise(0, 4), "roper": noise(1, 4)}))
    text = render_page(report(comparison.study), linked=False)
    assert len(text) < 1e6
    assert "plotly.js v" not in text
    page = Page(text)
    assert {target[1:] for target in page.targets} <= set(page.ids)


def test_a_table_that_the_page_does_not_know_is_shown_under_its_name(mixed):
    extra = Table("all_pairs", [Column("pair")], [[Cell("a against b")]], "Every pair.")
    one = report(mixed.study)
    (section,) = one.sections
    shown = replace(section, tables={**section.tables, "all_pairs": extra}, drawn=[])
    text = render_page(replace(one, sections=[shown]), linked=False)
    assert re.search(r"<h2>All pairs</h2>.*a against b.*Every pair\.", text, re.DOTALL)


def test_all_versions_that_runs_recorded_are_named(tmp_path):
    changes = {("rope", 0): changed(versions={"torch": "2.13"}), ("rope", 1): changed(versions={"torch": "2.12"})}
    write_study(tmp_path / "s", {"rope": noise(0, 3)}, changes=changes)
    assert "made with torch 2.12, 2.13." in render_page(report(load_study(tmp_path / "s")), linked=True)

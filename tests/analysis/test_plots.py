"""Every plot of the package: numbers tested, drawing smoke-tested. A new module is picked up without an edit."""

import numpy as np
import pytest
from fake_study import changed, curve, ending, measured, noise, planned, write_study
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from ablate.records import Status
from analysis.comparison import compare
from analysis.plots import learning_curves
from analysis.plots.base import all_plots, figures, render
from analysis.plots.style import RC, legend_below, legend_handle, style_of
from analysis.statistics.intervals import t_interval

PLOTS = {plot.name: plot for plot in all_plots()}


THRESHOLD = 0.6
"""All runs that finish are under it at the end, and none is at first."""


def study(tmp_path, arms, **more):
    write_study(tmp_path / "s", arms, curves=True, **more)
    return compare(tmp_path / "s", threshold=THRESHOLD)


FACTORS = {f"{a} {w}": {"attention": a, "width": w} for a in ("rope", "roper") for w in (64, 128, 256)}


def grid(tmp_path):
    """A study for which every plot has something to show: two factors, more than four variants, lengths, compute."""
    arms = {label: noise(i, 4) for i, label in enumerate(FACTORS)}
    changes = {(label, s): measured([128], 1000 + 100 * i) for i, label in enumerate(FACTORS) for s in range(4)}
    return study(tmp_path, arms, factors=FACTORS, changes=changes)


def test_plots_are_found_by_themselves():
    assert {"learning_curves", "paired_difference"} <= PLOTS.keys()
    assert all(plot.title for plot in PLOTS.values())


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("case", ["one run", "two variants", "all of one failed", "no curves"])
def test_every_plot_draws_little_and_odd_data(tmp_path, name, case):
    arms = {"one run": {"rope": [0.4]}}.get(case, {"rope": noise(0, 5), "$_a%": noise(1, 5)})
    changes = {("$_a%", s): ending(Status.diverged) for s in range(5)} if case == "all of one failed" else {}
    write_study(tmp_path / "s", arms, changes=changes, curves=case != "no curves")
    numbers = PLOTS[name].prepare(compare(tmp_path / "s", threshold=THRESHOLD))
    if numbers.empty:
        of_many = ("forest", "heat_map", "interaction", "length_generalisation", "loss_against_compute")
        assert name in of_many or (name in ("learning_curves", "success") and case == "no curves")
        return
    assert set(render(PLOTS[name], numbers).files) == {"png", "svg", "pdf", "csv"}


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_gives_the_same_bytes_twice(tmp_path, name):
    numbers = PLOTS[name].prepare(grid(tmp_path))
    assert not numbers.empty
    assert render(PLOTS[name], numbers).files == render(PLOTS[name], numbers).files


@pytest.mark.parametrize("name", ["learning_curves", "paired_difference"])
def test_labels_in_any_script_are_drawn_without_a_warning(tmp_path, name, recwarn):
    comparison = study(tmp_path, {"日本語 λ": noise(0, 3), "🎉 עברית": noise(1, 3), "हिन्दी العربية": noise(2, 3)})
    assert render(PLOTS[name], PLOTS[name].prepare(comparison)).files["png"]
    assert not recwarn.list


def test_no_figure_stays_open(tmp_path):
    paths = figures(grid(tmp_path), tmp_path / "figures")
    assert len(paths) == 4 * len(PLOTS)
    assert plt.get_fignums() == []


def test_the_numbers_of_the_paired_difference_are_those_of_the_comparison(tmp_path):
    changes = {("roper", 1): ending(Status.diverged)}
    comparison = study(tmp_path, {"rope": noise(0, 5), "roper": noise(1, 5)}, changes=changes)
    numbers = PLOTS["paired_difference"].prepare(comparison)
    against = comparison.result("roper").against
    differences = numbers.loc[numbers["kind"] == "difference", "value"]
    assert list(differences) == list(against.pairs.variant - against.pairs.baseline)
    (delta,) = numbers[numbers["kind"] == "delta"].to_dict("records")
    assert (delta["low"], delta["high"]) == against.difference.interval
    assert (delta["n"], delta["text"]) == (4, str(against.judgement.verdict))
    (failed,) = numbers[numbers["kind"] == "failed"].to_dict("records")
    assert (failed["label"], failed["n"], failed["text"]) == ("roper", 1, "diverged")


def test_the_mean_curve_is_over_finished_seeds_with_a_t_band(tmp_path):
    comparison = study(tmp_path, {"rope": [0.4, 0.5, 0.6, 9.0]}, changes={("rope", 3): ending(Status.diverged)})
    numbers = PLOTS["learning_curves"].prepare(comparison)
    last = numbers[(numbers["kind"] == "mean") & (numbers["step"] == 100)].to_dict("records")[0]
    values = np.array([0.4, 0.5, 0.6]) + np.exp(-4)
    assert last["value"] == pytest.approx(values.mean())
    assert (last["low"], last["high"]) == pytest.approx(tuple(t_interval(values)))
    assert last["n"] == 3
    assert len(numbers[(numbers["kind"] == "seed") & (numbers["step"] == 100)]) == 4


def test_one_seed_is_a_line_without_a_band(tmp_path):
    numbers = PLOTS["learning_curves"].prepare(study(tmp_path, {"rope": [0.4]}))
    assert numbers.loc[numbers["kind"] == "mean", "low"].isna().all()
    figure = Figure()
    PLOTS["learning_curves"].draw(numbers, figure)
    assert not figure.axes[0].collections


def test_curves_of_a_single_point_show_every_seed_and_the_interval(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": [0.4, 0.5, 0.6]})
    for seed, value in enumerate([0.4, 0.5, 0.6]):
        folder.run(planned("rope").folder, seed).append_metrics(curve(value, [100]))
    figure = Figure()
    PLOTS["learning_curves"].draw(PLOTS["learning_curves"].prepare(compare(tmp_path / "s")), figure)
    axes = figure.axes[0]
    assert [line.get_marker() for line in axes.lines] == [".", ".", ".", "o"]
    assert len(axes.collections) == 1


def test_a_long_label_leaves_the_panels_their_width(tmp_path):
    widths = []
    for label in ("roper", "attention=roper,optimizer.lr=0.0003,width=256"):
        write_study(tmp_path / label, {"rope": noise(0, 4), label: noise(1, 4)})
        figure = Figure(layout="constrained")
        PLOTS["paired_difference"].draw(PLOTS["paired_difference"].prepare(compare(tmp_path / label)), figure)
        figure.savefig("/dev/null", format="png")
        widths.append(figure.axes[1].get_window_extent().width)
    assert widths[1] > 0.9 * widths[0]


def test_a_curve_that_blew_up_does_not_flatten_the_others(tmp_path):
    changes = {("rope", 2): changed(metrics={"eval/loss": 1e6}, status=Status.diverged)}
    numbers = PLOTS["learning_curves"].prepare(study(tmp_path, {"rope": [0.4, 0.5, 0.6]}, changes=changes))
    figure = Figure()
    PLOTS["learning_curves"].draw(numbers, figure)
    assert figure.axes[0].get_ylim()[1] < 10


def test_36_variants_are_told_apart_in_colour_and_in_grey():
    styles = [style_of(order) for order in range(36)]
    assert len({(str(s.line), s.marker) for s in styles}) == 36
    assert len({(s.colour, str(s.line), s.marker) for s in styles}) == 36


def test_a_variant_keeps_its_style_in_every_figure_whatever_the_baseline(tmp_path):
    grid(tmp_path)
    places = {label: order for order, label in enumerate(FACTORS)}
    for baseline in ("rope 64", "roper 128"):
        comparison = compare(tmp_path / "s", baseline=baseline, threshold=THRESHOLD)
        styled = [numbers for plot in PLOTS.values() if "order" in (numbers := plot.prepare(comparison))]
        assert len(styled) >= 3
        for numbers in styled:
            assert all(places[label] == order for label, order in zip(numbers["label"], numbers["order"], strict=True))


def test_the_whole_legend_is_inside_the_figure_and_shows_labels_with_an_underscore():
    labels = ["_base", *(f"a_variant_with_a_very_long_name_{i}" for i in range(35))]
    with plt.rc_context(RC):
        figure = Figure(figsize=(7, 4), layout="constrained")
        figure.add_subplot().plot([0, 1])
        legend_below(figure, [legend_handle(i) for i in range(36)], labels)
        figure.savefig("/dev/null", format="png")
        box = figure.legends[0].get_window_extent()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == labels
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= figure.bbox.width
    assert figure.axes[0].get_window_extent().height > 150


def test_of_more_steps_than_can_be_seen_evenly_spaced_ones_are_shown_and_the_axis_says_so(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": noise(0, 3)})
    for seed, end in enumerate((1001, 1001, 778)):
        folder.run(planned("rope").folder, seed).append_metrics(curve(0.4, range(1, end)))
    numbers = PLOTS["learning_curves"].prepare(compare(tmp_path / "s"))
    of_seed = numbers[numbers["kind"] == "seed"].groupby("seed")["step"]
    assert of_seed.size().tolist()[:2] == [400, 400]
    assert of_seed.min().tolist() == [1, 1, 1]
    assert of_seed.max().tolist() == [1000, 1000, 777]
    assert (numbers["steps_logged"] == 1000).all()
    mean = numbers[numbers["kind"] == "mean"]
    assert len(mean) == 400
    assert mean["n"].max() == 3
    assert mean.loc[mean["n"] == 2, "step"].min() > 777
    figure = Figure()
    PLOTS["learning_curves"].draw(numbers, figure)
    assert figure.axes[0].get_xlabel().startswith("optimiser step (40")
    assert figure.axes[0].get_xlabel().endswith(" of 1,000 logged steps shown)")


def test_with_many_runs_fewer_steps_are_shown():
    assert learning_curves.thinned(np.arange(10_000), 100).tolist()[::99] == [0, 9_999]
    assert learning_curves.thinned(np.array([3]), 400).tolist() == [3]
    assert learning_curves.POINTS // 2_000 == 100

"""Forest, heat map and interaction plot: when they are drawn, their numbers, and that nothing is cut off."""

import io

import numpy as np
import pytest
from fake_study import ending, noise, write_study
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from ablate.records import Status
from analysis.comparison import compare
from analysis.plots.base import all_plots, render
from analysis.plots.style import RC
from analysis.statistics.intervals import t_interval

PLOTS = {plot.name: plot for plot in all_plots() if plot.name in ("forest", "heat_map", "interaction")}
LONG = ("a_scheme_with_a_very_long_name_indeed", "$_x%", "roper")


def crossed(path, first=("rope", "roper"), second=(64, 128, 256), leave_out=(), **more):
    """A study of two factors, attention and model.width; `leave_out` are labels that the plan lacks."""
    factors = {f"{a}, {w}": {"attention": a, "model.width": w} for a in first for w in second}
    arms = {label: noise(i, 5) for i, label in enumerate(factors) if label not in leave_out}
    write_study(path / "s", arms, factors=factors, **more)
    return compare(path / "s")


def drawn(name, numbers):
    """The figure as it is saved, and every text on it."""
    with plt.rc_context(RC):
        figure = Figure(layout="constrained")
        canvas = FigureCanvasAgg(figure)
        PLOTS[name].draw(numbers, figure)
        canvas.draw()
        return figure, {one.get_text() for one in figure.findobj(Text)}


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("arms", [1, 2, 4])
def test_a_small_study_of_one_factor_gets_none_of_them(tmp_path, name, arms):
    write_study(tmp_path / "s", {f"v{i}": noise(i, 4) for i in range(arms)})
    assert PLOTS[name].prepare(compare(tmp_path / "s")).empty


def test_five_variants_get_a_forest_and_one_factor_no_grid(tmp_path):
    write_study(tmp_path / "s", {f"v{i}": noise(i, 4) for i in range(5)})
    found = {name: plot.prepare(compare(tmp_path / "s")).empty for name, plot in PLOTS.items()}
    assert found == {"forest": False, "heat_map": True, "interaction": True}


def test_three_factors_get_no_grid(tmp_path):
    factors = {f"{a}{b}{c}": {"a": a, "b": b, "c": c} for a in (1, 2) for b in (1, 2) for c in (1, 2)}
    write_study(tmp_path / "s", {label: noise(i, 3) for i, label in enumerate(factors)}, factors=factors)
    comparison = compare(tmp_path / "s")
    assert PLOTS["heat_map"].prepare(comparison).empty
    assert PLOTS["interaction"].prepare(comparison).empty


def test_the_forest_has_the_numbers_of_the_comparison_in_the_order_of_the_plan(tmp_path):
    comparison = crossed(tmp_path)
    numbers = PLOTS["forest"].prepare(comparison)
    assert list(numbers["label"]) == [result.variant.label for result, _ in comparison.others]
    for row, (_, against) in zip(numbers.itertuples(), comparison.others, strict=True):
        assert (row.low, row.high) == against.difference.interval
        assert (row.value, row.n, row.verdict) == (against.difference.mean, 5, str(against.judgement.verdict))
        assert row.text.startswith(("+", "−"))


def test_a_variant_without_a_pair_keeps_its_row_in_the_forest(tmp_path):
    changes = {("roper, 64", s): ending(Status.diverged) for s in range(5)}
    numbers = PLOTS["forest"].prepare(crossed(tmp_path, changes=changes))
    (lost,) = numbers[numbers["label"] == "roper, 64"].to_dict("records")
    assert (lost["text"], lost["verdict"], lost["n"]) == ("no pair", "unstable", 0)
    assert "no pair" in drawn("forest", numbers)[1]


def test_a_forest_of_single_runs_has_no_bars(tmp_path):
    write_study(tmp_path / "s", {f"v{i}": [0.1 * i] for i in range(1, 7)})
    figure, _ = drawn("forest", PLOTS["forest"].prepare(compare(tmp_path / "s")))
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [2, 1, 1, 1, 1, 1]


def test_a_cell_of_the_heat_map_has_mean_deviation_and_n(tmp_path):
    changes = {("roper, 128", s): ending(Status.failed) for s in range(3)}
    numbers = PLOTS["heat_map"].prepare(crossed(tmp_path, changes=changes))
    (cell,) = numbers[numbers["label"] == "roper, 128"].to_dict("records")
    left = noise(4, 5)[3:]
    assert (cell["row"], cell["column"], cell["n"]) == (1, 1, 2)
    assert (cell["mean"], cell["sd"]) == pytest.approx((np.mean(left), np.std(left, ddof=1)))
    figure, texts = drawn("heat_map", numbers)
    assert [bool(patch.get_hatch()) for patch in figure.axes[0].patches] == [False] * 4 + [True, False]
    assert "mean ± SD, hatched: n < 3" in texts


def test_a_combination_that_the_study_lacks_is_an_empty_place_in_the_heat_map_and_no_interaction_plot(tmp_path):
    comparison = crossed(tmp_path, leave_out=("roper, 256",))
    figure, _ = drawn("heat_map", PLOTS["heat_map"].prepare(comparison))
    assert len(figure.axes[0].patches) == 5
    assert PLOTS["interaction"].prepare(comparison).empty


def test_a_factor_that_one_variant_lacks_has_a_dash_for_its_level(tmp_path):
    factors = {
        "none": {"attention": "none"},
        "half": {"attention": "rope", "p": 0.5},
        "all": {"attention": "rope", "p": 1},
    }
    write_study(tmp_path / "s", {label: noise(i, 3) for i, label in enumerate(factors)}, factors=factors)
    numbers = PLOTS["heat_map"].prepare(compare(tmp_path / "s"))
    assert list(numbers["column_level"]) == ["–", "0.5", "1"]


def test_every_run_failed_in_the_heat_map_has_no_colour_bar(tmp_path):
    changes = {
        (f"{a}, {w}", s): ending(Status.failed) for a in ("rope", "roper") for w in (64, 128, 256) for s in range(5)
    }
    changes.pop(("rope, 64", 0))
    numbers = PLOTS["heat_map"].prepare(crossed(tmp_path, changes=changes))
    assert len(drawn("heat_map", numbers)[0].axes) == 2
    assert len(drawn("heat_map", numbers[numbers["n"] == 0])[0].axes) == 1


def test_the_interaction_plot_has_a_line_per_level_with_t_intervals(tmp_path):
    numbers = PLOTS["interaction"].prepare(crossed(tmp_path))
    assert list(numbers["line_level"]) == ["rope"] * 3 + ["roper"] * 3
    assert list(numbers["level"]) == ["64", "128", "256"] * 2
    for i, row in enumerate(numbers.itertuples()):
        assert (row.low, row.high) == pytest.approx(tuple(t_interval(noise(i, 5))))
    figure, texts = drawn("interaction", numbers)
    assert len(figure.axes[0].lines) == 2
    assert "attention = roper (n = 5)" in texts


def test_the_factor_with_more_levels_lies_along_x(tmp_path):
    numbers = PLOTS["interaction"].prepare(crossed(tmp_path, first=("a", "b", "c"), second=(1, 2)))
    assert (numbers["factor"].iloc[0], numbers["line_factor"].iloc[0]) == ("attention", "model.width")


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize(("first", "second"), [(LONG, (1, 2)), ((1, 2), LONG), (LONG, LONG), (range(6), range(6))])
def test_no_text_is_cut_off_whatever_the_names(tmp_path, name, first, second):
    figure, _ = drawn(name, PLOTS[name].prepare(crossed(tmp_path, first, second)))
    inches = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert inches.x0 >= 0
    assert inches.y0 >= 0
    assert inches.x1 <= width
    assert inches.y1 <= height
    assert figure.axes[0].get_window_extent().width > 0.3 * figure.bbox.width


def test_the_colours_of_the_heat_map_keep_their_order_in_grey(tmp_path):
    numbers = PLOTS["heat_map"].prepare(crossed(tmp_path)).sort_values("mean")
    figure, _ = drawn("heat_map", numbers)
    grey = [np.dot(patch.get_facecolor()[:3], (0.2126, 0.7152, 0.0722)) for patch in figure.axes[0].patches]
    assert grey == sorted(grey)


@pytest.mark.parametrize("name", PLOTS)
def test_the_png_is_a_picture_with_something_on_it(tmp_path, name):
    png = render(PLOTS[name], PLOTS[name].prepare(crossed(tmp_path))).files["png"]
    assert np.ptp(np.asarray(Image.open(io.BytesIO(png)).convert("L"))) > 100

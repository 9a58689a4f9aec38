"""The figures of length generalisation and of compute: when they are drawn, their numbers, and what is on them."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from fake_study import changed, ending, measured, noise, write_study
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from ablate.records import Status
from analysis.comparison import compare
from analysis.plots.base import all_plots
from analysis.plots.style import RC
from analysis.statistics.intervals import t_interval

PLOTS = {plot.name: plot for plot in all_plots()}
LENGTHS, COMPUTE = PLOTS["length_generalisation"], PLOTS["loss_against_compute"]
ARMS = {"rope": noise(0, 5), "roper": noise(1, 5)}


def study(path, arms=None, lengths=(32, 128), parameters=(1000, 2000), **more):
    """Every run evaluated at these lengths, the i-th variant with parameters[i]."""
    arms = arms or ARMS
    changes = {
        (label, seed): measured(lengths, parameters[i % len(parameters)])
        for i, label in enumerate(arms)
        for seed in range(5)
    }
    changes |= more.pop("changes", {})
    write_study(path / "s", arms, changes=changes, **more)
    return compare(path / "s")


def drawn(plot, numbers):
    """The figure as it is saved, and every text on it."""
    with plt.rc_context(RC):
        figure = Figure(layout="constrained")
        canvas = FigureCanvasAgg(figure)
        plot.draw(numbers, figure)
        canvas.draw()
        return figure, {one.get_text() for one in figure.findobj(Text) if one.get_visible()}


def test_each_length_has_the_mean_of_the_finished_seeds_with_a_t_interval(tmp_path):
    numbers = LENGTHS.prepare(study(tmp_path))
    means = numbers[(numbers["kind"] == "mean") & (numbers["label"] == "roper")]
    assert list(means["length"]) == [32, 64, 128]
    for length, row in zip((0.032, 0.0, 0.128), means.itertuples(), strict=True):
        values = np.array(ARMS["roper"]) + length
        assert row.value == pytest.approx(values.mean())
        assert (row.low, row.high) == pytest.approx(tuple(t_interval(values)))
        assert row.n == 5
    assert len(numbers[numbers["kind"] == "seed"]) == 2 * 3 * 5
    assert set(numbers["trained"]) == {64}


def test_a_metric_at_a_length_gives_the_same_figure(tmp_path):
    study(tmp_path)
    plain, at_length = (LENGTHS.prepare(compare(tmp_path / "s", metric=m)) for m in ("eval/loss", "eval/loss@128"))
    pd.testing.assert_frame_equal(plain, at_length)


def test_without_other_lengths_or_for_another_metric_there_is_nothing(tmp_path):
    assert LENGTHS.prepare(study(tmp_path, lengths=())).empty
    study(
        tmp_path / "b", changes={("rope", 0): changed(metrics={"eval/loss": 0.1, "eval/accuracy@9": 0.5})}, lengths=()
    )
    assert LENGTHS.prepare(compare(tmp_path / "b" / "s")).empty


def test_a_trained_length_that_is_evaluated_by_name_counts_once(tmp_path):
    numbers = LENGTHS.prepare(study(tmp_path, lengths=(64, 128)))
    means = numbers[(numbers["kind"] == "mean") & (numbers["label"] == "rope")]
    assert list(means["length"]) == [64, 128]
    assert means["value"].iloc[0] == pytest.approx(np.mean(ARMS["rope"]) + 0.064)


def test_failed_runs_and_seeds_without_a_length_are_left_out_and_counted(tmp_path):
    changes = {("rope", 0): ending(Status.diverged), ("rope", 1): lambda run: run}
    numbers = LENGTHS.prepare(study(tmp_path, changes=changes))
    means = numbers[(numbers["kind"] == "mean") & (numbers["label"] == "rope")]
    assert list(means["n"]) == [3, 4, 3]
    assert "rope (n = 3 to 4)" in drawn(LENGTHS, numbers)[1]


def test_the_lengths_of_training_are_shaded(tmp_path):
    figure, texts = drawn(LENGTHS, LENGTHS.prepare(study(tmp_path)))
    (shade,) = figure.axes[0].patches
    assert shade.get_x() + shade.get_width() == 64
    assert {"32", "64", "128", "shaded: lengths up to 64, as in training"} <= texts


def test_variants_trained_on_different_lengths_have_no_shade_and_their_own_point(tmp_path):
    factors = {"short": {"task.seq_len": 32}, "long": {"task.seq_len": 64}}
    arms = dict(zip(factors, ARMS.values(), strict=True))
    numbers = LENGTHS.prepare(study(tmp_path, arms, (128,), factors=factors))
    means = numbers[numbers["kind"] == "mean"].groupby("label")["length"].apply(list)
    assert means.to_dict() == {"short": [32, 128], "long": [64, 128]}
    assert not drawn(LENGTHS, numbers)[0].axes[0].patches


def test_many_lengths_are_named_without_running_into_one_another(tmp_path):
    figure, _ = drawn(LENGTHS, LENGTHS.prepare(study(tmp_path, lengths=range(100, 2000, 50))))
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels() if label.get_text()]
    assert len(boxes) > 4
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_compute_is_six_flops_per_parameter_and_token(tmp_path):
    numbers = COMPUTE.prepare(study(tmp_path))
    runs, means = numbers[numbers["kind"] == "run"], numbers[numbers["kind"] == "mean"]
    assert set(runs.loc[runs["label"] == "rope", "flops"]) == {6.0 * 1000 * 6400}
    assert list(means["flops"]) == pytest.approx([6.0 * 1000 * 6400, 6.0 * 2000 * 6400])
    for label, row in zip(ARMS, means.itertuples(), strict=True):
        assert row.value == pytest.approx(np.mean(ARMS[label]))
        assert (row.low, row.high) == pytest.approx(tuple(t_interval(ARMS[label])))
        assert list(runs.loc[runs["label"] == label, "value"]) == ARMS[label]


@pytest.mark.parametrize(("parameters", "shown"), [((1000, 1000), False), ((1000, 1009), False), ((1000, 1011), True)])
def test_compute_is_drawn_only_when_it_differs_by_more_than_one_per_cent(tmp_path, parameters, shown):
    assert COMPUTE.prepare(study(tmp_path, parameters=parameters)).empty == (not shown)


def test_runs_of_unknown_compute_and_failed_ones_have_no_dot(tmp_path):
    changes = {("rope", 0): measured([], 0), ("roper", 1): ending(Status.failed)}
    numbers = COMPUTE.prepare(study(tmp_path, changes=changes))
    assert list(numbers.loc[numbers["kind"] == "mean", "n"]) == [4, 4]
    assert len(numbers[numbers["kind"] == "run"]) == 8
    unknown = {(label, s): measured([], 0) for label in ARMS for s in range(5)}
    assert COMPUTE.prepare(study(tmp_path / "b", changes=unknown)).empty


def test_variants_of_the_same_compute_stand_side_by_side(tmp_path):
    arms = {f"v{i}": noise(i, 5) for i in range(4)}
    numbers = COMPUTE.prepare(study(tmp_path, arms, parameters=(1000, 2000)))
    figure, texts = drawn(COMPUTE, numbers)
    assert len({round(line.get_xdata()[0]) for line in figure.axes[0].lines}) == 4
    assert {f"v{i} (n = 5)" for i in range(4)} <= texts


@pytest.mark.parametrize("parameters", [(1000, 1011), (1000, 2000), (1000, 9000), (1000, 10**7)])
def test_the_axis_of_compute_has_round_numbers_whatever_its_range(tmp_path, parameters):
    figure, _ = drawn(COMPUTE, COMPUTE.prepare(study(tmp_path, parameters=parameters)))
    low, high = figure.axes[0].get_xlim()
    ticks = [tick for tick in figure.axes[0].get_xticks() if low <= tick <= high]
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert 2 <= len(ticks) <= 10
    assert not any("$" in label or "+" in label for label in labels)
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("plot", [LENGTHS, COMPUTE], ids=lambda plot: plot.name)
def test_nothing_is_cut_off_with_long_names_and_many_variants(tmp_path, plot):
    arms = {f"a_variant_with_a_very_long_name_{i}": noise(i, 5) for i in range(15)}
    figure, texts = drawn(plot, plot.prepare(study(tmp_path, arms, parameters=range(1000, 9000, 500))))
    inches = figure.get_tightbbox()
    assert inches.x0 >= 0
    assert inches.y0 >= 0
    assert (inches.x1, inches.y1) <= tuple(figure.get_size_inches())
    assert all(f"{label} (n = 5)" in texts for label in arms)


@pytest.mark.parametrize("plot", [LENGTHS, COMPUTE], ids=lambda plot: plot.name)
def test_one_seed_is_a_point_without_a_bar(tmp_path, plot):
    numbers = plot.prepare(study(tmp_path, {"rope": [0.4], "roper": [0.5]}))
    assert numbers["low"].isna().all()
    figure, texts = drawn(plot, numbers)
    assert "rope (n = 1)" in texts
    assert all(len(one.get_paths()) == 0 for one in figure.axes[0].collections)

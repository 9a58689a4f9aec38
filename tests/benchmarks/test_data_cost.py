"""The cost of drawing data: every task is measured, and a share is a share."""

from pathlib import Path

import pytest

from benchmarks import tasks


def test_reference_sizes_are_of_tasks_that_exist():
    conf = Path(__file__).parents[2] / "conf" / "task"
    assert set(tasks.REFERENCE) < {file.stem for file in conf.glob("*.yaml")}


def test_the_share_is_that_of_drawing_in_the_whole():
    assert tasks.Cost(step=0.3, data=0.1).share == pytest.approx(0.25)


def test_a_task_is_trained_and_its_batches_are_drawn(capsys):
    overrides = ("task=parity", "model.width=8", "model.heads=2", "model.layers=1", "training.batch_size=2")
    cost = tasks.measure(overrides, 3)
    assert cost.step > 0
    assert 0 < cost.share < 1
    cells = tasks.row("parity", overrides, cost)
    assert cells[:2] == ("parity", "2 x 42")
    assert cells[-1].endswith("%")


def test_an_unknown_task_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        tasks.main(["copi"])
    assert "no such task: copi; choose from addition, copy, copy_repeat" in capsys.readouterr().err

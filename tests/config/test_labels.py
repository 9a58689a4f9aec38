"""Words for people."""

import pytest

from ablate.config.labels import factors_of, label_of


@pytest.mark.parametrize(
    ("factors", "label"),
    [
        ({"attention": "roper"}, "roper"),
        ({"attention": "roper", "optimizer.lr": 0.001}, "roper lr=0.001"),
        ({"model.dropout": 0.1, "task.dropout": 0.2}, "model.dropout=0.1 task.dropout=0.2"),
        ({"attention": "none", "rope_percentage": None}, "none"),
        ({"attention": "rope", "rope_percentage": 0.5}, "rope rope_percentage=0.5"),
        ({"model.layers": [2, 2]}, "layers=[2,2]"),
        ({}, "default"),
    ],
)
def test_labels_are_short_and_say_what_differs(factors, label):
    assert label_of(factors) == label


def test_factors_keep_their_types_and_leave_out_what_is_not_a_cells():
    overrides = ["attention=rope", "model.layers=[2,2]", "optimizer.lr=1e-3", "seed=3", "runtime.threads=2", "study=x"]
    assert factors_of(overrides) == {"attention": "rope", "model.layers": [2, 2], "optimizer.lr": 0.001}

"""Command line -> plan."""

import pytest

from ablate.config.errors import ConfigError
from ablate.records import PlannedCell
from ablate.sweep.plan import expand, merge


def test_values_are_expanded_by_hydras_grammar_and_seeds_are_not_cells():
    expanded = expand(
        None, ["attention=rope,roper", "optimizer.lr=choice(0.1,0.2)", "seed=range(3)", "training.steps=5"]
    )
    assert expanded.seeds == [0, 1, 2]
    assert expanded.factors == ["attention", "optimizer.lr"]
    assert expanded.combinations[0] == ["attention=rope", "optimizer.lr=0.1", "training.steps=5"]
    assert len(expanded.combinations) == 4


def test_without_seeds_there_is_one():
    assert expand(None, ["attention=rope"]).seeds == [0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["seed=1,1"], "seed=1: given more than once"),
        (["seed=a"], "seed=a: must be a whole number"),
        (["seed=1.5"], "seed=1.5: must be a whole number"),
        (["seed=-1"], "seed=-1: must be at least 0"),
        (["optimizer.lr=interval(0.1,0.2)"], "a grid needs values"),
        (["seed=range(0)"], "seed=range\\(0\\): no value"),
    ],
)
def test_bad_values_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        expand(None, arguments)


def cell(identity: str, **factors) -> PlannedCell:
    return PlannedCell(cell=identity, label=str(factors), factors=factors, folder=identity, overrides=[])


def test_combinations_with_one_identity_are_one_cell_with_a_dash_for_what_it_has_no_use_for():
    merged = merge(
        [
            cell("a", attention="none", rope_percentage=0.5),
            cell("a", attention="none", rope_percentage=1.0),
            cell("b", attention="rope", rope_percentage=0.5),
            cell("c", attention="rope", rope_percentage=1.0),
        ],
        ["attention", "rope_percentage"],
    )
    assert [(c.cell, c.factors) for c in merged] == [
        ("a", {"attention": "none", "rope_percentage": None}),
        ("b", {"attention": "rope", "rope_percentage": 0.5}),
        ("c", {"attention": "rope", "rope_percentage": 1.0}),
    ]
    assert merged[0].label == "none"


def test_1_and_1_point_0_are_one_level():
    merged = merge([cell("a", rope_percentage=1), cell("a", rope_percentage=1.0)], ["rope_percentage"])
    assert [c.factors for c in merged] == [{"rope_percentage": 1}]

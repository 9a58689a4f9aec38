"""The command line before Hydra reads it."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from ablate.config.arguments import groups_in, keep_text, translate
from ablate.config.register import config_dir

GROUPS = [config_dir()]


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("model/attention=roper", "attention=roper"),
        ("model/attention=rope,roper", "attention=rope,roper"),
        ("study=1E23", 'study="1E23"'),
        ("study=1_000", 'study="1_000"'),
        ("study=true", 'study="true"'),
        ("study=copy", "study=copy"),
        ("attention=1", 'attention="1"'),
        ("optimizer.lr=1e-3", "optimizer.lr=1e-3"),
        ("seed=3", "seed=3"),
        ("--cfg", "--cfg"),
        ("+model.attention.x=1", "+model.attention.x=1"),
    ],
)
def test_one_run(given_, expected):
    assert translate([given_], GROUPS) == [expected]


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("model.attention.base=500", "model.attention.base=choice(500)"),
        ("optimizer.betas=[0.9,0.99]", "optimizer.betas=choice([0.9,0.99])"),
        ("optimizer.lr=1e-3,1e-2", "optimizer.lr=1e-3,1e-2"),
        ("optimizer.lr=choice(1,2)", "optimizer.lr=choice(1,2)"),
        ("model.layers=[2,2],[4,4]", "model.layers=[2,2],[4,4]"),
        ('task.text="a,b"', 'task.text=choice("a,b")'),
        ("training.steps=5", "training.steps=5"),
        ("seed=range(3)", "seed=range(3)"),
    ],
)
def test_in_a_sweep_values_of_leaves_are_checked_per_cell(given_, expected):
    assert translate(["-m", given_], GROUPS) == ["-m", expected]


@given(st.from_regex(r"[A-Za-z0-9_.+-]{1,12}", fullmatch=True))
def test_text_stays_text_whatever_it_looks_like(text):
    parsed = OverridesParser.create().parse_override(f"study={keep_text(text)}")
    value = parsed.value()
    if text.lower() != "null":
        assert isinstance(value, str)
        assert value == text


def test_the_groups_are_those_of_the_conf_folder():
    expected = {"attention", "model", "task", "optimizer", "schedule", "experiment", "ablation"}
    assert set(groups_in(config_dir())) == expected

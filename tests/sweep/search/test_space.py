"""Hydra's sweep syntax as a search space, and values as overrides."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from ablate.config.errors import ConfigError
from ablate.sweep.search.space import Space, read_space


def space(*overrides: str, **params) -> Space:
    return read_space(None, overrides, params)


@pytest.mark.parametrize(
    ("written", "distribution"),
    [
        ("a.x=1,2", CategoricalDistribution(["1", "2"])),
        ("a.x=choice(rope,roper)", CategoricalDistribution(["rope", "roper"])),
        ("a.x=choice([2,2],[4,4])", CategoricalDistribution(["[2,2]", "[4,4]"])),
        ("a.x=interval(1,4)", FloatDistribution(1, 4)),
        ("a.x=int(interval(1,4))", IntDistribution(1, 4)),
        ("a.x=tag(int,log,interval(1,8))", IntDistribution(1, 8, log=True)),
        ("a.x=tag(log,interval(1e-4,1e-2))", FloatDistribution(1e-4, 1e-2, log=True)),
        ("a.x=range(1,9,2)", IntDistribution(1, 7, step=2)),
        ("a.x=range(3)", IntDistribution(0, 2)),
        ("a.x=range(0,1,0.25)", FloatDistribution(0, 0.75, step=0.25)),
        ("a.x=tag(log,range(1,9))", IntDistribution(1, 8, log=True)),
    ],
)
def test_each_form_is_the_distribution_it_says(written, distribution):
    (parameter,) = space(written).parameters
    assert parameter.key == "a.x"
    assert parameter.distribution == distribution


def test_one_value_is_fixed_and_the_command_line_goes_before_the_parameters_of_the_config():
    found = space("a.x=choice(3)", "a.y=1,2", "seed=0,1", a={"y": "choice(5,6)", "z": "interval(0,1)", "w": 4})
    assert [one.key for one in found.parameters] == ["a.y", "a.z"]
    assert found.distributions["a.y"] == CategoricalDistribution(["1", "2"])
    assert sorted(found.fixed) == ["a.w=4", "a.x=3"]
    assert found.seeds == [0, 1]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("a.x=1", "nothing to search: give a key several values"),
        ("a.x=interval(4,1)", r"first end must be below the second; write 'a.x=interval\(1,4\)'"),
        ("a.x=interval(1,1)", "both ends are the same"),
        ("a.x=tag(log,interval(0,1))", "must begin above 0"),
        ("a.x=tag(log,interval(-1,1))", "must begin above 0"),
        ("a.x=interval(0,inf)", "both ends must be finite"),
        ("a.x=range(4,1)", "no value in it"),
        ("a.x=tag(log,range(1,9,2))", "above 0 and have step 1"),
        ("a.x=tag(int,interval(0.5,2))", "must be whole numbers"),
        ("a.x=tag(logg,interval(1,2))", "unknown tag logg; valid: log, int"),
        ("a.x=choice(1,2,1)", "1 is given more than once"),
    ],
)
def test_what_is_no_space_is_refused_with_the_reason(written, message):
    with pytest.raises(ConfigError, match=message):
        space(written)


def test_b9_a_list_that_was_chosen_is_read_as_that_list_of_whole_numbers():
    found = space("model.layers=choice([2,2],[4,4])")
    chosen = found.overrides({"model.layers": found.distributions["model.layers"].choices[1]})
    assert OverridesParser.create().parse_overrides(chosen)[0].value() == [4, 4]


@given(st.floats(1e-8, 1e3), st.floats(1.001, 1e3))
def test_a_number_comes_back_from_its_override_as_it_was(low, factor):
    found = space(f"a.x=interval({low!r},{low * factor!r})")
    value = (low + low * factor) / 2
    (override,) = OverridesParser.create().parse_overrides(found.overrides({"a.x": value}))
    assert override.value() == value


@given(st.integers(-50, 50), st.integers(1, 60), st.integers(1, 7))
def test_a_range_has_the_values_of_pythons(start, count, step):
    stop = start + count * step + 1
    found = space(f"a.x=range({start},{stop},{step})", "a.y=1,2")
    assert found.grid()["a.x"] == list(range(start, stop, step))
    assert found.size() == 2 * len(range(start, stop, step))


def test_samples_show_every_choice_and_both_ends_once():
    samples = space("a.x=1,2,3", "a.y=interval(0,1)").samples()
    assert [first for first, _ in samples] == [
        ["a.x=1", "a.y=0.0"],
        ["a.x=2", "a.y=0.0"],
        ["a.x=3", "a.y=0.0"],
        ["a.x=1", "a.y=1.0"],
    ]
    assert samples[1][1] == ["a.x=2", "a.y=1.0"]


@pytest.mark.parametrize(
    "written", ["choice(1,2)", "int(interval(1,4))", "tag(log,interval(0.0001,0.01))", "range(1,9,2)"]
)
def test_a_space_reads_as_it_was_written(written):
    (parameter,) = space(f"a.x={written}").parameters
    again = space(f"a.x={parameter}").parameters[0]
    assert again.distribution == parameter.distribution

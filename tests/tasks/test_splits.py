"""Which problems are held out: by a hash that any language can compute again, and the same for every seed."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.tasks.splits import ABSENT, draw, is_held_out, require_enough

MASK = 2**64 - 1


def mixed(value):
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def naive(problem):
    """The same in Python's whole numbers."""
    weights = [mixed(j * 0x9E3779B97F4A7C15 & MASK) | 1 for j in range(1, len(problem) + 1)]
    total = sum((x + 1) * weight for x, weight in zip(problem, weights, strict=True)) & MASK
    return mixed(total) % 10 == 0


def test_the_mixing_is_that_of_splitmix64():
    """The first outputs of SplitMix64 from state 0, as published with xoshiro's test vectors."""
    assert [mixed(j * 0x9E3779B97F4A7C15 & MASK) for j in (1, 2, 3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


@given(st.lists(st.lists(st.integers(-1, 2**40), min_size=5, max_size=5), min_size=1, max_size=20))
def test_the_side_of_a_problem_is_that_of_the_loop(problems):
    assert is_held_out(np.array(problems)).tolist() == [naive(problem) for problem in problems]


@given(st.lists(st.integers(0, 150), min_size=1, max_size=12), st.integers(0, 9))
def test_padding_changes_no_side(problem, padding):
    alone, padded = (is_held_out(np.array([row])) for row in (problem, problem + [ABSENT] * padding))
    assert alone == padded


@pytest.mark.parametrize("length", [5, 17])
def test_a_tenth_is_held_out_whatever_one_symbol_is(length):
    problems = np.random.default_rng(0).integers(8, size=(40_000, length))
    held_out = is_held_out(problems)
    assert abs(held_out.mean() - 0.1) < 0.01
    for place in range(length):
        for symbol in range(8):
            assert abs(held_out[problems[:, place] == symbol].mean() - 0.1) < 0.03


@pytest.mark.parametrize("symbols", range(2, 40))
def test_some_of_every_small_space_are_held_out(symbols):
    """All spaces of 100 to 5,000 rows of one length."""
    for length in range(1, 13):
        if 100 <= symbols**length <= 5000:
            rows = np.array(list(product(range(symbols), repeat=length)))
            assert 0.02 < is_held_out(rows).mean() < 0.2


@pytest.mark.parametrize("split", ["train", "eval"])
def test_drawing_gives_as_many_as_asked_of_one_side_and_all_of_them_alike(split):
    generator = np.random.default_rng(1)
    drawn = draw(lambda n: generator.integers(12, size=(n, 2)), 20_000, split)
    assert drawn.shape == (20_000, 2)
    assert (is_held_out(drawn) == (split == "eval")).all()
    rows = np.array(list(product(range(12), repeat=2)))
    mine = rows[is_held_out(rows) == (split == "eval")]
    counts = np.bincount(drawn @ [12, 1], minlength=144)
    assert set(np.flatnonzero(counts)) == set(mine @ [12, 1])
    assert counts[counts > 0].min() > 0.6 * 20_000 / len(mine)


def test_problems_are_told_apart_by_their_key_alone():
    generator = np.random.default_rng(2)
    drawn = draw(lambda n: generator.integers(1000, size=(n, 3)), 500, "eval", lambda problems: problems[:, :1])
    assert is_held_out(drawn[:, :1]).all()
    assert not is_held_out(drawn).all()


def test_too_few_problems_are_refused():
    require_enough(100, "larger problems")
    with pytest.raises(
        ValueError, match=r"only 99 different problems of this size, at least 100 .*use larger problems"
    ):
        require_enough(99, "larger problems")

"""Text to tokens and back, and the wording of refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablate.tasks.base import (
    IGNORED,
    decode,
    encode,
    require_at_least,
    require_between,
    require_choice,
    to_batch,
    until_stop,
)
from ablate.tasks.grids import cut, numeral_length, numerals, pack, spell, texts
from ablate.tasks.splits import ABSENT
from ablate.tasks.symbols import MOST, symbols


@given(st.text("acgt>"))
def test_text_comes_back_as_it_went(text):
    assert decode("acgt>", encode("acgt>", text)) == text


def test_unknown_characters_are_named():
    with pytest.raises(ValueError, match=r"the alphabet has no 'x', 'y': it is 'acgt>'"):
        encode("acgt>", "axcy")


def test_what_was_generated_ends_at_the_first_stop():
    assert until_stop([3, 1, 9, 4, 9], 9) == [3, 1]
    assert until_stop([9], 9) == []
    assert until_stop([3, 1], 9) is None


def test_a_batch_predicts_the_next_token_where_it_counts():
    inputs, targets = to_batch(np.array([[5, 6, 7, 8]]), np.array([[True, False, True, True]]))
    assert inputs.tolist() == [[5, 6, 7]]
    assert targets.tolist() == [[IGNORED, 7, 8]]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: require_at_least("a", 1, 2, "why"), r"task\.a=1: must be at least 2 \(why\); use task\.a=2"),
        (lambda: require_between("a", 1, 2, 5, "why"), r"task\.a=1: must be between 2 and 5 \(why\); use task\.a=2"),
        (lambda: require_between("a", 9, 2, 5, "why"), r"task\.a=9: .*use task\.a=5"),
        (lambda: require_choice("a", "x", ("y", "z")), r"task\.a=x: must be y or z"),
    ],
)
def test_refusals_say_key_value_rule_and_fix(check, message):
    with pytest.raises(ValueError, match=message):
        check()


@given(st.lists(st.integers(0, 10**6), min_size=1), st.integers(2, 10))
def test_numerals_are_pythons(values, base):
    written = texts(numerals(np.array(values), numeral_length(10**6, base) + 2, base))
    assert ["".join(map(str, digits)) for digits in written] == [np.base_repr(value, base) for value in values]
    assert [numeral_length(value, base) for value in values] == [len(digits) for digits in written]


def test_columns_are_put_side_by_side_and_what_is_absent_left_out():
    grid = spell("abc-", "b-", np.array([[0, ABSENT], [ABSENT, 2]]), "-")
    assert [decode("abc-", row) for row in texts(grid)] == ["b-a-", "b-c-"]
    assert [decode("abc-", row) for row in texts(cut(grid[:, :2], np.array([1, 2])))] == ["b", "b-"]


@given(st.data())
def test_packing_joins_the_texts_of_consecutive_problems(data):
    size, each, width = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    cell = st.integers(ABSENT, 9)
    rows = data.draw(
        st.lists(st.lists(cell, min_size=width, max_size=width), min_size=size * each, max_size=size * each)
    )
    counted = data.draw(st.lists(st.booleans(), min_size=width, max_size=width))
    joined = [
        [(token, count) for row in rows[i * each : (i + 1) * each] for token, count in zip(row, counted, strict=True)]
        for i in range(size)
    ]
    joined = [[pair for pair in sequence if pair[0] != ABSENT] for sequence in joined]
    length = min(map(len, joined))
    packed = pack(np.array(rows), np.array(counted), size, length)
    assert packed.tokens_BW.tolist() == [[token for token, _ in sequence[:length]] for sequence in joined]
    assert packed.counted_BW.tolist() == [[count for _, count in sequence[:length]] for sequence in joined]


def test_symbols_are_distinct_printable_and_the_fewer_the_beginning_of_the_more():
    assert symbols(5) == "abcde"
    assert len(set(symbols(MOST))) == MOST
    assert symbols(MOST).isprintable()
    assert symbols(MOST).startswith(symbols(100))
    assert not set(symbols(MOST)) & set(">#_ .")

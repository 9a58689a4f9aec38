"""selective_copy against the text with its blanks taken out."""

from collections import Counter

import pytest
from scipy import stats
from task_reading import sequences

from ablate.tasks.selective_copy import SelectiveCopy

SETTINGS = {"seq_len": 40, "items": 6, "symbols": 14}


@pytest.mark.parametrize("change", [{}, {"seq_len": 12}, {"symbols": 200, "items": 1}])
def test_the_copy_is_the_stretch_without_blanks_and_all_that_counts(change):
    task = SelectiveCopy(**{**SETTINGS, **change})
    for text, counted in sequences(task, size=200) + sequences(task, size=50, split="eval"):
        stretch, copy = text.split(">")
        assert len(copy) == task.items
        assert copy == stretch.replace("_", "")
        assert counted == [False] * (len(stretch) + 1) + [True] * len(copy)


def test_items_and_places_are_uniform():
    stretches = [text.split(">")[0] for text, _ in sequences(SelectiveCopy(**SETTINGS), size=4000)]
    items = Counter("".join(stretches).replace("_", ""))
    assert len(items) == 14
    assert stats.chisquare(list(items.values())).pvalue > 1e-3
    taken = Counter(place for stretch in stretches for place, symbol in enumerate(stretch) if symbol != "_")
    assert set(taken) == set(range(34))
    assert stats.chisquare(list(taken.values())).pvalue > 1e-3


def test_items_are_trained_on_or_evaluated_on_at_every_place():
    task = SelectiveCopy(seq_len=12, items=3, symbols=6)
    trained = {text.split(">")[1] for seed in range(3) for text, _ in sequences(task, seed, 2000)}
    evaluated = {text.split(">")[1] for seed in range(3) for text, _ in sequences(task, seed, 400, "eval")}
    assert not trained & evaluated
    assert len(trained | evaluated) == 6**3
    assert abs(len(evaluated) - task.held_out) < 14


def test_a_longer_sequence_has_more_blanks_and_as_many_items():
    text, _ = sequences(SelectiveCopy(**SETTINGS).with_length(400), size=1)[0]
    assert text.count("_") == 401 - 1 - 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"symbols": 1}, r"task\.symbols=1: must be between 2 and 20000"),
        ({"items": 0}, r"task\.items=0: must be at least 1"),
        ({"seq_len": 11}, r"task\.seq_len=11: must be at least 12"),
        ({"items": 2, "symbols": 9}, r"only 81 different problems .*use larger task\.items or task\.symbols"),
    ],
)
def test_parameters_out_of_range_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        SelectiveCopy(**{**SETTINGS, **change})

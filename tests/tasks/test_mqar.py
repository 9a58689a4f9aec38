"""mqar against a dictionary filled from the start of the text."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy import stats
from task_reading import sequences

from ablate.tasks.mqar import MQAR

SETTINGS = {"seq_len": 40, "pairs": 5, "keys": 10, "values": 7, "power": 0.01}


@pytest.mark.parametrize("change", [{}, {"seq_len": 19}, {"seq_len": 41, "keys": 5}, {"keys": 4000, "values": 4000}])
def test_an_oracle_with_a_dictionary_predicts_every_counted_target(change):
    task = MQAR(**{**SETTINGS, **change})
    keys, values = task.alphabet[: task.keys], task.alphabet[task.keys : -1]
    for text, counted in sequences(task, size=100) + sequences(task, size=30, split="eval"):
        start = text[: 2 * task.pairs]
        known = dict(zip(start[::2], start[1::2], strict=True))
        assert len(known) == task.pairs
        assert set(known) <= set(keys)
        assert set(known.values()) <= set(values)
        expected, asked = [False] * len(text), []
        for place in range(len(start), len(text)):
            if text[place] in known:
                asked.append(text[place])
                assert text[place + 1] == known[text[place]]
                expected[place + 1] = True
            elif not expected[place]:
                assert text[place] == "_"
        assert sorted(asked) == sorted(known)
        assert counted == expected


def test_keys_and_values_are_uniform_and_independent():
    starts = [text[:10] for text, _ in sequences(MQAR(**SETTINGS), size=6000)]
    pairs = Counter(start[place : place + 2] for start in starts for place in range(0, 10, 2))
    assert len(pairs) == 70
    assert stats.chisquare(list(pairs.values())).pvalue > 1e-3
    first = Counter(start[0] for start in starts)
    assert stats.chisquare(list(first.values())).pvalue > 1e-3


@pytest.mark.parametrize("power", [0.01, 1.0, 3.0])
def test_slots_are_drawn_without_replacement_with_the_weights_of_the_power(power):
    """Chance that pairs 0 and 1 get slots i and j: w_i / W times w_j / (W - w_i)."""
    task = MQAR(seq_len=15, pairs=2, keys=10, values=7, power=power)
    drawn = task._slots(np.random.default_rng(0), (30_000, 6))
    weights = np.arange(1, 7) ** (power - 1)
    chances = {
        (i, j): weights[i] / weights.sum() * weights[j] / (weights.sum() - weights[i])
        for i, j in permutations(range(6), 2)
    }
    counts = Counter(map(tuple, drawn.tolist()))
    expected = np.array([chances[pair] for pair in chances])
    observed = [counts[pair] for pair in chances]
    assert stats.chisquare(observed, 30_000 * expected / expected.sum()).pvalue > 1e-3


def test_a_set_of_pairs_is_trained_on_or_evaluated_on_in_every_order():
    task = MQAR(seq_len=7, pairs=2, keys=4, values=5, power=1.0)

    def sets(seed, size, split):
        return {frozenset((text[:2], text[2:4])) for text, _ in sequences(task, seed, size, split)}

    trained = set().union(*(sets(seed, 1500, "train") for seed in range(3)))
    evaluated = set().union(*(sets(seed, 300, "eval") for seed in range(3)))
    assert not trained & evaluated
    assert len(trained | evaluated) == 6 * 25
    assert task.held_out == 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": 1}, r"task\.values=1: must be between 2 and 20000"),
        ({"keys": 0}, r"task\.keys=0: must be between 1 and 20000"),
        ({"keys": 19_999}, r"task\.keys=19999: must be between 1 and 19993 .*a character each"),
        ({"pairs": 0}, r"task\.pairs=0: must be between 1 and 10"),
        ({"pairs": 11}, r"task\.pairs=11: must be between 1 and 10 \(every pair has a key of its own\)"),
        ({"seq_len": 18}, r"task\.seq_len=18: must be at least 19 \(all pairs must fit twice\)"),
        ({"power": 0.0}, r"task\.power=0\.0: must be a number above 0"),
        ({"power": float("inf")}, r"task\.power=inf: must be a number above 0"),
        ({"power": float("nan")}, r"task\.power=nan: must be a number above 0"),
        ({"pairs": 1}, r"only 70 different problems .*use larger task\.keys or task\.values"),
    ],
)
def test_parameters_out_of_range_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        MQAR(**{**SETTINGS, **change})

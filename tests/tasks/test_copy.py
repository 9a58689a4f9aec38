"""copy against plain rotations of the code's text."""

import re
from collections import Counter

import pytest
from scipy import stats
from task_reading import sequences

from ablate.tasks.copy import Copy


def rotations(code):
    return [code[offset:] + code[:offset] for offset in range(len(code))]


@pytest.mark.parametrize("seq_len", [12, 13, 64, 128])
def test_every_sequence_is_a_code_and_as_much_of_its_rotation_as_fits(seq_len):
    task = Copy(seq_len=seq_len, offsets="uniform")
    for text, counted in sequences(task) + sequences(task, split="eval"):
        code, rotated = re.fullmatch(r"([01]+)>([01]+)", text).groups()
        assert len(code) == (seq_len + 2) // 2
        assert len(text) == seq_len + 1
        assert any(whole.startswith(rotated) for whole in rotations(code))
        assert counted == [False] * (len(code) + 1) + [True] * len(rotated)


def test_an_oracle_of_the_code_is_right_wherever_one_rotation_is_left():
    task = Copy(seq_len=64, offsets="uniform")
    known = 0
    for text, counted in sequences(task, size=100):
        code, rotated = text.split(">")
        for place, letter in enumerate(rotated):
            continuations = {whole[place] for whole in rotations(code) if whole.startswith(rotated[:place])}
            assert letter in continuations
            assert counted[len(code) + 1 + place]
            known += len(continuations) == 1
    assert known > 100 * 20


@pytest.mark.parametrize(("offsets", "choices"), [("uniform", 13), ("legacy", 12)])
def test_offsets_are_uniform_over_what_is_allowed(offsets, choices):
    task = Copy(seq_len=25, offsets=offsets)
    found = Counter()
    for text, _ in sequences(task, size=6000):
        code, rotated = text.split(">")
        fitting = [offset for offset, whole in enumerate(rotations(code)) if whole.startswith(rotated)]
        if len(fitting) == 1:
            found[fitting[0]] += 1
    assert set(found) == set(range(choices))
    assert stats.chisquare(list(found.values())).pvalue > 1e-3


def test_a_code_is_trained_on_or_evaluated_on_for_every_seed():
    task = Copy(seq_len=12, offsets="uniform")
    trained = {text[:7] for seed in range(3) for text, _ in sequences(task, seed, 1000)}
    evaluated = {text[:7] for seed in range(3) for text, _ in sequences(task, seed, 300, "eval")}
    assert not trained & evaluated
    assert len(trained | evaluated) == 2**7
    assert abs(len(evaluated) - task.held_out) < 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seq_len": 11, "offsets": "uniform"}, r"task\.seq_len=11: must be at least 12 .*use task\.seq_len=12"),
        ({"seq_len": 64, "offsets": "all"}, r"task\.offsets=all: must be uniform or legacy"),
    ],
)
def test_parameters_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Copy(**settings)

"""copy_repeat against a loop that goes letter by letter, and against what its description promises."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ablate.tasks.base import IGNORED
from ablate.tasks.copy_repeat import CopyRepeat
from ablate.training.evaluation import token_losses

SIZES = {"seq_len": 64, "substr_len": 8, "rnd_len": 6}


def naive_sequence(letters, lengths, sources, substr_len, length):
    """Tokens and which of them count, built one letter at a time from given draws."""
    pure = list(letters[:substr_len])
    tokens, counted = list(pure), [False] * substr_len
    for random_length, source in zip(lengths, sources, strict=True):
        for _ in range(random_length):
            pure.append(letters[len(pure)] if len(pure) < len(letters) else 0)
            tokens.append(pure[-1])
            counted.append(False)
        tokens.append(4)
        counted.append(False)
        for offset in range(substr_len):
            pure.append(pure[source + offset])
            tokens.append(pure[-1])
            counted.append(offset > 0)
    assert len(tokens) >= length
    return tokens[:length], counted[:length]


def naive_batch(task, seed, size):
    """The same draws as `CopyRepeat.batch`, in its order, put together by `naive_sequence`."""
    generator = np.random.default_rng(seed)
    copies = next(k for k in range(1, 10**6) if task.substr_len + k * (task.substr_len + 2) > task.seq_len)
    letters = generator.integers(4, size=(size, task.seq_len + 2))
    lengths = generator.integers(1, task.rnd_len, size=(size, copies))
    available = [[task.substr_len * k + sum(row[: k + 1]) for k in range(copies)] for row in lengths]
    sources = generator.integers(np.array(available) + (task.offsets == "uniform"))
    return [
        naive_sequence(*row, task.substr_len, task.seq_len + 1) for row in zip(letters, lengths, sources, strict=True)
    ]


def text(task, ids):
    return "".join("." if i == IGNORED else task.alphabet[i] for i in ids)


def first_copies(task, size):
    """Letters before the first copy, and the first copy, for each of `size` sequences."""
    whole = [text(task, row) for row in task.batch(np.random.default_rng(7), size).inputs_BT.tolist()]
    return [(row[: row.index(">")], row[row.index(">") + 1 :][: task.substr_len]) for row in whole]


@st.composite
def tasks(draw):
    substr_len, rnd_len = draw(st.integers(2, 9)), draw(st.integers(2, 9))
    seq_len = substr_len + rnd_len + 1 + draw(st.integers(0, 60))
    offsets = draw(st.sampled_from(["uniform", "legacy"]))
    return CopyRepeat(seq_len=seq_len, substr_len=substr_len, rnd_len=rnd_len, offsets=offsets)


@settings(max_examples=150, deadline=None)
@given(task=tasks(), seed=st.integers(0, 2**32))
def test_a_batch_equals_the_loop_over_letters(task, seed):
    batch = task.batch(np.random.default_rng(seed), 3)
    for (tokens, counted), inputs, targets in zip(naive_batch(task, seed, 3), *batch, strict=True):
        assert inputs.tolist() == tokens[:-1]
        assert targets.tolist() == [
            token if counts else IGNORED for token, counts in zip(tokens[1:], counted[1:], strict=True)
        ]


@settings(max_examples=150, deadline=None)
@given(task=tasks(), seed=st.integers(0, 2**32))
def test_exactly_the_letters_of_each_copy_but_its_first_count(task, seed):
    inputs, targets = task.batch(np.random.default_rng(seed), 1)
    tokens = inputs[0].tolist()
    for position, target in enumerate(targets[0].tolist()):
        since = next((k for k in range(position + 1) if tokens[position - k] == 4), None)
        assert (target != IGNORED) == (since is not None and 1 <= since < task.substr_len)


@settings(max_examples=150, deadline=None)
@given(task=tasks(), seed=st.integers(0, 2**32))
def test_each_copy_stands_among_the_letters_before_it(task, seed):
    inputs, targets = task.batch(np.random.default_rng(seed), 1)
    whole = text(task, [*inputs[0].tolist(), max(0, int(targets[0, -1]))])
    end = len(whole) if targets[0, -1] != IGNORED else len(whole) - 1
    for start in [i + 1 for i, letter in enumerate(whole) if letter == ">"]:
        copy = whole[start : min(start + task.substr_len, end)]
        assert copy in whole[:start].replace(">", "")


@pytest.mark.parametrize("rnd_len", range(2, 10))
def test_the_smallest_seq_len_leaves_every_sequence_a_target(rnd_len):
    task = CopyRepeat(seq_len=8 + rnd_len + 1, substr_len=8, rnd_len=rnd_len)
    counted = (task.batch(np.random.default_rng(0), 500).targets_BT != IGNORED).sum(dim=1)
    assert counted.min() == 1


def test_an_oracle_of_the_counted_targets_alone_has_loss_zero():
    task = CopyRepeat(**SIZES)
    targets = task.batch(np.random.default_rng(0), 16).targets_BT
    confident = 1e4 * torch.nn.functional.one_hot(targets.clamp(min=0), 5).float()
    assert token_losses(confident, targets).sum() == 0
    wrong = (targets + 1).clamp(min=0) % 5
    assert token_losses(1e4 * torch.nn.functional.one_hot(wrong, 5).float(), targets).sum() > 0


def test_the_docstring_shows_a_sequence_as_it_is_drawn():
    task = CopyRepeat(seq_len=24, substr_len=4, rnd_len=4)
    inputs, targets = task.batch(np.random.default_rng(5), 2)
    assert f"inputs   {text(task, inputs[0].tolist())}\n" in CopyRepeat.__doc__
    assert f"targets  {text(task, targets[0].tolist())}\n" in CopyRepeat.__doc__


def test_random_letters_and_their_number_are_uniform():
    drawn = first_copies(CopyRepeat(**SIZES), 4000)
    lengths = Counter(len(before) - 8 for before, _ in drawn)
    assert set(lengths) == {1, 2, 3, 4, 5}
    assert stats.chisquare(list(lengths.values())).pvalue > 1e-3
    letters = Counter("".join(before for before, _ in drawn))
    assert stats.chisquare([letters[letter] for letter in "acgt"]).pvalue > 1e-3


@pytest.mark.parametrize(("offsets", "choices"), [("uniform", 6), ("legacy", 5)])
def test_offsets_are_uniform_over_what_is_allowed(offsets, choices):
    drawn = first_copies(CopyRepeat(**SIZES, offsets=offsets), 12000)
    longest = [(before, copy) for before, copy in drawn if len(before) == 13]
    found = Counter(before.index(copy) for before, copy in longest if before.count(copy[:7]) == 1)
    assert set(found) == set(range(choices))
    assert stats.chisquare([found[offset] for offset in range(choices)]).pvalue > 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seq_len": 4}, r"task\.seq_len=4: must be at least 15 .*use task\.seq_len=15"),
        ({"seq_len": 14}, r"task\.seq_len=14: must be at least 15"),
        ({"substr_len": 1}, r"task\.substr_len=1: must be at least 2"),
        ({"rnd_len": 1}, r"task\.rnd_len=1: must be at least 2"),
        ({"offsets": "lagacy"}, r"task\.offsets=lagacy: must be uniform or legacy"),
    ],
)
def test_a_size_without_room_for_targets_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        CopyRepeat(**{**SIZES, **change})

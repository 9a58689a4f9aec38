"""Streams: what a name fixes, and what it does not."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn
from training_stub import TinyModel

from ablate.training.seeds import initialise, numpy_generator, seed_dropout, torch_generator

STREAMS = st.lists(st.one_of(st.integers(-(2**40), 2**40), st.text(max_size=5)), max_size=3).map(tuple)
SHOW = "from ablate.training.seeds import *; print(numpy_generator(3, 'data', 7).integers(1000, size=5).tolist())"


def first(seed, *stream):
    return numpy_generator(seed, *stream).integers(2**62), torch_generator(seed, *stream).initial_seed()


@settings(deadline=None)
@given(seed=st.integers(0, 2**64), stream=STREAMS)
def test_a_name_gives_the_same_stream_each_time(seed, stream):
    assert first(seed, *stream) == first(seed, *stream)


@settings(deadline=None)
@given(a=st.tuples(st.integers(0, 2**64), STREAMS), b=st.tuples(st.integers(0, 2**64), STREAMS))
def test_different_names_or_seeds_give_different_streams(a, b):
    assume(a != b)
    for one, other in zip(first(a[0], *a[1]), first(b[0], *b[1]), strict=True):
        assert one != other


def test_a_number_and_its_text_are_different_names():
    assert first(0, "1") != first(0, 1)
    assert first(0, "a", "b") != first(0, "ab")
    assert first(1, 2) != first(1, "2")


def test_a_stream_is_the_same_in_another_process_with_another_hash_seed():
    expected = str(numpy_generator(3, "data", 7).integers(1000, size=5).tolist())
    environment = os.environ | {"PYTHONHASHSEED": "4711"}
    shown = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True, env=environment)
    assert shown.stdout.strip() == expected


def test_a_known_stream_stays_what_it_was():
    key = int.from_bytes(hashlib.sha256(b'[3, "data", 7]').digest(), "little")
    assert numpy_generator(3, "data", 7).bit_generator.state == np.random.PCG64(key).state
    assert torch_generator(3, "data", 7).initial_seed() == key % 2**63
    assert numpy_generator(3, "data", 7).integers(1000, size=5).tolist() == [785, 634, 766, 709, 313]


def test_streams_of_neighbouring_steps_are_uncorrelated():
    drawn = np.array([numpy_generator(0, "data", step).standard_normal(50) for step in range(400)])
    correlations = np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]
    assert abs(correlations) < 4 / np.sqrt(drawn.size)


def test_dropout_follows_seed_and_step_and_nothing_else():
    dropout = nn.Dropout(0.5)
    with torch.random.fork_rng(devices=[]):
        masks = {}
        for key in ((1, 1), (1, 2), (2, 1), (1, 1)):
            torch.rand(len(masks))
            seed_dropout(*key)
            mask = dropout(torch.ones(64))
            assert torch.equal(masks.setdefault(key, mask), mask)
    assert not torch.equal(masks[1, 1], masks[1, 2])
    assert not torch.equal(masks[1, 1], masks[2, 1])


def test_models_start_equal_in_what_they_share():
    class Wider(TinyModel):
        def __init__(self):
            self.extra = None
            super().__init__()
            self.extra = nn.Linear(3, 3)

    plain, wider = TinyModel(), Wider()
    initialise(plain, 5)
    initialise(wider, 5)
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, wider.get_parameter(name))
    initialise(wider, 6)
    assert not torch.equal(plain.head.weight, wider.head.weight)

"""The steps between two records: their means, the first that diverged, and their way through a checkpoint."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ablate.training.window import Window

CPU = torch.device("cpu")
NUMBERS = st.floats(0, 2**99, width=32)
STEPS = st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(0, 99)), min_size=1, max_size=9)


def window_of(steps):
    window = Window()
    for loss, norm, count in steps:
        window.add(torch.tensor(loss), torch.tensor(norm), count)
    return window


@settings(deadline=None)
@given(steps=STEPS)
def test_means_weigh_losses_by_tokens_and_norms_by_steps(steps):
    losses, norms, counts = np.array(steps).T
    values = window_of(steps).values()
    assert values["grad_norm"] == pytest.approx(norms.mean())
    expected = np.average(losses, weights=counts) if counts.sum() else None
    assert values["loss"] == pytest.approx(expected)


@settings(deadline=None)
@given(before=STEPS, after=STEPS)
def test_a_window_goes_through_a_checkpoint_bit_for_bit(before, after):
    resumed = Window.from_state(window_of(before).state(), CPU)
    for loss, norm, count in after:
        resumed.add(torch.tensor(loss), torch.tensor(norm), count)
    assert resumed.state() == window_of(before + after).state()
    assert resumed.values() == window_of(before + after).values()


@pytest.mark.parametrize(
    ("loss", "norm", "message"),
    [
        (math.nan, math.nan, "training loss is nan at step 12"),
        (math.inf, 1.0, "training loss is inf at step 12"),
        (1.0, -math.inf, "gradient norm is -inf at step 12"),
    ],
)
def test_the_first_step_that_diverged_is_found(loss, norm, message):
    window = window_of([(1.0, 1.0, 5), (2.0, 1.0, 5), (loss, norm, 5), (math.nan, math.nan, 5)])
    assert window.not_finite(last_step=13) == (12, message)


def test_an_empty_window_and_a_sound_one_have_not_diverged():
    assert Window().not_finite(last_step=7) is None
    assert window_of([(1.0, 1.0, 0)]).not_finite(last_step=1) is None
    assert Window.from_state(Window().state(), CPU).state() == Window().state()

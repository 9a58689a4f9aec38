"""The arithmetic of the benchmarks, against numbers worked out by hand and torch's own FLOP counter."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from ablate.config.build import build
from benchmarks.engines import CPU, config_of, size_of
from benchmarks.figures import Size, Summary, attention_flops, linear_flops, ratios, step_flops, summarise

TINY = Size(
    name="tiny",
    overrides=(),
    batch=2,
    seq_len=3,
    width=4,
    layers=1,
    heads=2,
    feed_forward=4,
    vocabulary=5,
)
SMALL = ("attention=roper", "model.width=8", "model.heads=2", "model.layers=3", "training.batch_size=2")


def test_flops_of_a_tiny_model_are_those_counted_by_hand():
    # A token: q, k, v and output 4·16 products, feed-forward 2·4·16, head 4·5; six tokens, two FLOPs a product.
    assert linear_flops(TINY) == 2 * 6 * (64 + 128 + 20)
    # Three tokens attend to 1 + 2 + 3 tokens; a pair costs 4 products for its score and 4 for its value.
    assert attention_flops(TINY) == 2 * 2 * 6 * 8
    assert step_flops(TINY) == 3 * (2544 + 192)


@pytest.mark.parametrize("overrides", [SMALL, (*SMALL, "model.feed_forward=2", "task.seq_len=32")])
def test_linear_flops_are_those_that_torch_counts_in_the_product_s_model(overrides):
    size = size_of("small", overrides)
    model = build(config_of(overrides), CPU).parts.model
    # torch's counter has no formula for attention on a CPU, so what it counts are the linear layers.
    with FlopCounterMode(display=False) as counter:
        logits = model(torch.zeros(size.batch, size.seq_len, dtype=torch.long))
    assert counter.get_total_flops() == linear_flops(size)
    with FlopCounterMode(display=False) as counter:
        logits.sum().backward()
    assert counter.get_total_flops() == 2 * linear_flops(size)


def test_a_size_reads_its_numbers_from_the_composed_config():
    size = size_of("reference", ("experiment=copy_repeat", "attention=roper"))
    assert size[2:] == (16, 512, 128, 3, 4, 4, 5)
    assert size.tokens == 8192


def test_a_summary_is_the_median_and_the_range():
    assert summarise([3.0, 1.0, 10.0]) == Summary(3.0, 1.0, 10.0)
    assert summarise([1.0, 2.0]) == Summary(1.5, 1.0, 2.0)
    assert summarise([2.0]).scaled(3) == Summary(6.0, 6.0, 6.0)


def test_a_summary_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no measurement"):
        summarise([])


def test_ratios_are_taken_round_by_round():
    # The ratio of the medians would be 2; by rounds they are 5, 2 and 1/3.
    assert ratios([10.0, 4.0, 3.0], [2.0, 2.0, 9.0]) == Summary(2.0, 1 / 3, 5.0)


def test_ratios_of_unequal_numbers_of_rounds_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        ratios([1.0, 2.0], [1.0])


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=9), st.floats(1e-3, 1e3))
def test_a_summary_lies_in_order_and_keeps_it_when_scaled(values, factor):
    found = summarise(values).scaled(factor)
    assert found.low <= found.median <= found.high

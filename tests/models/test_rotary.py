import copy
import math
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ablate.models.rotary import Rotation, rotary_width

WIDTHS = [
    (0.3, 10, 2),
    (0.29, 100, 28),
    (0.58, 100, 58),
    (0.0, 10, 0),
    (1.0, 10, 10),
    (1.0, 65, 64),
    (0.25, 8, 2),
    (0.7, 10, 6),
    (0.0, 1, 0),
]


def rotation(width=8, heads=1, percentage=1.0, frequencies="partial", base=10000.0):
    return Rotation(width, heads, percentage, frequencies, base, name="rope_percentage")


def cosines_and_sines(turning, length, dtype):
    """What a rotation does to pairs (1, 0): the cosine and the sine of its angles, [T, P] each."""
    x = torch.zeros(1, 1, length, turning.width, dtype=dtype)
    x[..., : turning.width // 2] = 1
    return turning.rotate(x, 0)[0, 0].chunk(2, -1)


def exact_angles(length, width):
    return torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(0, width, 2, dtype=torch.float64) / width
    )


@pytest.mark.parametrize(("percentage", "head_width", "expected"), WIDTHS)
def test_rotary_width_is_the_share_rounded_down_to_even(percentage, head_width, expected):
    assert rotary_width(percentage, head_width, name="rope_percentage") == expected


@pytest.mark.parametrize("percentage", [1.5, -0.1, math.nan, math.inf])
def test_a_percentage_out_of_range_is_refused(percentage):
    with pytest.raises(ValueError, match=rf"rope_percentage={percentage}: must lie between 0 and 1"):
        rotary_width(percentage, 8, name="rope_percentage")


def test_a_percentage_that_leaves_no_pair_is_refused_with_the_smallest_that_does():
    message = (
        r"rope_percentage=0\.05: leaves no pair .* head of width 10 the smallest percentage .* is 0\.2 \(0 rotates"
    )
    with pytest.raises(ValueError, match=message):
        rotary_width(0.05, 10, name="rope_percentage")


def test_a_head_of_width_one_has_nothing_to_rotate():
    with pytest.raises(
        ValueError, match=r"value_percentage=1\.0: .* head of width 1 has no pair: use 0, or wider heads"
    ):
        rotary_width(1.0, 1, name="value_percentage")


@given(st.integers(2, 4096))
def test_the_smallest_percentage_of_the_message_rotates_one_pair(head_width):
    with pytest.raises(ValueError, match="smallest") as error:
        rotary_width(1e-9, head_width, name="rope_percentage")
    smallest = float(str(error.value).split(" is ")[1].split()[0])
    assert rotary_width(smallest, head_width, name="rope_percentage") == 2


@given(st.floats(0, 1), st.integers(2, 257))
def test_every_rotary_width_is_even_and_at_most_the_share(percentage, head_width):
    try:
        width = rotary_width(percentage, head_width, name="rope_percentage")
    except ValueError:
        assert percentage * head_width < 2
    else:
        assert width % 2 == 0
        assert percentage * head_width - 2 < width <= percentage * head_width + 1e-9


def test_an_unknown_frequency_convention_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"frequencies='full': must be one of partial, truncated"):
        rotation(frequencies="full")


@pytest.mark.parametrize("base", [0.0, -1.0, math.inf, math.nan])
def test_a_base_that_is_no_positive_number_is_refused(base):
    with pytest.raises(ValueError, match=rf"base={base}: must be a positive number"):
        rotation(base=base)


def test_a_negative_position_is_a_programming_error():
    with pytest.raises(AssertionError, match="positions start at 0"):
        rotation().rotate(torch.zeros(1, 1, 3, 8), -1)


@pytest.mark.parametrize("frequencies", ["partial", "truncated"])
@pytest.mark.parametrize("percentage", [0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("batch", [1, 3])
def test_features_beyond_the_rotary_width_pass_through_bit_for_bit(batch, percentage, frequencies):
    turning = rotation(16, 2, percentage, frequencies)
    x = torch.randn(batch, 2, 5, 8, requires_grad=True)
    turned = turning.rotate(x, 3)
    turned.sum().backward()
    assert turned.shape == x.shape
    assert torch.equal(turned[..., turning.width :], x[..., turning.width :])
    assert not torch.isclose(turned[..., : turning.width], x[..., : turning.width]).any(-1).all()
    assert torch.isfinite(x.grad).all()


def test_a_percentage_of_zero_returns_the_very_input():
    x = torch.randn(2, 1, 5, 8)
    assert rotation(percentage=0.0).rotate(x, 7) is x


def test_a_percentage_of_one_is_the_same_in_both_conventions():
    x = torch.randn(2, 1, 5, 8)
    assert torch.equal(rotation(frequencies="partial").rotate(x, 0), rotation(frequencies="truncated").rotate(x, 0))


def test_truncated_keeps_the_highest_frequencies_of_the_whole_head():
    turning = rotation(8, 1, 0.5, "truncated")
    cos, sin = cosines_and_sines(turning, 9, torch.float64)
    angles = exact_angles(9, 8)[:, :2]
    assert torch.allclose(cos, angles.cos(), atol=1e-12)
    assert torch.allclose(sin, angles.sin(), atol=1e-12)


@given(first=st.integers(0, 3000), percentage=st.sampled_from([0.25, 0.5, 1.0]))
def test_turning_there_and_back_changes_nothing_and_keeps_lengths(first, percentage):
    turning = rotation(24, 3, percentage)
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    turned = turning.rotate(x, first)
    assert torch.allclose(turning.unrotate(turned, first), x, atol=1e-12)
    assert torch.allclose(turned.norm(dim=-1), x.norm(dim=-1), atol=1e-12)


@pytest.mark.parametrize("frequencies", ["partial", "truncated"])
def test_the_gradient_is_the_one_of_finite_differences(frequencies):
    turning = rotation(16, 2, 0.5, frequencies)
    x = torch.randn(1, 2, 3, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: turning.rotate(x, 2), (x,))
    assert torch.autograd.gradcheck(lambda x: turning.unrotate(x, 2), (x,))


@pytest.mark.parametrize("frequencies", ["partial", "truncated"])
@pytest.mark.parametrize("percentage", [0.5, 1.0])
def test_rotated_products_depend_on_the_distance_only(percentage, frequencies):
    turning = rotation(16, 2, percentage, frequencies)
    q, k = torch.randn(2, 1, 2, 1, 8, dtype=torch.float64)
    products = [(turning.rotate(q, 5 + shift) * turning.rotate(k, 2 + shift)).sum(-1) for shift in (0, 7, 1000)]
    other = (turning.rotate(q, 6) * turning.rotate(k, 2)).sum(-1)
    assert torch.allclose(products[0], products[1], atol=1e-10)
    assert torch.allclose(products[0], products[2], atol=1e-10)
    assert not torch.allclose(products[0], other, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_angles_are_exact_to_the_rounding_of_the_dtype_up_to_position_4096(dtype):
    cos, sin = cosines_and_sines(rotation(64), 4097, dtype)
    angles = exact_angles(4097, 64)
    rounding = torch.finfo(dtype).eps / 2
    assert (cos.double() - angles.cos()).abs().max() <= rounding
    assert (sin.double() - angles.sin()).abs().max() <= rounding
    rows = torch.cat((cos, sin), -1)
    assert (rows[1:] != rows[:-1]).any(-1).all()


def test_a_longer_then_a_shorter_sequence_turns_as_a_fresh_rotation_would():
    turning = rotation()
    for length in (32, 33, 64, 16, 1, 65):
        x = torch.randn(1, 1, length, 8)
        assert torch.equal(turning.rotate(x, 0), rotation().rotate(x, 0))


def test_another_dtype_turns_as_a_fresh_rotation_would():
    turning = rotation()
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float64):
        x = torch.randn(1, 1, 5, 8, dtype=dtype)
        assert torch.equal(turning.rotate(x, 0), rotation().rotate(x, 0))


def test_another_device_turns_without_error():
    turning = rotation()
    for device in ("cpu", "meta", "cpu"):
        assert turning.rotate(torch.ones(1, 1, 5, 8, device=device), 0).device.type == device


def test_four_hundred_lengths_keep_one_table_as_long_as_the_next_power_of_two():
    turning = rotation()
    for length in range(1, 401):
        turning.rotate(torch.zeros(1, 1, length, 8), 0)
    tables = 2 * 512 * 8 * 4
    assert tables < len(pickle.dumps(turning)) < tables + 2000


def test_tables_made_in_inference_mode_can_be_trained_with():
    turning = rotation()
    with torch.inference_mode():
        turning.rotate(torch.randn(1, 1, 5, 8), 0)
    x = torch.randn(1, 1, 5, 8, requires_grad=True)
    turning.rotate(x, 0).sum().backward()
    assert torch.isfinite(x.grad).all()


def test_a_rotation_that_was_copied_or_pickled_turns_alike():
    turning = rotation()
    x = torch.randn(1, 1, 5, 8)
    expected = turning.rotate(x, 2)
    assert torch.equal(copy.deepcopy(turning).rotate(x, 2), expected)
    assert torch.equal(pickle.loads(pickle.dumps(turning)).rotate(x, 2), expected)


def test_a_rotation_built_on_the_meta_device_turns_real_tensors():
    with torch.device("meta"):
        turning = rotation()
    x = torch.randn(1, 1, 5, 8)
    assert torch.equal(turning.rotate(x, 2), rotation().rotate(x, 2))

"""Each scheme against loops written from its formula, and the properties that tell the rotary schemes apart."""

import math

import pytest
import scheme_configs
import torch

NET_POSITION = {
    "none": lambda query, key: 0,
    "rope": lambda query, key: 0,
    "roper": lambda query, key: key - query,
    "roper_2022": lambda query, key: 2 * key - query,
    "rope_v": lambda query, key: key,
}
"""By what position the value of a key is turned, net, in the output of a query."""

HEADS, HEAD_WIDTH = 2, 8


def turn(vector, position, rotary, spread, base):
    """Turn pairs (j, j + rotary/2) of a list one by one, by position · base^(-2j/spread)."""
    turned = list(vector)
    half = rotary // 2
    for j in range(half):
        angle = position * base ** (-2 * j / spread)
        first, second = vector[j], vector[j + half]
        turned[j] = first * math.cos(angle) - second * math.sin(angle)
        turned[j + half] = first * math.sin(angle) + second * math.cos(angle)
    return turned


def attend_by_loops(name, qkv, start, score, value):
    """One head: lists of queries, keys and values; `score` and `value` are (rotary, spread, base)."""
    q, k, v = qkv
    rows = []
    for m, query in enumerate(q, start + len(k) - len(q)):
        turned = turn(query, m, *score)
        seen = range(start, m + 1)
        scores = [math.fsum(a * b for a, b in zip(turned, turn(k[i - start], i, *score), strict=True)) for i in seen]
        weights = [math.exp(s / math.sqrt(len(query))) for s in scores]
        values = [turn(v[i - start], NET_POSITION[name](m, i), *value) for i in seen]
        rows.append(
            [math.fsum(map(math.prod, zip(weights, x, strict=True))) / sum(weights) for x in zip(*values, strict=True)]
        )
    return rows


def expected_output(name, qkv, start, score, value):
    def head(b, h):
        return attend_by_loops(name, [x[b, h].tolist() for x in qkv], start, score, value)

    batch, heads = qkv[0].shape[:2]
    return torch.tensor([[head(b, h) for h in range(heads)] for b in range(batch)], dtype=torch.float64)


def qkv(length=7, batch=1, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (batch, HEADS, length, HEAD_WIDTH)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for _ in range(3)]


def build(name, **changes):
    return scheme_configs.factory(name, **changes)(HEADS * HEAD_WIDTH, HEADS)


@pytest.mark.parametrize("start", [0, 5])
@pytest.mark.parametrize("queries", [3, 7])
@pytest.mark.parametrize("name", NET_POSITION)
def test_default_settings_match_loops_over_the_formula(name, queries, start):
    q, k, v = qkv(batch=2)
    q = q[:, :, -queries:]
    full = (8, 8, 10000.0)
    score = (0, 8, 10000.0) if name == "none" else full
    expected = expected_output(name, (q, k, v), start, score, full)
    assert torch.allclose(build(name)(q, k, v, start=start), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("frequencies", ["partial", "truncated"])
@pytest.mark.parametrize("percentage", [0.0, 0.25, 0.5, 0.8, 1.0])
def test_rope_matches_loops_at_every_percentage(percentage, frequencies):
    q, k, v = qkv(16)
    rotary = int(percentage * 8) // 2 * 2
    score = (rotary, rotary if frequencies == "partial" else 8, 100.0)
    scheme = build("rope", rope_percentage=percentage, frequencies=frequencies, base=100.0)
    assert scheme.effective() == {"rotary_width": rotary}
    assert torch.allclose(scheme(q, k, v), expected_output("rope", (q, k, v), 0, score, score), atol=1e-6, rtol=0)


@pytest.mark.parametrize("frequencies", ["partial", "truncated"])
@pytest.mark.parametrize(
    ("percentage", "value_percentage"), [(0.5, 0.5), (0.5, 1.0), (1.0, 0.25), (0.0, 0.75), (1.0, 0.0)]
)
@pytest.mark.parametrize("name", scheme_configs.VALUE_ROTARY)
def test_values_are_turned_by_their_own_percentage(name, percentage, value_percentage, frequencies):
    q, k, v = qkv()
    widths = [int(p * 8) for p in (percentage, value_percentage)]
    score, value = [(width, width if frequencies == "partial" else 8, 10000.0) for width in widths]
    scheme = build(name, rope_percentage=percentage, value_percentage=value_percentage, frequencies=frequencies)
    assert scheme.effective() == {"rotary_width": widths[0], "value_rotary_width": widths[1]}
    expected = expected_output(name, (q, k, v), 3, score, value)
    assert torch.allclose(scheme(q, k, v, start=3), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", scheme_configs.VALUE_ROTARY)
def test_values_have_the_percentage_of_the_scores_unless_told(name):
    assert build(name, rope_percentage=0.5).effective() == {"rotary_width": 4, "value_rotary_width": 4}


@pytest.mark.parametrize("name", scheme_configs.ROTARY)
def test_a_percentage_of_zero_is_no_positions_bit_for_bit(name):
    inputs = qkv(dtype=torch.float32)
    assert torch.equal(build(name, rope_percentage=0.0)(*inputs), build("none")(*inputs))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *[(name, "rope_percentage") for name in scheme_configs.ROTARY],
        *[(name, "value_percentage") for name in scheme_configs.VALUE_ROTARY],
    ],
)
@pytest.mark.parametrize(
    ("value", "rule"), [(1.5, "must lie between 0 and 1"), (-0.1, "must lie between 0 and 1"), (0.05, "leaves no pair")]
)
def test_a_percentage_that_cannot_be_is_refused_by_its_name(name, key, value, rule):
    with pytest.raises(ValueError, match=rf"^{key}={value}: {rule}"):
        build(name, **{key: value})


@pytest.mark.parametrize("percentage", [0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("name", scheme_configs.ROTARY)
@pytest.mark.parametrize("batch", [1, 3])
def test_partial_rotation_trains_at_every_percentage(batch, name, percentage):
    inputs = [x.requires_grad_() for x in qkv(batch=batch)]
    build(name, rope_percentage=percentage)(*inputs).sum().backward()
    assert all(torch.isfinite(x.grad).all() for x in inputs)


def shift_changes(name, percentage, dtype=torch.float32):
    """How far outputs move when every position is shifted, at most."""
    inputs = qkv(dtype=dtype)
    scheme = build(name, rope_percentage=percentage)
    return max((scheme(*inputs, start=shift) - scheme(*inputs)).abs().max().item() for shift in (1, 7, 100))


@pytest.mark.parametrize("percentage", [0.5, 1.0])
@pytest.mark.parametrize("name", ["none", "rope", "roper"])
def test_shifting_all_positions_changes_nothing_for_relative_schemes(name, percentage):
    assert shift_changes(name, percentage) < 1e-5


@pytest.mark.parametrize("percentage", [0.5, 1.0])
@pytest.mark.parametrize("name", ["roper_2022", "rope_v"])
def test_roper_2022_and_rope_v_leak_the_absolute_position(name, percentage):
    assert shift_changes(name, percentage) > 0.1


def attend_to_oneself(name, value_percentage):
    """The output of a scheme where every query attends to its own key alone, and the values."""
    own_key = 100 * torch.eye(HEAD_WIDTH).expand(1, HEADS, HEAD_WIDTH, HEAD_WIDTH)
    v = qkv(HEAD_WIDTH, dtype=torch.float32)[2]
    scheme = build(name, rope_percentage=0.0, value_percentage=value_percentage)
    return scheme(own_key, own_key, v, start=4), v


@pytest.mark.parametrize("value_percentage", [0.25, 0.5, 1.0])
def test_roper_returns_the_values_when_each_query_attends_to_itself(value_percentage):
    out, v = attend_to_oneself("roper", value_percentage)
    assert torch.allclose(out, v, atol=1e-5)


@pytest.mark.parametrize("name", ["roper_2022", "rope_v"])
def test_the_values_come_back_turned_by_their_position_where_it_leaks(name):
    out, v = attend_to_oneself(name, 1.0)
    expected = torch.tensor([[turn(x, 4 + t, 8, 8, 10000.0) for t, x in enumerate(head.tolist())] for head in v[0]])
    assert torch.allclose(out[0], expected, atol=1e-5)


@pytest.mark.parametrize("value_percentage", [0.5, 1.0])
def test_roper_turns_a_value_by_its_distance_to_the_query(value_percentage):
    q, k, v = qkv(2, dtype=torch.float32)
    v[:, :, 1] = 0
    k[:, :, 0] = 1000 * q[:, :, 1]
    scheme = build("roper", rope_percentage=0.0, value_percentage=value_percentage)
    rotary = int(8 * value_percentage)
    expected = torch.tensor([turn(x, -1, rotary, rotary, 10000.0) for x in v[0, :, 0].tolist()])
    assert torch.allclose(scheme(q, k, v, start=50)[0, :, 1], expected, atol=1e-5)

"""The schemes with absolute positions, biases and fading scores against loops written from their papers."""

import math

import pytest
import scheme_configs
import torch

HEADS, HEAD_WIDTH, LENGTH = 2, 4, 12


def qkv(length=LENGTH):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(1, HEADS, length, HEAD_WIDTH, generator=generator, dtype=torch.float64) for _ in range(3)]


def build(name, heads=HEADS, **changes):
    scheme = scheme_configs.factory(name, **changes)(heads * HEAD_WIDTH, heads).double().eval()
    generator = torch.Generator().manual_seed(4)
    for parameter in scheme.parameters():
        parameter.data.copy_(torch.rand(parameter.shape, generator=generator, dtype=torch.float64) - 0.3)
    return scheme


def attend(inputs, start, bias, score=None):
    """Causal attention by loops: `bias(head, m, i)` is added to `score(query, m, key, i)` / √D."""
    score = score or (lambda q, m, k, i: math.fsum(a * b for a, b in zip(q, k, strict=True)))
    heads = []
    for head in range(HEADS):
        q, k, v = (x[0, head].tolist() for x in inputs)
        rows = []
        for m in range(start + len(k) - len(q), start + len(k)):
            query = q[m - start - len(k) + len(q)]
            weights = [
                math.exp(score(query, m, k[i - start], i) / math.sqrt(HEAD_WIDTH) + bias(head, m, i))
                for i in range(start, m + 1)
            ]
            seen = [[w * x for x in v[n]] for n, w in enumerate(weights)]
            rows.append([math.fsum(column) / math.fsum(weights) for column in zip(*seen, strict=True)])
        heads.append(rows)
    return torch.tensor([heads], dtype=torch.float64)


def check(scheme, bias, score=None):
    for start, queries in ((0, LENGTH), (5, LENGTH), (5, 3)):
        q, k, v = qkv()
        q = q[:, :, -queries:]
        expected = attend((q, k, v), start, bias, score)
        assert torch.allclose(scheme(q, k, v, start=start), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("heads", "exponents"),
    [
        (1, [8]),
        (2, [4, 8]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (3, [4, 8, 2]),
        (6, [2, 4, 6, 8, 1, 3]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    ],
)
def test_alibi_has_the_slopes_of_the_paper(heads, exponents):
    assert build("alibi", heads).slopes == pytest.approx([2**-exponent for exponent in exponents], rel=1e-12)


def test_alibi_matches_loops():
    check(build("alibi"), lambda head, m, i: -[1 / 16, 1 / 256][head] * (m - i))


def bucket(distance, buckets, longest):
    """Counted up from the distance at which each bucket begins."""
    exact = buckets // 2
    if distance < exact:
        return distance
    begins = [exact * (longest / exact) ** (n / (buckets - exact)) for n in range(buckets - exact)]
    return exact + sum(distance >= begin for begin in begins) - 1


@pytest.mark.parametrize(("buckets", "longest"), [(32, 128), (8, 11), (2, 2), (7, 100)])
def test_t5_puts_distances_into_the_buckets_of_the_paper(buckets, longest):
    found = build("t5", buckets=buckets, max_distance=longest)._bucket(torch.arange(300)).tolist()
    assert found == [bucket(distance, buckets, longest) for distance in range(300)]
    assert set(found) == set(range(buckets))


def test_t5_buckets_at_a_few_distances_known_by_hand():
    found = build("t5")._bucket(torch.tensor([0, 15, 16, 18, 19, 31, 32, 64, 127, 128, 5000])).tolist()
    assert found == [0, 15, 16, 16, 17, 21, 21, 26, 31, 31, 31]


def test_t5_matches_loops():
    scheme = build("t5", buckets=6, max_distance=9)
    table = scheme.bias.tolist()
    check(scheme, lambda head, m, i: table[bucket(m - i, 6, 9)][head])


def test_fire_matches_loops():
    scheme = build("fire", hidden=3, scale=0.5, threshold=8.0)
    first, _, second = scheme.network
    c = abs(0.5 + scheme.scale_change.item())
    threshold = abs(1 + scheme.threshold_change.item()) * 8
    assert 5 < threshold < LENGTH

    def bias(head, m, i):
        x = math.log(c * (m - i) + 1) / math.log(c * max(threshold, m) + 1)
        hidden = [max(0.0, w[0] * x + b) for w, b in zip(first.weight.tolist(), first.bias.tolist(), strict=True)]
        return (
            math.fsum(w * h for w, h in zip(second.weight[head].tolist(), hidden, strict=True))
            + second.bias[head].item()
        )

    check(scheme, bias)


@pytest.mark.parametrize(("percentage", "width"), [(1.0, 4), (0.5, 2)])
def test_xpos_matches_loops(percentage, width):
    scheme = build("xpos", rope_percentage=percentage, gamma=0.3, scale_base=7.0, base=50.0)

    def score(q, m, k, i):
        total = sum(a * b for a, b in zip(q[width:], k[width:], strict=True))
        for j in range(width // 2):
            a, b = complex(q[j], q[j + width // 2]), complex(k[j], k[j + width // 2])
            angle = (m - i) * 50.0 ** (-2 * j / width)
            fading = ((2 * j / width + 0.3) / 1.3) ** ((m - i) / 7)
            total += (a * b.conjugate() * complex(math.cos(angle), math.sin(angle))).real * fading
        return total

    check(scheme, lambda head, m, i: 0.0, score)


@pytest.mark.parametrize("percentage", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("batch", [1, 3])
def test_features_that_xpos_does_not_rotate_pass_bit_for_bit(batch, percentage):
    scheme, width = scheme_configs.factory("xpos", rope_percentage=percentage)(16, 2), int(8 * percentage)
    k, v = torch.randn(2, batch, 2, 5, 8)
    stored = scheme.store(k, v, start=7)
    assert torch.equal(stored.keys[..., width:], k[..., width:])
    assert not torch.isclose(stored.keys[..., :width], k[..., :width]).any(-1).all()
    assert stored.values is v


def test_xpos_stays_finite_at_ten_thousand_positions():
    q, k, v = (x.float() for x in qkv())
    out = scheme_configs.factory("xpos")(HEADS * HEAD_WIDTH, HEADS)(q, k, v, start=10_000)
    assert torch.isfinite(out).all()


@pytest.mark.parametrize("name", ["alibi", "t5", "xpos"])
def test_shifting_all_positions_changes_nothing_for_relative_schemes(name):
    scheme, inputs = build(name), qkv()
    for shift in (1, 100):
        assert torch.allclose(scheme(*inputs, start=shift), scheme(*inputs), atol=1e-9)


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "randomised"])
def test_absolute_schemes_attend_without_positions(name):
    check(build(name), lambda head, m, i: 0.0)


def sinusoid(position, width, base=10000.0):
    pairs = [(position * base ** (-2 * j / width)) for j in range((width + 1) // 2)]
    return [f(angle) for angle in pairs for f in (math.sin, math.cos)][:width]


@pytest.mark.parametrize("width", [8, 7, 1])
@pytest.mark.parametrize("start", [0, 300])
def test_sinusoidal_adds_the_vectors_of_the_paper(width, start):
    scheme = scheme_configs.factory("sinusoidal")(width, 1)
    x = torch.randn(2, 5, width, dtype=torch.float64)
    expected = torch.tensor([sinusoid(start + t, width) for t in range(5)], dtype=torch.float64)
    assert torch.allclose(scheme.embed(x, start=start) - x, expected.expand(2, -1, -1), atol=1e-6)


def test_neighbouring_positions_differ_in_bfloat16_up_to_position_4096():
    zeros = torch.zeros(1, 4097, 32, dtype=torch.bfloat16)
    added = scheme_configs.factory("sinusoidal")(32, 1).embed(zeros)[0]
    exact = torch.tensor([sinusoid(t, 32) for t in range(4097)], dtype=torch.float64)
    assert (added.double() - exact).abs().max() <= 2**-9 + 1e-6
    assert (added[1:] != added[:-1]).any(-1).all()


def test_learned_adds_the_row_of_each_position():
    scheme = build("learned", length=9)
    x = torch.zeros(2, 4, HEADS * HEAD_WIDTH, dtype=torch.float64)
    assert torch.equal(scheme.embed(x, start=5), scheme.positions.weight[5:9].expand(2, -1, -1))


def rows(scheme, length, batch=400):
    """The positions that a learned scheme gives in training, [batch, length], read from a table of row numbers."""
    numbers = torch.arange(float(scheme.positions.num_embeddings))
    scheme.positions.weight.data.copy_(numbers[:, None].expand_as(scheme.positions.weight))
    return scheme.train().embed(torch.zeros(batch, length, HEADS * HEAD_WIDTH))[..., 0].long()


def test_learned_with_random_offset_trains_every_row_and_evaluates_from_the_first():
    torch.manual_seed(0)
    scheme = build("learned", length=9, random_offset=True)
    found = rows(scheme, 4)
    assert torch.equal(found - found[:, :1], torch.arange(4).expand(400, -1))
    assert set(found[:, 0].tolist()) == set(range(6))
    assert torch.equal(rows(scheme, 9, batch=3), torch.arange(9).expand(3, -1))
    assert scheme.eval().embed(torch.zeros(1, 4, HEADS * HEAD_WIDTH))[0, :, 0].tolist() == [0, 1, 2, 3]


def test_learned_without_random_offset_trains_as_it_evaluates():
    assert torch.equal(rows(build("learned", length=9), 4), torch.arange(4).expand(400, -1))


def positions_of(scheme, length, batch=1, start=0):
    """The positions whose sinusoids a randomised scheme adds, found by comparing with all of them."""
    added = scheme.embed(torch.zeros(batch, length, 32), start=start)
    table = torch.tensor([sinusoid(n, 32) for n in range(scheme._longest)])
    return torch.cdist(added, table.expand(batch, -1, -1)).argmin(-1)


def randomised(longest=50, length=5):
    return scheme_configs.factory("randomised", longest=longest, length=length)(32, 2)


def test_randomised_draws_sorted_positions_without_repetition_from_the_whole_range():
    torch.manual_seed(0)
    found = positions_of(randomised(), 5, batch=600)
    assert (found.diff() > 0).all()
    assert (found[0] != found[1]).any()
    counts = found.flatten().bincount(minlength=50)
    # 600 sequences hold each of 50 positions with probability 1/10: 60 of them, standard deviation 7.3.
    assert ((counts - 60).abs() < 5 * 7.3).all()
    assert torch.equal(positions_of(randomised(), 50), torch.arange(50)[None])


def test_randomised_draws_follow_torchs_generator():
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(positions_of(randomised(), 5))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_randomised_spreads_positions_evenly_in_evaluation():
    scheme = randomised().eval()
    assert positions_of(scheme, 5).tolist() == [[5, 15, 25, 35, 45]]
    assert positions_of(scheme, 3).tolist() == [[5, 15, 25]]
    assert positions_of(scheme, 2, start=3).tolist() == [[35, 45]]
    assert positions_of(scheme, 10).tolist() == [[2, 7, 12, 17, 22, 27, 32, 37, 42, 47]]
    assert positions_of(scheme, 50).tolist() == [list(range(50))]


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("sinusoidal", {"base": 0.0}, "base=0.0: must be a positive number"),
        ("randomised", {"base": math.inf}, "base=inf: must be a positive number"),
        ("learned", {"length": 0}, "model.attention.length=0: must be at least 1"),
        ("randomised", {"length": 0}, "model.attention.length=0: must be at least 1"),
        ("randomised", {"longest": 9, "length": 10}, "longest=9: must be at least model.attention.length=10"),
        ("t5", {"buckets": 1}, "model.attention.buckets=1: must be at least 2"),
        ("t5", {"max_distance": 16}, "max_distance=16: must be above 16"),
        ("fire", {"hidden": 0}, "model.attention.hidden=0: must be at least 1"),
        ("fire", {"scale": -1.0}, "model.attention.scale=-1.0: must be a positive number"),
        ("fire", {"threshold": math.nan}, "model.attention.threshold=nan: must be a positive number"),
        ("xpos", {"gamma": 0.0}, "model.attention.gamma=0.0: must be a positive number"),
        ("xpos", {"scale_base": math.inf}, "model.attention.scale_base=inf: must be a positive number"),
    ],
)
def test_values_that_make_no_sense_are_refused_by_name(name, changes, message):
    with pytest.raises(ValueError, match=message):
        build(name, **changes)


@pytest.mark.parametrize(("name", "key"), [("learned", "length"), ("randomised", "longest")])
def test_a_sequence_beyond_the_last_position_is_refused_with_what_to_set(name, key):
    changes = {"length": 4} if key == "length" else {"length": 4, "longest": 4}
    scheme = build(name, **changes)
    for length, start in ((5, 0), (1, 4)):
        with pytest.raises(ValueError, match=rf"model.attention.{key}=4: a sequence has 5 positions; use .*{key}=5"):
            scheme.embed(torch.zeros(1, length, HEADS * HEAD_WIDTH), start=start)

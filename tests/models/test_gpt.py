import hashlib
import re
from pathlib import Path

import pytest
import scheme_configs
import torch
from omegaconf import OmegaConf
from torch.nn.functional import cross_entropy

from ablate.models.base import Scheme
from ablate.models.gpt import GPT

VOCABULARY = 5
CONFIG = Path(__file__).parents[2] / "conf" / "model" / "gpt.yaml"
SIZES = {"width": 12, "layers": 2, "heads": 3, "feed_forward": 4, "dropout": 0.0, "tied": False}


def generator_for(name, seed=0):
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def build(scheme="roper", **changes):
    model = GPT(VOCABULARY, **{**SIZES, **changes}, attention=scheme_configs.factory(scheme))
    model.initialise(generator_for)
    return model


def tokens(length=7, batch=2):
    return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("scheme", scheme_configs.NAMES)
def test_logits_have_one_row_per_position_and_finite_gradients(scheme):
    model = build(scheme)
    logits = model(tokens())
    assert logits.shape == (2, 7, VOCABULARY)
    cross_entropy(logits.flatten(0, 1), tokens().flatten()).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


@pytest.mark.parametrize("scheme", scheme_configs.NAMES)
@pytest.mark.parametrize("changed", range(1, 7))
def test_changing_a_token_leaves_earlier_logits_unchanged(scheme, changed):
    model = build(scheme).eval()
    x = tokens()
    before = model(x)
    x[:, changed] = (x[:, changed] + 1) % VOCABULARY
    after = model(x)
    assert torch.equal(after[:, :changed], before[:, :changed])
    assert not torch.isclose(after[:, changed], before[:, changed]).all()


@pytest.mark.parametrize("scheme", scheme_configs.NAMES)
def test_all_schemes_start_equal_in_the_parameters_they_share(scheme):
    reference, state = build("none").state_dict(), build(scheme).state_dict()
    assert set(reference) <= set(state)
    assert all(torch.equal(state[name], value) for name, value in reference.items())


def test_a_deeper_or_wider_model_starts_equal_in_the_parameters_it_shares():
    reference = build().state_dict()
    for state in (build(layers=3).state_dict(), build(feed_forward=5).state_dict()):
        # The bias of a layer with another fan in has another range.
        same = [name for name in reference if state[name].shape == reference[name].shape]
        shared = [name for name in same if not name.endswith("feed_forward.2.bias")]
        assert len(shared) >= len(reference) - 8
        assert all(torch.equal(state[name], reference[name]) for name in shared)


def test_initialise_asks_once_for_the_generator_of_every_parameter():
    model = build()
    asked = []
    model.initialise(lambda name: asked.append(name) or generator_for(name))
    assert sorted(asked) == sorted(name for name, _ in model.named_parameters())


def test_initialise_leaves_torchs_own_generator_alone():
    model = build()
    state = torch.get_rng_state()
    model.initialise(generator_for)
    assert torch.equal(torch.get_rng_state(), state)


def test_another_seed_starts_elsewhere():
    model = build()
    first = model.head.weight.clone()
    model.initialise(lambda name: generator_for(name, seed=1))
    assert not torch.isclose(model.head.weight, first).any()


def test_matrices_fill_the_xavier_range_of_their_own_fans():
    model = build(width=60)
    attention, feed_forward = model.blocks[0].attention, model.blocks[0].feed_forward
    fans = [(matrix, 60, 60) for matrix in (*attention.qkv.weight.chunk(3), attention.out.weight)]
    fans += [(feed_forward[0].weight, 60, 240), (feed_forward[2].weight, 240, 60)]
    fans += [(model.head.weight, 60, VOCABULARY)]
    for matrix, fan_in, fan_out in fans:
        bound = (6 / (fan_in + fan_out)) ** 0.5
        assert 0.95 * bound < matrix.abs().max().item() <= bound
        assert abs(matrix.mean().item()) < 0.1 * bound
        assert matrix.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)


def test_queries_keys_and_values_start_different():
    q, k, v = build().blocks[0].attention.qkv.weight.chunk(3)
    assert not torch.isclose(q, k).any()
    assert not torch.isclose(k, v).any()


def test_norms_start_as_identity_and_biases_in_the_range_of_their_fan_in():
    model = build(width=60)
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 9.0)
    model.initialise(generator_for)
    vectors = {name: parameter for name, parameter in model.named_parameters() if parameter.ndim == 1}
    norms = {name: vector for name, vector in vectors.items() if "norm" in name}
    assert len(norms) == 10
    for name, vector in norms.items():
        assert torch.equal(vector, torch.full_like(vector, float(name.endswith("weight"))))
    for name in vectors.keys() - norms.keys():
        bound = (240 if name.endswith("feed_forward.2.bias") else 60) ** -0.5
        assert 0.5 * bound < vectors[name].abs().max().item() <= bound


def test_the_embedding_is_normal_and_a_tied_one_as_small_as_an_output_layer():
    for tied, scale in ((False, 1.0), (True, 60**-0.5)):
        embedding = build(width=60, tied=tied).embedding.weight
        assert embedding.std().item() == pytest.approx(scale, rel=0.1)
        assert abs(embedding.mean().item()) < 0.1 * scale


def test_the_default_size_has_the_parameters_counted_by_hand():
    config = OmegaConf.to_container(OmegaConf.load(CONFIG))
    assert config.pop("_target_") == "ablate.models.gpt.GPT"
    model = GPT(VOCABULARY, **config, attention=scheme_configs.factory("roper"))
    embedding, head, norm = 5 * 32, 5 * 32 + 5, 2 * 32
    attention = 3 * (32 * 32 + 32) + (32 * 32 + 32)
    feed_forward = 32 * 128 + 128 + 128 * 32 + 32
    expected = embedding + 2 * (attention + feed_forward + 2 * norm) + norm + head
    assert expected == 25797
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_a_tied_head_shares_and_trains_the_matrix_of_the_embedding():
    model, untied = build(tied=True), build()
    assert model.head.weight is model.embedding.weight
    assert sum(p.numel() for p in untied.parameters()) - sum(p.numel() for p in model.parameters()) == VOCABULARY * 12
    untied.embedding.weight.data.copy_(model.embedding.weight)
    untied.head.weight.data.copy_(model.embedding.weight)
    for each in (model, untied):
        each(tokens()).square().sum().backward()
    both = untied.embedding.weight.grad + untied.head.weight.grad
    assert torch.allclose(model.embedding.weight.grad, both, rtol=1e-4, atol=1e-4)


def naive_logits(model, x):
    """The model layer by layer with plain matrix products, no positions, no batch; float64."""
    state = {name: value.double() for name, value in model.state_dict().items()}

    def linear(y, name):
        return y @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def norm(y, name):
        centred = y - y.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * state[f"{name}.weight"]

    def attend(y, name):
        q, k, v = linear(y, f"{name}.qkv").split(12, -1)
        heads = []
        for head in range(3):
            part = slice(4 * head, 4 * head + 4)
            scores = (q[:, part] @ k[:, part].T / 2).masked_fill(torch.ones(len(y), len(y)).triu(1) > 0, -torch.inf)
            heads.append(scores.softmax(-1) @ v[:, part])
        return linear(torch.cat(heads, -1), f"{name}.out")

    y = state["embedding.weight"][x]
    for block in ("blocks.0", "blocks.1"):
        y = y + attend(norm(y, f"{block}.attention_norm"), f"{block}.attention")
        hidden = linear(norm(y, f"{block}.feed_forward_norm"), f"{block}.feed_forward.0").clamp(min=0)
        y = y + linear(hidden, f"{block}.feed_forward.2")
    return linear(norm(y, "norm"), "head")


def test_the_model_is_the_sum_of_its_layers():
    model = build("none")
    for x, logits in zip(tokens(), model.double()(tokens()), strict=True):
        assert torch.allclose(logits, naive_logits(model, x), atol=1e-10)


class Counting(Scheme):
    """A scheme that adds one to the embedding and returns the values, and counts."""

    def __init__(self, width, heads, /):
        super().__init__()
        self.embedded = 0
        self.dropouts = []

    def embed(self, x_BTC, *, start=0):
        self.embedded += 1
        return x_BTC + 1

    def attend(self, q_BHTD, k_BHSD, v_BHSD, *, start=0, dropout=0.0):
        self.dropouts.append(dropout)
        return v_BHSD

    def effective(self):
        return {"counted": 3}


def test_only_the_scheme_of_the_first_layer_adds_positions_to_the_embedding():
    model = GPT(VOCABULARY, **SIZES, attention=Counting)
    model(tokens())
    assert [block.attention.scheme.embedded for block in model.blocks] == [1, 0]
    assert model.effective() == {"counted": 3}


def test_attention_dropout_is_on_in_training_only():
    model = GPT(VOCABULARY, **{**SIZES, "dropout": 0.25}, attention=Counting)
    model(tokens())
    model.eval()(tokens())
    assert all(block.attention.scheme.dropouts == [0.25, 0.0] for block in model.blocks)


def test_dropout_meets_the_embedding_and_what_each_layer_adds():
    model = build(dropout=0.5)
    met = []
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.register_forward_hook(lambda module, inputs, output: met.append((inputs[0] != output).any().item()))
    model(tokens())
    assert met == [True] * (1 + 2 * 2)


def test_dropout_follows_torchs_generator_and_is_off_in_evaluation():
    model = build(dropout=0.5)
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(model(tokens()))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.equal(model.eval()(tokens()), build().eval()(tokens()))


def test_the_effective_widths_of_the_scheme_are_reported():
    model = GPT(VOCABULARY, **{**SIZES, "width": 30}, attention=scheme_configs.factory("roper", rope_percentage=0.5))
    assert model.effective() == {"rotary_width": 4, "value_rotary_width": 4}


def test_training_at_32_then_evaluating_longer_equals_a_fresh_model():
    model = build()
    model(tokens(32)).sum().backward()
    for length in (33, 64, 16):
        fresh = build()
        fresh.load_state_dict(model.state_dict())
        assert torch.equal(model(tokens(length)), fresh(tokens(length)))


def test_bfloat16_after_a_cast_and_under_autocast_stays_close_to_float32():
    model = build("roper", width=24)
    expected = model(tokens(300))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.allclose(model(tokens(300)).float(), expected, atol=0.1)
    assert torch.allclose(model.to(torch.bfloat16)(tokens(300)).float(), expected, atol=0.1)


def test_a_model_on_the_meta_device_has_shapes_without_data():
    with torch.device("meta"):
        model = GPT(VOCABULARY, **SIZES, attention=scheme_configs.factory("roper"))
        assert model(torch.zeros(2, 7, dtype=torch.int64)).shape == (2, 7, VOCABULARY)
    assert all(parameter.is_meta for parameter in model.parameters())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"width": 30, "heads": 4},
            "model.width=30 is no multiple of model.heads=4: the nearest that are: model.width=28 or 32",
        ),
        (
            {"width": 3, "heads": 4},
            "model.width=3 is no multiple of model.heads=4: the nearest that are: model.width=4",
        ),
        ({"width": 0}, "model.width=0: must be at least 1"),
        ({"layers": 0}, "model.layers=0: must be at least 1"),
        ({"heads": -1}, "model.heads=-1: must be at least 1"),
        ({"feed_forward": 0}, "model.feed_forward=0: must be at least 1"),
        ({"dropout": 1.0}, "model.dropout=1.0: must be at least 0 and below 1"),
        ({"dropout": -0.1}, "model.dropout=-0.1: must be at least 0 and below 1"),
    ],
)
def test_sizes_that_do_not_fit_are_refused_by_name_with_the_rule(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        build(**changes)

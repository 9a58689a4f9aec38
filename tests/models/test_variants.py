"""Layers with shared weights, norms after the sum, He-uniform starts, and the models without a transformer's blocks."""

import re

import pytest
import scheme_configs
import torch
from test_gpt import VOCABULARY, build, generator_for, tokens
from torch.nn.functional import cross_entropy, layer_norm

from ablate.models.bigram import Bigram
from ablate.models.heads import AttentionHeads
from ablate.models.layers import Heads


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def heads(number=2, scheme="learned", **changes):
    settings = {"width": 12, "heads": number, "dropout": 0.0, "init": "xavier", **changes}
    model = AttentionHeads(VOCABULARY, **settings, attention=scheme_configs.factory(scheme))
    model.initialise(generator_for)
    return model


def test_shared_layers_have_the_parameters_of_one_and_start_as_the_first():
    shared, one = build(share_layers=True, layers=6), build(layers=1)
    assert count(shared) == count(one)
    assert all(torch.equal(dict(one.named_parameters())[name], p) for name, p in shared.named_parameters())
    assert len(shared.blocks) == 6


def test_shared_layers_compute_what_separate_layers_with_their_weights_do():
    shared, separate = build(share_layers=True), build()
    separate.load_state_dict(shared.state_dict())
    assert torch.equal(shared(tokens()), separate(tokens()))


def test_a_shared_layer_gets_the_gradients_of_all_its_uses():
    shared, separate = build(share_layers=True).double(), build().double()
    separate.load_state_dict(shared.state_dict())
    for model in (shared, separate):
        model(tokens()).square().sum().backward()
    uses = [block.feed_forward[0].weight.grad for block in separate.blocks]
    assert torch.allclose(shared.blocks[0].feed_forward[0].weight.grad, sum(uses))


def test_a_model_with_shared_layers_is_saved_and_loaded():
    model, other = build(share_layers=True), build(share_layers=True)
    for parameter in other.parameters():
        parameter.data.fill_(0.5)
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(tokens()), other(tokens()))


@pytest.mark.parametrize(("scheme", "shared"), [("t5", True), ("learned", True), ("fire", False), ("rope", False)])
def test_a_shared_scheme_is_one_object_for_all_layers(scheme, shared):
    schemes = [block.attention.scheme for block in build(scheme, layers=3).blocks]
    assert len({id(each) for each in schemes}) == (1 if shared else 3)
    names = [name for name, _ in build(scheme, layers=3).named_parameters() if ".scheme." in name]
    assert len(names) == {"t5": 1, "learned": 1, "fire": 3 * 6, "rope": 0}[scheme]


def test_norms_after_the_sum_are_those_of_the_first_transformer():
    model = build("none", norm="post", layers=2).double()
    x = model.embedding(tokens())
    for block in model.blocks:
        x = layer_norm(x + block.attention(x), (12,))
        x = layer_norm(x + block.feed_forward(x), (12,))
    assert torch.allclose(model(tokens()), model.head(x), atol=1e-12)
    assert not any(name.startswith("norm.") for name, _ in model.named_parameters())


def test_models_with_norms_before_and_after_start_equal_in_what_they_share():
    before, after = build().state_dict(), build(norm="post").state_dict()
    assert before.keys() - after.keys() == {"norm.weight", "norm.bias"}
    assert all(torch.equal(before[name], value) for name, value in after.items())


def test_he_uniform_fills_the_range_of_the_fan_in_and_half_of_it_for_queries_keys_and_values():
    model = build(width=60, init="he_uniform")
    attention, feed_forward = model.blocks[0].attention, model.blocks[0].feed_forward
    bounds = [(matrix, 0.5 * (6 / 60) ** 0.5) for matrix in attention.qkv.weight.chunk(3)]
    bounds += [(attention.out.weight, (6 / 60) ** 0.5), (feed_forward[2].weight, (6 / 240) ** 0.5)]
    for matrix, bound in bounds:
        assert 0.95 * bound < matrix.abs().max().item() <= bound
        assert matrix.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)


def test_the_rule_for_matrices_leaves_vectors_and_embeddings_alone():
    xavier, he = build().state_dict(), build(init="he_uniform").state_dict()
    for name, value in xavier.items():
        assert torch.equal(value, he[name]) == (value.ndim == 1 or name == "embedding.weight")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"norm": "after"}, "model.norm=after: must be pre or post"),
        ({"dropout_mask": "old"}, "model.dropout_mask=old: must be fresh or fixed"),
        ({"init": "normal"}, "model.init=normal: must be one of xavier, he_uniform"),
    ],
)
def test_choices_there_are_none_of_are_refused_with_those_there_are(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        build(**changes)


def draws(mask, training=True):
    """What attention alone makes of one input when torch's generator stands at three places."""
    layer = Heads(12, 3, 0.5, scheme_configs.factory("roper")(12, 3), mask).train(training)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    found = []
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        found.append(layer(torch.linspace(-1, 1, 84).view(1, 7, 12)))
        assert torch.equal(torch.get_rng_state(), before) == (mask == "fixed" or not training)
    return found


def test_a_fixed_mask_drops_the_same_weights_at_every_step_and_moves_no_generator():
    first, second, third = draws("fixed")
    assert torch.equal(first, second)
    assert torch.equal(first, third)
    first, second, third = draws("fresh")
    assert not torch.equal(first, second)
    assert not torch.equal(first, third)
    assert not torch.equal(draws("fixed")[0], draws("fixed", training=False)[0])
    assert torch.equal(draws("fresh", training=False)[0], draws("fixed", training=False)[0])


def test_all_layers_share_a_fixed_mask_and_other_dropout_stays_fresh():
    model = build("none", dropout=0.5, dropout_mask="fixed")
    assert all(block.attention.fixed_mask for block in model.blocks)
    torch.manual_seed(1)
    first = model(tokens())
    assert not torch.equal(first, model(tokens()))


def test_a_bigram_is_a_table_of_logits():
    model = Bigram(VOCABULARY)
    model.initialise(generator_for)
    assert count(model) == VOCABULARY**2
    x = tokens()
    assert torch.equal(model(x), model.table.weight[x])


def test_a_trained_bigram_comes_to_the_frequencies_of_its_pairs():
    generator = torch.Generator().manual_seed(0)
    text = torch.randint(VOCABULARY, (1, 400), generator=generator)
    pairs = torch.zeros(VOCABULARY, VOCABULARY)
    for before, after in zip(text[0, :-1], text[0, 1:], strict=True):
        pairs[before, after] += 1
    model = Bigram(VOCABULARY)
    model.initialise(generator_for)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=200, tolerance_change=1e-12)

    def loss():
        optimizer.zero_grad()
        value = cross_entropy(model(text[:, :-1])[0], text[0, 1:])
        value.backward()
        return value

    optimizer.step(loss)
    assert torch.allclose(model.table.weight.softmax(-1), pairs / pairs.sum(-1, keepdim=True), atol=1e-3)


@pytest.mark.parametrize("number", [1, 3])
def test_heads_are_attention_between_embedding_and_output(number):
    model = heads(number).double()
    x = model.embedding(tokens()[0]) + model.scheme.positions.weight[:7]
    q, k, v = (x @ model.attention.qkv.weight.T + model.attention.qkv.bias).split(12, -1)
    out = []
    for head in range(number):
        part = slice(12 // number * head, 12 // number * (head + 1))
        scores = q[:, part] @ k[:, part].T / (12 / number) ** 0.5
        out.append(scores.masked_fill(torch.ones(7, 7).triu(1) > 0, -torch.inf).softmax(-1) @ v[:, part])
    expected = torch.cat(out, -1) @ model.head.weight.T + model.head.bias
    assert torch.allclose(model(tokens())[0], expected, atol=1e-12)


def test_one_head_and_several_start_equal_and_have_equally_many_parameters():
    one, four = heads(1).state_dict(), heads(4).state_dict()
    assert one.keys() == four.keys()
    assert all(torch.equal(one[name], four[name]) for name in one)
    assert count(heads(1)) == 5 * 12 + 512 * 12 + 3 * (12 * 12 + 12) + 12 * 5 + 5


@pytest.mark.parametrize("scheme", scheme_configs.NAMES)
def test_heads_work_with_every_scheme(scheme):
    model = heads(2, scheme)
    loss = cross_entropy(model(tokens()).flatten(0, 1), tokens().flatten())
    loss.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
    assert model.effective() == model.scheme.effective()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 13}, "model.width=13 is no multiple of model.heads=2: the nearest that are: model.width=12 or 14"),
        ({"number": 0}, "model.heads=0: must be at least 1"),
        ({"dropout": 1.5}, "model.dropout=1.5: must be at least 0 and below 1"),
        ({"init": "he"}, "model.init=he: must be one of xavier, he_uniform"),
    ],
)
def test_heads_refuse_what_does_not_fit(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        heads(**changes)

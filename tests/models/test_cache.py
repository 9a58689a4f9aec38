"""Reading token by token through a cache gives what reading all at once gives, for every scheme and model."""

import hashlib

import pytest
import scheme_configs
import torch

from ablate.models.base import CachedModel
from ablate.models.bigram import Bigram
from ablate.models.cache import KeysValues, LayerCache
from ablate.models.gpt import GPT
from ablate.models.heads import AttentionHeads

VOCABULARY, LENGTH = 5, 13
SIZES = {"width": 24, "layers": 3, "heads": 3, "feed_forward": 2, "dropout": 0.0, "tied": False}


def generator_for(name):
    return torch.Generator().manual_seed(int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big"))


def prepared(model, dtype=torch.float64):
    model.initialise(generator_for)
    for parameter in model.parameters():  # what starts at zero would hide mistakes
        if not parameter.any():
            parameter.data.uniform_(0.1, 0.3, generator=generator_for("zero"))
    return model.to(dtype).eval()


def gpt(scheme, dtype=torch.float64, **changes):
    return prepared(GPT(VOCABULARY, **{**SIZES, **changes}, attention=scheme_configs.factory(scheme)), dtype)


def tokens(length=LENGTH, batch=2):
    return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))


def read(model, x, pieces):
    """The logits of pieces of these lengths, read one after the other into one cache."""
    cache = model.new_cache()
    return torch.cat([model(piece, cache) for piece in x.split(pieces, 1)], 1)


@torch.no_grad()
@pytest.mark.parametrize("pieces", [[1] * LENGTH, [5, 1, 1, 4, 2], [LENGTH]], ids=["singly", "pieces", "whole"])
@pytest.mark.parametrize("scheme", scheme_configs.NAMES)
def test_reading_in_pieces_gives_the_logits_of_reading_at_once(scheme, pieces):
    model = gpt(scheme)
    assert torch.allclose(read(model, tokens(), pieces), model(tokens()), atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("scheme", scheme_configs.NAMES)
def test_in_float32_a_cache_costs_no_precision(scheme):
    model, exact = gpt(scheme, torch.float32), gpt(scheme)
    assert torch.allclose(read(model, tokens(40), [1] * 40).double(), exact(tokens(40)), atol=2e-5)


@torch.no_grad()
@pytest.mark.parametrize("changes", [{"share_layers": True}, {"norm": "post"}, {"share_layers": True, "tied": True}])
@pytest.mark.parametrize("scheme", ["roper", "learned", "t5"])
def test_layers_that_share_weights_or_norm_last_keep_caches_of_their_own(scheme, changes):
    model = gpt(scheme, **changes)
    assert torch.allclose(read(model, tokens(), [4, *[1] * 9]), model(tokens()), atol=1e-12)


@torch.no_grad()
def test_heads_and_bigram_read_in_pieces_too():
    heads = AttentionHeads(
        VOCABULARY, width=8, heads=2, dropout=0.0, init="xavier", attention=scheme_configs.factory("learned")
    )
    for model in (prepared(heads), prepared(Bigram(VOCABULARY))):
        assert isinstance(model, CachedModel)
        assert torch.allclose(read(model, tokens(), [4, *[1] * 9]), model(tokens()), atol=1e-12)


@torch.no_grad()
def test_a_new_cache_remembers_nothing_of_another():
    model = gpt("roper")
    model(tokens(), model.new_cache())
    assert torch.allclose(model(tokens(), model.new_cache()), model(tokens()), atol=1e-12)


def test_the_context_is_that_of_the_scheme():
    contexts = {scheme: gpt(scheme).context for scheme in scheme_configs.NAMES}
    assert {scheme for scheme, context in contexts.items() if context is not None} == {"learned", "randomised"}
    assert contexts["learned"] == contexts["randomised"] == 512


def test_a_layer_keeps_room_for_the_next_power_of_two_and_returns_what_it_was_given():
    cache, given = LayerCache(), torch.randn(2, 2, 3, 20, 4)
    for position in range(20):
        held = cache.extend(KeysValues(*given[:, :, :, position : position + 1]))
        assert cache.length == position + 1
        assert torch.equal(held.keys, given[0, :, :, : position + 1])
        assert torch.equal(held.values, given[1, :, :, : position + 1])
    assert held.keys.untyped_storage().nbytes() == 2 * 3 * 32 * 4 * 4


def test_room_already_made_is_used_again():
    cache = LayerCache()
    first = cache.extend(KeysValues(*torch.zeros(2, 1, 1, 5, 4)))
    second = cache.extend(KeysValues(*torch.zeros(2, 1, 1, 3, 4)))
    third = cache.extend(KeysValues(*torch.zeros(2, 1, 1, 1, 4)))
    assert first.keys.data_ptr() == second.keys.data_ptr() != third.keys.data_ptr()

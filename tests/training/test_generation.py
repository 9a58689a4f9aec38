"""Generation against a loop written down plainly, for every scheme, with and without cache, alone and side by side."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from torch import nn

from ablate.models.bigram import Bigram
from ablate.models.gpt import GPT
from ablate.training.generation import Sampling, generate, window_start
from ablate.training.seeds import initialise

CONF = Path(__file__).parents[2] / "conf" / "attention"
SCHEMES = sorted(path.stem for path in CONF.glob("*.yaml"))
VOCABULARY = 6
PROMPTS = [[1, 2, 3], [4], [0, 5, 0, 5, 0, 5, 0, 5, 1, 2]]


def factory(scheme, seq_len=64):
    root = OmegaConf.create({"rope_percentage": 1.0, "task": {"seq_len": seq_len}, "model": {}})
    root.model.attention = OmegaConf.load(CONF / f"{scheme}.yaml")
    return instantiate(root.model.attention, _convert_="all")


def gpt(scheme, seq_len=64):
    sizes = {"width": 12, "layers": 2, "heads": 3, "feed_forward": 2, "dropout": 0.5, "tied": False}
    model = GPT(VOCABULARY, **sizes, attention=factory(scheme, seq_len))
    initialise(model, 0)
    return model.double()


def greedily(model, prompt, tokens, context=None):
    """One token after the other: the likeliest after reading everything again, the older half dropped when full."""
    text, begin = list(prompt), 0
    model.eval()
    for _ in range(tokens):
        while context is not None and len(text) - begin > context:
            begin += max(1, context // 2)
        with torch.no_grad():
            text.append(int(model(torch.tensor([text[begin:]]))[0, -1].argmax()))
    return text[len(prompt) :]


class Table(nn.Module):
    """A model without a cache: the logits of a row, by the last token."""

    def __init__(self, rows):
        super().__init__()
        self.rows = nn.Parameter(torch.tensor(rows))
        self.read = []

    def forward(self, tokens_BT):
        self.read.append(tokens_BT.shape[1])
        return self.rows[tokens_BT]


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("context", [None, 64, 8])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_greedy_text_is_that_of_the_plain_loop(scheme, context, cached):
    model = gpt(scheme)
    expected = [greedily(model, prompt, 20, context) for prompt in PROMPTS]
    assert generate(model, PROMPTS, 20, context=context, cached=cached) == expected


@pytest.mark.parametrize("scheme", SCHEMES)
def test_sampled_text_is_the_same_with_and_without_cache(scheme):
    model, sampling = gpt(scheme), Sampling(seed=3, temperature=0.7, top_k=4)
    cached, uncached = (
        generate(model, PROMPTS, 20, sampling=sampling, context=16, cached=cached) for cached in (True, False)
    )
    assert cached == uncached


def test_a_schemes_own_limit_is_the_context_unless_told():
    model = gpt("learned", seq_len=8)
    assert generate(model, [[1]], 30) == [greedily(model, [1], 30, 8)]
    with pytest.raises(ValueError, match=r"context=9: the model has 8 positions; use context=8"):
        generate(model, [[1]], 3, context=9)


def test_a_prompt_longer_than_the_context_is_read_from_its_later_part():
    model, prompt = gpt("rope"), [n % VOCABULARY for n in range(37)]
    assert generate(model, [prompt], 5, context=8) == [greedily(model, prompt, 5, 8)]


def test_a_text_does_not_depend_on_the_prompts_beside_it():
    model, sampling = gpt("roper"), Sampling(seed=1)
    together = generate(model, PROMPTS, 15, sampling=sampling)
    assert together[0] == generate(model, PROMPTS[:1], 15, sampling=sampling)[0]
    assert together[:2] == generate(model, [*PROMPTS[:2], [2] * 30], 15, sampling=sampling)[:2]


def test_a_longer_text_begins_as_a_shorter_one():
    model, sampling = gpt("roper"), Sampling(seed=1)
    short, long = (generate(model, [[1, 2]], tokens, sampling=sampling)[0] for tokens in (5, 40))
    assert long[:5] == short


def test_equal_prompts_are_continued_differently_and_equal_seeds_alike():
    model = gpt("roper")
    first, again, other = (generate(model, [[1], [1]], 15, sampling=Sampling(seed=seed)) for seed in (1, 1, 2))
    assert first[0] != first[1]
    assert first == again != other


def test_a_text_ends_with_its_first_stop_token():
    steps = Table([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]])
    assert generate(steps, [[0], [2], [1, 3]], 6, stop=3) == [[1, 2, 3], [3], [0, 1, 2, 3]]
    assert max(steps.read) == 5
    assert generate(steps, [[0], [2]], 2, stop=3) == [[1, 2], [3]]
    assert generate(steps, [[0]], 5) == [[1, 2, 3, 0, 1]]


def test_a_stop_token_in_the_prompt_stops_nothing():
    assert generate(Table([[0.0, 1], [1, 0]]), [[1, 1, 1], [0]], 2, stop=1) == [[0, 1], [1]]


def test_a_model_without_cache_is_read_from_the_start_of_its_context():
    model = Table([[0.0, 1], [1, 0]])
    generate(model, [[0]], 8, context=4)
    assert model.read == [1, 2, 3, 4, 3, 4, 3, 4]


def test_a_cached_model_reads_each_token_once_until_its_context_is_full():
    model, read = gpt("rope"), []
    model.embedding.register_forward_hook(lambda module, inputs, output: read.append(inputs[0].shape[1]))
    generate(model, [[1, 2, 3]], 8, context=6)
    assert read == [3, 1, 1, 1, 4, 1, 1, 4]


@given(st.integers(1, 200), st.integers(1, 50))
def test_the_window_is_full_to_more_than_half_and_moves_by_half_a_context(known, context):
    begin, half = window_start(known, context), max(1, context // 2)
    assert begin % half == 0
    assert known - begin <= context
    assert begin == 0 or known - begin > context - half
    assert window_start(known, None) == 0


def test_sampling_draws_by_the_tempered_softmax():
    logits, draws = torch.tensor([0.0, 1.0, 2.0, -torch.inf]), 20_000
    even = ((torch.arange(draws, dtype=torch.float64) + 0.5) / draws)[:, None]
    for temperature in (1.0, 0.5, 3.0):
        found = Sampling(temperature=temperature).choose(logits.expand(draws, -1), even[:, 0]).bincount(minlength=4)
        expected = torch.tensor([2.718281828459045 ** (score / temperature) for score in (0, 1, 2)])
        assert torch.allclose(found[:3] / draws, expected / expected.sum(), atol=1e-4)
        assert found[3] == 0


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=8), st.integers(1, 10), st.floats(0, 1, exclude_max=True))
def test_top_k_draws_among_the_k_likeliest(scores, top_k, number):
    token = Sampling(top_k=top_k).choose(
        torch.tensor([scores], dtype=torch.float64), torch.tensor([number], dtype=torch.float64)
    )
    rank = sum(score > scores[token] for score in scores)
    assert rank < top_k


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8, unique=True), st.floats(0.01, 0.99))
def test_the_likeliest_alone_and_a_low_temperature_are_greedy(scores, number):
    logits, uniform = torch.tensor([scores], dtype=torch.float64), torch.tensor([number], dtype=torch.float64)
    greedy = logits.argmax(-1)
    assert Sampling(top_k=1).choose(logits, uniform) == greedy
    gap = sorted(scores)[-1] - sorted(scores)[-2]
    if gap > 1e-3:
        assert Sampling(temperature=gap / 60).choose(logits, uniform) == greedy


def test_sampled_tokens_of_a_bigram_follow_its_table():
    model = Bigram(3)
    model.table.weight.data.copy_(torch.tensor([[0.2, 0.3, 0.5], [1.0, 0, 0], [0.5, 0, 0.5]]).log())
    (text,) = generate(model, [[0]], 4000, sampling=Sampling(seed=5))
    text = [0, *text]
    after = [b for a, b in pairwise(text) if a == 0]
    # Three standard errors of a share p of n draws, 3 √(p (1 - p) / n).
    for token, share in enumerate((0.2, 0.3, 0.5)):
        assert after.count(token) / len(after) == pytest.approx(
            share, abs=3 * (share * (1 - share) / len(after)) ** 0.5
        )
    assert {b for a, b in pairwise(text) if a == 1} == {0}


def test_the_model_keeps_its_mode_and_torchs_generator_its_state():
    model = gpt("randomised").train()
    before = torch.get_rng_state()
    generate(model, PROMPTS, 3, sampling=Sampling())
    assert model.training
    assert all(module.training for module in model.modules())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_generating_model_can_still_be_trained():
    model = gpt("roper")
    generate(model, PROMPTS, 3)
    model(torch.tensor([PROMPTS[0]])).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("prompts", "changes", "message"),
    [
        ([], {}, "prompts: there are none; give at least one"),
        ([[1], []], {}, "prompt='': is empty; give it at least one token"),
        ([[1]], {"tokens": 0}, "tokens=0: must be at least 1"),
        ([[1]], {"context": 0}, "context=0: must be at least 1"),
    ],
)
def test_what_cannot_be_continued_is_refused(prompts, changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        generate(Bigram(3), prompts, **{"tokens": 2, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"temperature": 0.0}, "temperature=0.0: must be above 0; greedy takes the likeliest token"),
        ({"temperature": float("nan")}, "temperature=nan: must be above 0"),
        ({"top_k": 0}, "top_k=0: must be at least 1"),
    ],
)
def test_sampling_that_draws_nothing_is_refused(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        Sampling(**changes)

"""The battery that every scheme of conf/attention passes; a new YAML is tested without an edit."""

import copy
import inspect
import pickle
from functools import partial

import pytest
import scheme_configs
import torch

from ablate.models.base import Scheme

B, H, T, D = 2, 3, 5, 7
DTYPES = [torch.float32, torch.float64, torch.bfloat16]

pytestmark = pytest.mark.parametrize("name", scheme_configs.NAMES)


@pytest.fixture
def scheme(name):
    return scheme_configs.factory(name)(H * D, H).eval()


def qkv(length=T, dtype=torch.float32, batch=B, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, H, length, D, generator=generator, dtype=torch.float64).to(dtype) for _ in range(3)]


def test_the_yaml_names_exactly_the_keyword_parameters(name):
    factory = scheme_configs.factory(name)
    kinds = {key: parameter.kind for key, parameter in inspect.signature(factory.func).parameters.items()}
    keyword_only = {key for key, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY}
    assert set(factory.keywords) == keyword_only
    assert inspect.Parameter.VAR_KEYWORD not in kinds.values()


def test_the_yaml_is_packaged_into_the_model(name):
    first, comment, *_ = (scheme_configs.FOLDER / f"{name}.yaml").read_text().splitlines()
    assert first == "# @package model.attention"
    assert comment.startswith("# ")


def test_the_scheme_has_a_row_in_the_table_of_schemes(name):
    assert f"\n| `{name}` |" in (scheme_configs.FOLDER.parents[1] / "docs" / "schemes.md").read_text()


def test_a_scheme_is_final_and_inherits_from_scheme_alone(name):
    cls = scheme_configs.factory(name).func
    assert cls.__bases__ == (Scheme,)
    assert cls.__final__


def test_output_has_the_shape_of_the_queries(scheme):
    q, k, v = qkv()
    assert scheme(q, k, v).shape == (B, H, T, D)
    assert scheme(q[:, :, -2:], k, v).shape == (B, H, 2, D)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_is_kept_and_agrees_with_float64(scheme, dtype):
    out = scheme(*qkv(dtype=dtype))
    expected = scheme(*(x.double() for x in qkv(dtype=dtype)))
    assert out.dtype == dtype
    assert torch.allclose(out.double(), expected, atol=16 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("changed", range(1, T))
def test_changing_a_key_leaves_earlier_outputs_unchanged(scheme, changed):
    q, k, v = qkv()
    before = scheme(q, k, v)
    k[:, :, changed] += 1
    v[:, :, changed] += 1
    after = scheme(q, k, v)
    assert torch.equal(after[:, :, :changed], before[:, :, :changed])
    assert not torch.isclose(after[:, :, changed], before[:, :, changed]).all()


def test_gradients_are_finite_and_reach_every_input_and_parameter(scheme):
    inputs = [x.requires_grad_() for x in (*qkv(), torch.randn(B, T, H * D))]
    (scheme(*inputs[:3]).square().sum() + scheme.embed(inputs[3]).square().sum()).backward()
    gradients = [x.grad for x in (*inputs, *scheme.parameters())]
    assert all(gradient is not None and torch.isfinite(gradient).all() for gradient in gradients)
    assert all((x.grad != 0).any() for x in inputs)


def test_two_calls_give_the_same_bits(scheme):
    assert torch.equal(scheme(*qkv()), scheme(*qkv()))


def test_sequences_of_a_batch_do_not_see_each_other(scheme):
    q, k, v = qkv()
    together = scheme(q, k, v)
    alone = scheme(q[1:], k[1:], v[1:])
    assert torch.allclose(together[1:], alone, atol=1e-6)


def test_heads_do_not_see_each_other(scheme):
    q, k, v = qkv()
    before = scheme(q, k, v)
    q[:, 1], k[:, 1], v[:, 1] = 0, 0, 0
    after = scheme(q, k, v)
    assert torch.equal(after[:, [0, 2]], before[:, [0, 2]])


def test_the_memory_layout_of_the_inputs_does_not_matter(scheme):
    inputs = qkv()
    strided = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    assert torch.allclose(scheme(*strided), scheme(*inputs), atol=1e-6)


def test_evaluation_may_be_longer_than_training(name, scheme):
    scheme(*qkv(T))
    for length in (T + 1, 4 * T, T - 1):
        fresh = scheme_configs.factory(name)(H * D, H).eval()
        fresh.load_state_dict(scheme.state_dict())
        assert torch.equal(scheme(*qkv(length)), fresh(*qkv(length)))


@pytest.mark.parametrize("queries", range(1, T))
@pytest.mark.parametrize("start", [0, 11])
def test_the_last_queries_alone_give_the_last_rows(scheme, queries, start):
    q, k, v = qkv(dtype=torch.float64)
    whole = scheme(q, k, v, start=start)
    assert torch.allclose(scheme(q[:, :, -queries:], k, v, start=start), whole[:, :, -queries:], atol=1e-12)


def test_a_copied_or_pickled_scheme_gives_the_same_bits(scheme):
    expected = scheme(*qkv())
    assert torch.equal(copy.deepcopy(scheme)(*qkv()), expected)
    assert torch.equal(pickle.loads(pickle.dumps(scheme))(*qkv()), expected)


def test_a_scheme_cast_after_use_works_in_the_new_dtype(scheme):
    scheme(*qkv())
    out = scheme.to(torch.bfloat16)(*qkv(dtype=torch.bfloat16))
    assert out.dtype == torch.bfloat16
    assert torch.isfinite(out).all()


def test_autocast_computes_in_bfloat16(scheme):
    inputs = qkv(dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(scheme(*inputs), scheme(*inputs))
        assert scheme(*inputs).dtype == torch.bfloat16


def test_what_was_prepared_in_inference_mode_can_be_trained_with(scheme):
    with torch.inference_mode():
        scheme(*qkv())
    test_gradients_are_finite_and_reach_every_input_and_parameter(scheme)


def test_use_adds_nothing_to_the_checkpoint(scheme):
    before = set(scheme.state_dict())
    scheme(*qkv())
    assert set(scheme.state_dict()) == before == {name for name, _ in scheme.named_parameters()}


def test_a_scheme_built_on_the_meta_device_holds_no_data(name):
    with torch.device("meta"):
        scheme = scheme_configs.factory(name)(H * D, H)
    assert all(parameter.is_meta for parameter in scheme.parameters())
    assert scheme(*(x.to("meta") for x in qkv())).is_meta


def test_dropout_draws_from_torchs_generator(scheme):
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(scheme(*qkv(), dropout=0.5))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_embedding_keeps_shape_and_dtype(scheme):
    x = torch.randn(B, T, H * D)
    assert scheme.embed(x, start=3).shape == x.shape
    assert scheme.embed(x).dtype == x.dtype


def test_what_the_parameters_came_to_can_be_written_as_json(scheme):
    assert all(type(value) in (int, float, str) for value in scheme.effective().values())


def test_more_queries_than_keys_is_a_programming_error(scheme):
    q, k, v = qkv()
    call = partial(scheme, q, k[:, :, :-1], v[:, :, :-1], start=1)
    with pytest.raises(AssertionError, match=f"{T} queries are more than {T - 1} keys"):
        call()

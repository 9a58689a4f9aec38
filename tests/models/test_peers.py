"""RoPE and RoPER against the maintained modules of labml-nn, where that is installed."""

import warnings

import pytest
import scheme_configs
import torch

from ablate.models.layers import Attention

LENGTH, BATCH, HEADS, WIDTH = 11, 3, 2, 16

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    rope = pytest.importorskip("labml_nn.transformers.rope")
    value_pe = pytest.importorskip("labml_nn.transformers.rope.value_pe")
    tracker = pytest.importorskip("labml.tracker")


def peers(percentage):
    yield "rope", rope.RotaryPEMultiHeadAttention(HEADS, WIDTH, percentage)
    yield "roper", value_pe.RotaryValuePEMultiHeadAttention(HEADS, WIDTH, percentage, percentage)


def ours(name, percentage, theirs):
    """Our attention layer with the weights of theirs."""
    scheme = scheme_configs.factory(name, rope_percentage=percentage)(WIDTH, HEADS)
    layer = Attention(WIDTH, HEADS, 0.0, scheme)
    projections = [theirs.query.linear, theirs.key.linear, theirs.value.linear]
    layer.load_state_dict(
        {
            "qkv.weight": torch.cat([projection.weight for projection in projections]),
            "qkv.bias": torch.cat([projection.bias for projection in projections]),
            "out.weight": theirs.output.weight,
            "out.bias": theirs.output.bias,
        }
    )
    return layer


@pytest.mark.parametrize("percentage", [0.5, 1.0])
@pytest.mark.parametrize("index", [0, 1], ids=["rope", "roper"])
def test_outputs_and_gradients_equal_those_of_labml_nn(index, percentage, monkeypatch):
    # Older and newer releases of labml differ in whether this hook exists; the layers call it either way.
    monkeypatch.setattr(tracker, "debug", lambda *_: None, raising=False)
    torch.manual_seed(0)
    name, theirs = list(peers(percentage))[index]
    layer = ours(name, percentage, theirs)
    x_BTC = torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True)
    x_TBC = x_BTC.detach().transpose(0, 1).contiguous().requires_grad_()
    out = layer(x_BTC)
    expected = theirs(query=x_TBC, key=x_TBC, value=x_TBC, mask=torch.ones(LENGTH, LENGTH).tril()[:, :, None])
    assert torch.allclose(out, expected.transpose(0, 1), atol=1e-5)
    out.square().sum().backward()
    expected.square().sum().backward()
    assert torch.allclose(x_BTC.grad, x_TBC.grad.transpose(0, 1), atol=1e-4)
    their_gradients = torch.cat([getattr(theirs, part).linear.weight.grad for part in ("query", "key", "value")])
    assert torch.allclose(layer.qkv.weight.grad, their_gradients, atol=1e-4)

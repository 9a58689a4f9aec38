"""Scores against naive computation, and what evaluating leaves untouched."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from training_stub import CPU, TASK, TinyModel, parts_of

from ablate.config.schema import EvaluationConfig, Precision
from ablate.tasks.base import IGNORED, Batch
from ablate.training.evaluation import evaluate, evaluation_set, token_losses


def data_of(size=23, seed=0):
    return evaluation_set(TASK, EvaluationConfig(sequences=size, curve_sequences=1, seed=seed), CPU)


def naive(model, data):
    """Per sequence: summed loss, right, counted, one token at a time."""
    model.eval()
    rows = []
    for tokens, targets in zip(*data, strict=True):
        log_p = model(tokens[None])[0].double().log_softmax(-1)
        counted = [(t, int(y)) for t, y in enumerate(targets) if y != IGNORED]
        loss = -sum(log_p[t, y].item() for t, y in counted)
        rows.append((loss, sum(int(log_p[t].argmax()) == y for t, y in counted), len(counted)))
    return np.array(rows).T


def test_loss_accuracy_and_standard_errors_equal_a_naive_computation():
    model, data = parts_of(3).model, data_of()
    losses, hits, counts = naive(model, data)
    result, n = evaluate(model, data, batch_size=5), 23
    assert len(set(counts)) > 1
    for sums, ratio, se in ((losses, result.loss, result.loss_se), (hits, result.accuracy, result.accuracy_se)):
        expected = sum(sums) / sum(counts)
        variance = sum((s - expected * c) ** 2 for s, c in zip(sums, counts, strict=True)) / (n - 1)
        assert ratio == pytest.approx(expected, rel=1e-6)
        assert se == pytest.approx(math.sqrt(variance / n) / np.mean(counts), rel=1e-5)
    assert result.sequences == 23


def test_the_standard_error_is_the_spread_over_other_sets():
    model = parts_of(3).model
    results = [evaluate(model, data_of(100, seed), batch_size=100) for seed in range(200)]
    for name in ("loss", "accuracy"):
        spread = np.std([getattr(result, name) for result in results], ddof=1)
        stated = np.mean([getattr(result, f"{name}_se") for result in results])
        assert stated == pytest.approx(spread, rel=0.2)


def test_names_of_the_metrics():
    names = evaluate(TinyModel(), data_of(2), batch_size=2).metrics()
    assert list(names) == ["eval/loss", "eval/loss_se", "eval/accuracy", "eval/accuracy_se", "eval/sequences"]


@settings(deadline=None)
@given(batch_size=st.integers(1, 30))
def test_the_batch_size_does_not_matter(batch_size):
    model = parts_of(3).model
    expected = evaluate(model, data_of(), batch_size=23)
    assert evaluate(model, data_of(), batch_size=batch_size) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("smaller", [1, 100, 256, 257, 511])
def test_a_smaller_set_is_the_beginning_of_a_larger_one(smaller):
    small, large = data_of(smaller), data_of(600)
    assert torch.equal(small.inputs_BT, large.inputs_BT[:smaller])
    assert torch.equal(small.targets_BT, large.targets_BT[:smaller])


def test_the_set_holds_what_the_longer_of_curve_and_end_needs():
    assert len(evaluation_set(TASK, EvaluationConfig(sequences=3, curve_sequences=9), CPU).inputs_BT) == 9


def test_the_set_follows_its_own_seed():
    assert torch.equal(data_of(seed=1).inputs_BT, data_of(seed=1).inputs_BT)
    assert not torch.equal(data_of(seed=1).inputs_BT, data_of(seed=2).inputs_BT)


def test_sequences_without_targets_have_no_weight():
    model, data = parts_of(3).model, data_of(8)
    silent = Batch(torch.zeros_like(data.inputs_BT), torch.full_like(data.targets_BT, IGNORED))
    both = Batch(*(torch.cat(pair) for pair in zip(silent, data, strict=True)))
    alone, mixed = evaluate(model, data, batch_size=8), evaluate(model, both, batch_size=8)
    assert mixed[::2][:2] == pytest.approx(alone[::2][:2])
    assert math.isfinite(mixed.loss_se)


class Parted:
    """copy_repeat that keeps 40 problems back, and notes what it is asked for."""

    alphabet, seq_len, held_out = TASK.alphabet, TASK.seq_len, 40

    def __init__(self):
        self.splits = []

    def batch(self, generator, size, split="train"):
        self.splits.append(split)
        return TASK.batch(generator, size, split)


def test_the_set_is_drawn_from_the_problems_held_out_for_it():
    task = Parted()
    evaluation_set(task, EvaluationConfig(sequences=40, curve_sequences=40), CPU)
    assert set(task.splits) == {"eval"}


@pytest.mark.parametrize("key", ["sequences", "curve_sequences"])
def test_d5_a_set_larger_than_the_problems_held_out_is_refused(key):
    asked = EvaluationConfig(**{"sequences": 40, "curve_sequences": 40, key: 41})
    with pytest.raises(
        ValueError, match=rf"evaluation\.{key}=41: .*about 40 different problems .*use evaluation\.{key}=40"
    ):
        evaluation_set(Parted(), asked, CPU)


def test_a_set_without_any_target_is_refused():
    class Silent:
        alphabet, seq_len = TASK.alphabet, TASK.seq_len

        def batch(self, generator, size, split="train"):
            batch = TASK.batch(generator, size, split)
            return Batch(batch.inputs_BT, torch.full_like(batch.targets_BT, IGNORED))

    with pytest.raises(ValueError, match=r"evaluation\.sequences=5: no target of these sequences counts"):
        evaluation_set(Silent(), EvaluationConfig(sequences=5, curve_sequences=5), CPU)


def test_a_single_sequence_has_no_standard_error():
    result = evaluate(parts_of().model, data_of(1), batch_size=1)
    assert math.isfinite(result.loss)
    assert math.isnan(result.loss_se)


def test_evaluating_leaves_modes_gradients_and_generators_as_they_were():
    model = parts_of().model
    model.dropout.eval()
    state = torch.get_rng_state()
    results = [evaluate(model, data_of(), batch_size=7) for _ in range(2)]
    assert results[0] == results[1]
    assert model.training
    assert model.head.training
    assert not model.dropout.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)


def test_modes_are_put_back_when_the_model_raises():
    class Broken(TinyModel):
        def forward(self, tokens_BT):
            raise RuntimeError("broken")

    model = Broken()
    with pytest.raises(RuntimeError, match="broken"):
        evaluate(model, data_of(), batch_size=7)
    assert model.training


def test_what_a_model_keeps_from_an_evaluation_can_be_trained_with():
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.kept = nn.Parameter(torch.ones(5)), None

        def forward(self, tokens_BT):
            self.kept = torch.eye(5) * 2 if self.kept is None else self.kept
            return self.kept[tokens_BT] * self.weight

    model = Keeps()
    evaluate(model, data_of(), batch_size=7)
    token_losses(model(data_of().inputs_BT), data_of().targets_BT).sum().backward()
    assert torch.isfinite(model.weight.grad).all()


def test_token_losses_are_zero_where_ignored_and_float32():
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0)).bfloat16()
    targets = torch.tensor([[0, IGNORED, 4], [IGNORED, IGNORED, 2]])
    losses = token_losses(logits, targets)
    assert losses.dtype == torch.float32
    assert losses[targets == IGNORED].tolist() == [0, 0, 0]
    assert losses[1, 2].item() == pytest.approx(-F.log_softmax(logits[1, 2].float(), -1)[2].item())


def test_bf16_is_close_to_float32():
    model, data = parts_of(3).model, data_of()
    exact = evaluate(model, data, batch_size=23)
    rough = evaluate(model, data, batch_size=23, precision=Precision.bf16)
    assert rough.loss == pytest.approx(exact.loss, rel=0.02)
    assert rough.loss != exact.loss

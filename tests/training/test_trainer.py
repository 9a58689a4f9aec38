"""The loop: what it computes, what it writes, how it ends."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from training_stub import CPU, TASK, TinyModel, config_of, parts_of, records, run, weights

from ablate.config.schema import Precision
from ablate.records import RunFolder, Status
from ablate.tasks.base import IGNORED, Batch
from ablate.training.evaluation import evaluate, evaluation_set
from ablate.training.seeds import numpy_generator, seed_dropout


class SometimesEmpty:
    """copy_repeat, but every third batch drawn has nothing to predict, the others a changing number of targets."""

    alphabet, seq_len = TASK.alphabet, TASK.seq_len

    def __init__(self):
        self.drawn = 0
        self.seen = []
        self.splits = []

    def batch(self, generator, size, split="train"):
        self.splits.append(split)
        inputs, targets = TASK.batch(generator, size, split)
        self.drawn += 1
        self.seen.append(inputs)
        keep = 0 if self.drawn % 3 == 0 else self.drawn % TASK.seq_len + 7
        targets[:, keep:] = IGNORED
        return Batch(inputs, targets)


def test_the_record_equals_a_plain_loop_written_out(tmp_path):
    run(tmp_path, config_of(steps=7, log_every=3, eval_every=0, seed=5))
    parts = parts_of(5)
    rows = []
    for step in range(1, 8):
        inputs, targets = TASK.batch(numpy_generator(5, "data", step), 4)
        seed_dropout(5, step)
        parts.optimizer.zero_grad()
        counted = targets != IGNORED
        loss = F.cross_entropy(parts.model(inputs)[counted], targets[counted])
        loss.backward()
        norm = math.sqrt(sum(p.grad.double().square().sum().item() for p in parts.model.parameters()))
        for p in parts.model.parameters():
            p.grad *= min(1.0, 1.0 / (norm + 1e-6))
        rows.append((loss.item(), counted.sum().item(), norm, 1e-2 * (0.1 + 0.9 * min(1.0, (step - 1) / 9))))
        parts.optimizer.step()
        parts.schedule.step()
    losses, counts, norms, rates = np.array(rows).T
    for record, window in zip(records(tmp_path, "train"), (slice(0, 3), slice(3, 6), slice(6, 7)), strict=True):
        assert record["step"] == window.stop
        assert record["tokens"] == window.stop * 4 * 16
        assert record["loss"] == pytest.approx(np.average(losses[window], weights=counts[window]), rel=1e-5)
        assert record["grad_norm"] == pytest.approx(norms[window].mean(), rel=1e-5)
        assert record["lr"] == pytest.approx(rates[window][-1])


def test_records_and_outcome_agree(tmp_path):
    seen = []
    outcome = run(tmp_path, on_log=seen.append)
    assert [(r["split"], r["step"]) for r in seen if r["split"] == "eval"] == [("eval", s) for s in (5, 10, 15, 20, 23)]
    assert [r["step"] for r in seen if r["split"] == "train"] == [3, 6, 9, 12, 15, 18, 21, 23]
    assert [{k: v for k, v in r.items() if k != "seconds"} for r in seen] == records(tmp_path)
    assert [r["sequences"] for r in seen if r["split"] == "eval"] == [10, 10, 10, 10, 40]
    assert all(list(r)[:4] == ["step", "tokens", "seconds", "split"] for r in seen)
    assert [r["seconds"] for r in seen] == sorted(r["seconds"] for r in seen)
    assert outcome.status is Status.finished
    assert outcome.metrics == {
        f"eval/{name}": seen[-1][name] for name in ("loss", "loss_se", "accuracy", "accuracy_se", "sequences")
    }
    assert (outcome.steps_done, outcome.tokens, outcome.resumed_from, outcome.message) == (23, 23 * 4 * 16, None, None)
    assert 0 < outcome.data_seconds < outcome.train_seconds
    assert outcome.evaluation_seconds > 0
    assert outcome.train_seconds + outcome.evaluation_seconds == pytest.approx(outcome.seconds)


def test_the_final_metrics_are_those_of_the_trained_model_on_the_whole_set(tmp_path):
    parts, config = parts_of(), config_of()
    outcome = run(tmp_path, config, parts=parts)
    assert (
        evaluate(parts.model, evaluation_set(TASK, config.evaluation, CPU), batch_size=16).metrics() == outcome.metrics
    )


def test_training_twice_gives_the_same_bits(tmp_path):
    run(tmp_path / "a")
    run(tmp_path / "b")
    assert records(tmp_path / "a") == records(tmp_path / "b")
    assert weights(tmp_path / "a") == weights(tmp_path / "b")


@pytest.mark.parametrize("changed", [{"seed": 1}, {"data": 1}, {"dropout": 1}])
def test_each_seed_reaches_its_stream(tmp_path, changed):
    run(tmp_path / "a")
    run(tmp_path / "b", config_of(**changed))
    assert weights(tmp_path / "a") != weights(tmp_path / "b")


def test_the_data_stream_does_not_depend_on_the_other_seeds(tmp_path):
    drawn = {}
    for name, seeds in {"a": {"seed": 3}, "b": {"seed": 4, "data": 3, "dropout": 9}}.items():
        task = SometimesEmpty()
        run(tmp_path / name, config_of(**seeds), parts=parts_of(task=task))
        drawn[name] = torch.cat(task.seen)
    assert torch.equal(drawn["a"], drawn["b"])


def test_no_batch_comes_twice_in_a_run(tmp_path):
    task = SometimesEmpty()
    run(tmp_path, parts=parts_of(task=task))
    rows = [tuple(row) for row in torch.cat(task.seen[1:]).tolist()]
    assert len(rows) == 23 * 4
    assert len(set(rows)) == len(rows)


def test_problems_held_out_for_evaluation_are_never_trained_on(tmp_path):
    task = SometimesEmpty()
    run(tmp_path, parts=parts_of(task=task))
    assert task.splits == ["eval"] + ["train"] * 23


def test_evaluating_logging_and_saving_more_often_changes_nothing_that_is_trained(tmp_path):
    run(tmp_path / "rarely", config_of(eval_every=1000, log_every=23, checkpoint_every=0))
    run(tmp_path / "often", config_of(eval_every=1, log_every=1, checkpoint_every=1))
    assert weights(tmp_path / "rarely") == weights(tmp_path / "often")
    once, curve = records(tmp_path / "rarely", "eval"), records(tmp_path / "often", "eval")
    assert once[-1] == curve[-1]
    run(tmp_path / "no curve", config_of(eval_every=0))
    run(tmp_path / "curve", config_of(eval_every=2))
    assert records(tmp_path / "no curve", "train") == records(tmp_path / "curve", "train")


def test_a_run_alone_equals_the_same_run_after_others_and_leaves_torch_as_it_was(tmp_path):
    run(tmp_path / "alone", config_of(seed=7))
    for seed in range(3):
        run(tmp_path / f"other {seed}", config_of(seed=seed, eval_every=3))
        torch.rand(seed + 1)
    parts = parts_of(7)
    state = torch.get_rng_state()
    run(tmp_path / "after", config_of(seed=7), parts=parts)
    assert torch.equal(torch.get_rng_state(), state)
    assert records(tmp_path / "alone") == records(tmp_path / "after")
    assert weights(tmp_path / "alone") == weights(tmp_path / "after")


def test_batches_without_targets_have_no_weight(tmp_path):
    run(tmp_path / "window", config_of(steps=9, log_every=3, eval_every=0), parts=parts_of(task=SometimesEmpty()))
    run(tmp_path / "single", config_of(steps=9, log_every=1, eval_every=0), parts=parts_of(task=SometimesEmpty()))
    single = [record["loss"] for record in records(tmp_path / "single", "train")]
    # The evaluation set is drawn first, so the batches of steps 2, 5 and 8 are the empty ones.
    assert [step for step, loss in enumerate(single, 1) if loss is None] == [2, 5, 8]
    for record, window in zip(
        records(tmp_path / "window", "train"), (single[:3], single[3:6], single[6:]), strict=True
    ):
        present = [loss for loss in window if loss is not None]
        assert min(present) <= record["loss"] <= max(present)
        assert math.isfinite(record["grad_norm"])


def blow_up_after(step):
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: math.inf if done == step - 1 else 1
    )


@pytest.mark.parametrize(("log_every", "checkpoint_every"), [(1, 1), (10, 0), (7, 5), (100, 3), (4, 6)])
@pytest.mark.parametrize(
    ("eval_every", "step", "message"),
    [(0, 9, "training loss is nan at step 9"), (4, 8, "evaluation loss is nan at step 8")],
)
def test_a_run_diverges_at_the_exact_step_whatever_the_cadence(
    tmp_path, log_every, checkpoint_every, *, eval_every, step, message
):
    config = config_of(20, log_every, eval_every, checkpoint_every)
    outcome = run(tmp_path, config, parts=parts_of(schedule=blow_up_after(8)))
    assert (outcome.status, outcome.message, outcome.metrics) == (Status.diverged, message, {})
    assert (outcome.steps_done, outcome.tokens) == (step, step * 64)
    saved = RunFolder(tmp_path).checkpoint
    assert not saved.exists() or torch.load(saved)["step"] < step
    assert all(record["loss"] is not None for record in records(tmp_path, "train"))


def test_a_gradient_norm_that_is_not_finite_ends_the_run(tmp_path):
    parts, calls = parts_of(), []

    def break_the_fifth(gradient):
        calls.append(None)
        return gradient * math.inf if len(calls) == 5 else gradient

    parts.model.head.bias.register_hook(break_the_fifth)
    outcome = run(tmp_path, config_of(log_every=10, eval_every=0, checkpoint_every=0), parts=parts)
    assert (outcome.status, outcome.steps_done) == (Status.diverged, 5)
    assert outcome.message in ("gradient norm is nan at step 5", "gradient norm is inf at step 5")


class NanInEvaluation(TinyModel):
    def forward(self, tokens_BT):
        return super().forward(tokens_BT) * (1.0 if self.training else math.nan)


def test_an_evaluation_that_is_not_finite_ends_the_run(tmp_path):
    outcome = run(tmp_path, config_of(eval_every=0), parts=parts_of(model=NanInEvaluation()))
    assert (outcome.status, outcome.message) == (Status.diverged, "evaluation loss is nan at step 23")


def test_without_clipping_the_norm_is_still_recorded(tmp_path):
    run(tmp_path / "free", config_of(steps=1, grad_clip=None, eval_every=0))
    run(tmp_path / "clipped", config_of(steps=1, grad_clip=1e-3, eval_every=0))
    (free,), (clipped,) = records(tmp_path / "free", "train"), records(tmp_path / "clipped", "train")
    assert free["grad_norm"] == pytest.approx(clipped["grad_norm"])
    assert free["grad_norm"] > 0.01


def test_bf16_trains_and_keeps_float32_weights(tmp_path):
    parts, seen = parts_of(), set()
    parts.model.register_forward_hook(lambda module, args, logits: seen.add(logits.dtype))
    outcome = run(tmp_path, config_of(precision=Precision.bf16), parts=parts)
    assert outcome.status is Status.finished
    assert seen == {torch.bfloat16}
    assert {t.dtype for t in torch.load(RunFolder(tmp_path).checkpoint)["model"].values()} == {torch.float32}


def test_frozen_parameters_stay_as_they_are(tmp_path):
    parts = parts_of()
    parts.model.embedding.weight.requires_grad_(False)
    before = parts.model.embedding.weight.clone()
    run(tmp_path, parts=parts)
    assert torch.equal(before, parts.model.embedding.weight)


def test_training_lowers_the_loss(tmp_path):
    before, after = (run(tmp_path / str(steps), config_of(steps)).metrics["eval/loss"] for steps in (0, 150))
    assert before == pytest.approx(math.log(5), abs=0.2)
    assert after < before - 0.1

"""What a run scores itself on: its own length, other lengths, and problems answered by generation."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from training_stub import CPU, TASK, TinyModel, config_of, parts_of, records, run

from ablate.config.schema import EvaluationConfig, Precision
from ablate.models.attention.learned import Learned
from ablate.models.gpt import GPT
from ablate.tasks.addition import Addition
from ablate.tasks.base import IGNORED, Batch
from ablate.tasks.reverse import Reverse
from ablate.training import scoring
from ablate.training.evaluation import evaluate, evaluation_set, score
from ablate.training.seeds import initialise, numpy_generator

SMALL = EvaluationConfig(sequences=20, curve_sequences=6, batch_size=7, lengths=[24, 40], problems=9, curve_problems=4)


def scorer(model, task=TASK, config=SMALL):
    return scoring.Scorer(model, task, config, Precision.float32, CPU)


def model_of(seed=0):
    return parts_of(seed).model


def test_each_length_is_scored_on_its_own_set_by_the_same_rule():
    model = model_of()
    found = scorer(model).scores(final=True)
    for length in SMALL.lengths:
        data = evaluation_set(TASK.with_length(length), SMALL, CPU)
        assert data.inputs_BT.shape == (20, length)
        expected = evaluate(model, data, batch_size=20)
        for name in ("loss", "loss_se", "accuracy", "accuracy_se"):
            plain = name.removesuffix("_se")
            key = f"{plain}@{length}" + "_se" * name.endswith("_se")
            assert found[key] == pytest.approx(getattr(expected, name))
    assert found["loss"] == pytest.approx(evaluate(model, evaluation_set(TASK, SMALL, CPU), batch_size=20).loss)


def test_accuracy_by_position_is_that_of_a_plain_loop():
    model, data = model_of(), evaluation_set(TASK.with_length(22), SMALL, CPU)
    found = score(model, data, batch_size=7).accuracy_by_position(4)
    model.eval()
    with torch.no_grad():
        guesses = model(data.inputs_BT).argmax(-1)
    for (low, high), value in found.items():
        right = total = 0
        for row in range(len(guesses)):
            for place in range(low - 1, high):
                if data.targets_BT[row, place] != IGNORED:
                    total += 1
                    right += int(guesses[row, place] == data.targets_BT[row, place])
        assert value == pytest.approx(right / total)
    assert [span for span in ((1, 5), (6, 11), (12, 16), (17, 22)) if span in found] == list(found)


def test_a_part_without_a_counted_target_is_left_out():
    targets = torch.full((3, 8), IGNORED)
    targets[:, 6:] = 1
    found = score(TinyModel(), Batch(torch.zeros(3, 8, dtype=torch.int64), targets), batch_size=3)
    assert list(found.accuracy_by_position(4)) == [(7, 8)]


def test_along_the_way_the_first_of_everything_is_scored():
    model = model_of()
    found = scorer(model).scores(final=False)
    whole = evaluation_set(TASK.with_length(24), SMALL, CPU)
    part = Batch(*(tensor[:6] for tensor in whole))
    assert found["loss@24"] == pytest.approx(evaluate(model, part, batch_size=6).loss)
    assert found["sequences"] == 6


class Oracle(torch.nn.Module):
    """Writes the right answer of `reverse` to all prompts but the first `wrong` ones; else the stop token at once."""

    def __init__(self, task, prompts, wrong):
        super().__init__()
        self.anchor = torch.nn.Parameter(torch.zeros(1))
        self.task, self.size, self.wrong, self.length = task, len(task.alphabet), wrong, len(prompts[0])
        self.bad = [tuple(prompt) for prompt in prompts[:wrong]]

    def forward(self, tokens_BT):
        logits = torch.zeros(*tokens_BT.shape, self.size)
        for row, tokens in enumerate(tokens_BT.tolist()):
            cut = tokens.index(self.task.alphabet.index(">")) if self.task.alphabet.index(">") in tokens else None
            if cut is None:
                continue
            answer = [*reversed(tokens[:cut]), self.task.stop]
            done = len(tokens) - cut - 1
            right = tuple(tokens[: cut + 1]) not in self.bad
            chosen = answer[done] if right and done < len(answer) else self.task.stop
            logits[row, -1, chosen] = 1.0
        return logits


def test_exact_match_counts_the_answers_that_are_right():
    task = Reverse(seq_len=17, shortest=5, symbols=8)
    config = EvaluationConfig(sequences=8, curve_sequences=8, problems=10, curve_problems=4)
    prompts = task.prompts(numpy_generator(config.seed, "problems"), 10)
    distinct = [prompt for prompt in prompts if prompts.count(prompt) == 1]
    wrong = 3
    model = Oracle(task, [*distinct[:wrong], *prompts], wrong)
    found = scorer(model, task, config).scores(final=True)
    assert found["exact_match"] == pytest.approx(0.7)
    assert found["exact_match_se"] == pytest.approx(math.sqrt(0.7 * 0.3 / 9))
    assert found["problems"] == 10
    assert scorer(model, task, config).scores(final=False)["problems"] == 4
    off = replace(config, problems=0, curve_problems=0)
    assert "exact_match" not in scorer(model, task, off).scores(final=True)


def test_a_task_that_is_not_generated_has_no_exact_match_and_one_that_is_names_it():
    assert "exact_match" not in scorer(model_of()).scores(final=True)
    names = scoring.final_metrics(TASK, SMALL)
    assert names == [
        "eval/loss", "eval/accuracy", "eval/loss@24", "eval/accuracy@24", "eval/loss@40", "eval/accuracy@40",
    ]  # fmt: skip
    addition = Addition(seq_len=128, max_digits=3, digits="uniform", workings="spaces")
    assert "eval/exact_match" in scoring.final_metrics(addition, EvaluationConfig())
    assert "eval/exact_match" not in scoring.final_metrics(addition, EvaluationConfig(problems=0))


def gpt(length):
    model = GPT(
        len(TASK.alphabet),
        width=8,
        layers=1,
        heads=2,
        feed_forward=2,
        dropout=0.0,
        tied=False,
        attention=lambda width, heads: Learned(width, heads, length=length, random_offset=False),
    )
    initialise(model, 0)
    return model


def test_a_length_beyond_the_positions_of_the_model_is_told_and_left_out():
    model = gpt(24)
    found = scorer(model).scores(final=True)
    assert "loss@24" in found
    assert not [name for name in found if "@40" in name]
    assert scoring.remarks(model, SMALL) == ["evaluation.lengths=40: not evaluated, the model has 24 positions"]
    assert scoring.remarks(gpt(64), SMALL) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lengths": [0]}, r"evaluation\.lengths=0: must be at least 1"),
        ({"lengths": [24, 24]}, r"evaluation\.lengths=24: given more than once"),
        ({"lengths": [3]}, r"evaluation\.lengths=3: not possible with this task \(task\.seq_len=3"),
    ],
)
def test_a_length_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        scoring.check(TASK, replace(SMALL, **changes))


def test_more_problems_than_are_held_out_are_refused():
    task = Reverse(seq_len=9, shortest=3, symbols=8)
    with pytest.raises(
        ValueError, match=r"evaluation\.problems=5000: the task keeps only about \d+ different problems"
    ):
        scoring.check(task, EvaluationConfig(sequences=4, curve_sequences=4, problems=5000))


def test_other_lengths_change_nothing_of_training_and_stand_in_the_log_and_the_record(tmp_path):
    plain, longer = config_of(), config_of()
    longer.evaluation = replace(longer.evaluation, lengths=[24])
    one, two = run(tmp_path / "a", plain), run(tmp_path / "b", longer)
    assert two.metrics["eval/loss"] == one.metrics["eval/loss"]
    assert np.isfinite(two.metrics["eval/loss@24"])
    logged = records(tmp_path / "b", "eval")
    assert all("loss@24" in record for record in logged)
    assert logged[-1]["loss@24"] == two.metrics["eval/loss@24"]

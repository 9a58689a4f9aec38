"""What every task keeps to; each YAML in conf/task is tested, a new one without an edit here."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

from ablate.config.schema import EvaluationConfig
from ablate.tasks.base import IGNORED, Batch, HeldOut, Scored, Task, decode
from ablate.training.evaluation import check_held_out, evaluation_set, token_losses
from ablate.training.seeds import numpy_generator

CONFIGS = sorted((Path(__file__).parents[2] / "conf" / "task").glob("*.yaml"))


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def config(request, text_file):
    config = OmegaConf.load(request.param)
    if "path" in config:
        config.path = str(text_file)
    return config


@pytest.fixture
def task(config):
    return instantiate(config)


def rows(batch: Batch) -> set[tuple[int, ...]]:
    return {tuple(row.tolist()) for row in batch.inputs_BT}


def both(task, seed, size):
    """A batch of each split."""
    return [task.batch(numpy_generator(seed), size, split) for split in ("train", "eval")]


def test_there_are_tasks():
    assert len(CONFIGS) >= 13


def test_a_task_keeps_the_protocol(task):
    assert isinstance(task, Task)
    assert len(set(task.alphabet)) == len(task.alphabet) > 1


def test_the_yaml_lists_exactly_the_keyword_parameters(config):
    parameters = inspect.signature(get_class(config._target_)).parameters
    assert set(config) - {"_target_"} == set(parameters)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())


def test_shapes_types_and_ranges(task):
    for batch in (*both(task, 1, 7), *both(task, 1, 64), *both(task, 1, 1)):
        for tensor in batch:
            assert tensor.shape == (len(batch.inputs_BT), task.seq_len)
            assert tensor.dtype == torch.int64
            assert tensor.is_contiguous()
        inputs, targets = batch
        assert inputs.min() >= 0
        assert inputs.max() < len(task.alphabet)
        assert targets.min() >= IGNORED
        assert targets.max() < len(task.alphabet)


def test_every_sequence_has_a_target(task):
    for batch in both(task, 2, 256):
        assert (batch.targets_BT != IGNORED).any(dim=1).all()


def test_a_counted_target_is_the_next_input(task):
    for inputs, targets in both(task, 3, 64):
        following, counted = inputs[:, 1:], targets[:, :-1]
        assert torch.equal(following[counted != IGNORED], counted[counted != IGNORED])


def test_d1_an_oracle_of_the_counted_targets_alone_has_loss_zero(task):
    for _, targets in both(task, 3, 4):
        confident = 1e4 * torch.nn.functional.one_hot(targets.clamp(min=0), len(task.alphabet)).float()
        assert token_losses(confident, targets).sum() == 0


def test_the_same_stream_gives_the_same_batch_whatever_was_drawn_before(config, task):
    first = task.batch(numpy_generator(4, "data", 1), 16)
    task.batch(numpy_generator(4, "data", 2), 16)
    task.batch(numpy_generator(4, "data", 1), 16, "eval")
    for again in (
        task.batch(numpy_generator(4, "data", 1), 16),
        instantiate(config).batch(numpy_generator(4, "data", 1), 16),
    ):
        assert torch.equal(first.inputs_BT, again.inputs_BT)
        assert torch.equal(first.targets_BT, again.targets_BT)


def test_training_is_what_a_batch_is_for_unless_said_otherwise(task):
    given = task.batch(numpy_generator(4), 16, "train")
    assert torch.equal(given.inputs_BT, task.batch(numpy_generator(4), 16).inputs_BT)


def test_no_global_generator_is_used(task):
    before, torch_before = np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002
    both(task, 5, 16)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_no_batch_comes_twice_over_steps_and_seeds(task):
    streams = [(seed, "data", step) for seed in (0, 1) for step in range(1, 51)]
    seen = {task.batch(numpy_generator(*stream), 16).inputs_BT.numpy().tobytes() for stream in streams}
    assert len(seen) == len(streams)


def test_the_evaluation_set_shares_no_sequence_with_training_even_at_the_same_seed(task):
    held_out = rows(evaluation_set(task, EvaluationConfig(sequences=512, seed=0), torch.device("cpu")))
    trained = set.union(*(rows(task.batch(numpy_generator(0, "data", step), 16)) for step in range(1, 101)))
    assert len(held_out) > 256
    assert not held_out & trained


def test_a_default_run_has_problems_enough_to_evaluate_on(task):
    check_held_out(task, EvaluationConfig())


def test_more_sequences_than_held_out_problems_are_refused_with_their_number(task):
    if isinstance(task, HeldOut) and task.held_out < 10**9:
        with pytest.raises(ValueError, match=rf"evaluation\.sequences=\d+: .*about {task.held_out} different problems"):
            evaluation_set(task, EvaluationConfig(sequences=task.held_out + 1), torch.device("cpu"))


def test_the_docstring_shows_a_sequence_as_it_is_drawn(config):
    """The first of two from `default_rng(5)`, with the parameters that stand after "With"."""
    document = inspect.getdoc(get_class(config._target_))
    shown = {name: re.search(rf"\n    {name}  +(.*)", document)[1].replace("↵", "\n") for name in ("inputs", "targets")}
    for key, value in re.findall(r"(\w+)=([\w.]+)", re.search(r"\nWith (.*?)\n\n", document, re.DOTALL)[1]):
        config[key] = type(config[key])(value)
    if "path" in config:
        pytest.skip("shows another text; see the task's own test")
    config.seq_len = len(shown["inputs"])
    task = instantiate(config)
    inputs, targets = (row[0].tolist() for row in task.batch(np.random.default_rng(5), 2))
    assert decode(task.alphabet, inputs) == shown["inputs"]
    assert "".join("." if i == IGNORED else task.alphabet[i] for i in targets) == shown["targets"]


def test_at_another_length_it_is_the_same_task(task):
    for seq_len in (task.seq_len, 2 * task.seq_len + 1, 4 * task.seq_len):
        other = task.with_length(seq_len)
        assert other.seq_len == seq_len
        assert other.alphabet == task.alphabet
        assert other.batch(numpy_generator(6), 3, "eval").inputs_BT.shape == (3, seq_len)
    same = task.with_length(task.seq_len).batch(numpy_generator(7), 4, "eval")
    assert torch.equal(same.inputs_BT, task.batch(numpy_generator(7), 4, "eval").inputs_BT)


def test_no_length_without_room_for_a_target_is_accepted(task):
    for seq_len in (-1, 0):
        with pytest.raises(ValueError, match=rf"task\.(seq_len|shortest)=.*{seq_len}"):
            task.with_length(seq_len)
    for seq_len in range(1, 12):
        try:
            short = task.with_length(seq_len)
        except ValueError:
            continue
        assert (short.batch(numpy_generator(8), 64).targets_BT != IGNORED).any(dim=1).all()


def test_prompts_are_drawn_from_the_generator_and_end_within_the_alphabet(task):
    if isinstance(task, Scored):
        prompts = task.prompts(numpy_generator(9), 50)
        assert prompts == task.prompts(numpy_generator(9), 50)
        assert len(prompts) == 50
        assert all(0 <= token < len(task.alphabet) for prompt in prompts for token in prompt)
        assert 0 <= task.stop < len(task.alphabet)
        assert not any(task.is_right(prompt, []) for prompt in prompts)
        assert not any(task.is_right(prompt, [task.stop]) for prompt in prompts)

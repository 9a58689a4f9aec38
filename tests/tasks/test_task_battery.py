"""What every task keeps to; each YAML in conf/task is tested, a new one without an edit here."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra.utils import get_class, instantiate
from omegaconf import OmegaConf

from ablate.config.schema import EvaluationConfig
from ablate.tasks.base import IGNORED, Batch, Task
from ablate.training.evaluation import evaluation_set
from ablate.training.seeds import numpy_generator

CONFIGS = sorted((Path(__file__).parents[2] / "conf" / "task").glob("*.yaml"))


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def config(request):
    return OmegaConf.load(request.param)


@pytest.fixture
def task(config):
    return instantiate(config)


def rows(batch: Batch) -> set[tuple[int, ...]]:
    return {tuple(row.tolist()) for row in batch.inputs_BT}


def test_there_are_tasks():
    assert CONFIGS


def test_a_task_keeps_the_protocol(task):
    assert isinstance(task, Task)
    assert len(set(task.alphabet)) == len(task.alphabet) > 1


def test_the_yaml_lists_exactly_the_keyword_parameters(config):
    parameters = inspect.signature(get_class(config._target_)).parameters
    assert set(config) - {"_target_"} == set(parameters)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values())


def test_shapes_types_and_ranges(task):
    for tensor in task.batch(numpy_generator(1), 7):
        assert tensor.shape == (7, task.seq_len)
        assert tensor.dtype == torch.int64
        assert tensor.is_contiguous()
    inputs, targets = task.batch(numpy_generator(1), 64)
    assert inputs.min() >= 0
    assert inputs.max() < len(task.alphabet)
    assert targets.min() >= IGNORED
    assert targets.max() < len(task.alphabet)


def test_every_sequence_has_a_target(task):
    assert (task.batch(numpy_generator(2), 256).targets_BT != IGNORED).any(dim=1).all()


def test_a_counted_target_is_the_next_input(task):
    inputs, targets = task.batch(numpy_generator(3), 64)
    following, counted = inputs[:, 1:], targets[:, :-1]
    assert torch.equal(following[counted != IGNORED], counted[counted != IGNORED])


def test_the_same_stream_gives_the_same_batch_whatever_was_drawn_before(task):
    first = task.batch(numpy_generator(4, "data", 1), 16)
    task.batch(numpy_generator(4, "data", 2), 16)
    again = task.batch(numpy_generator(4, "data", 1), 16)
    assert torch.equal(first.inputs_BT, again.inputs_BT)
    assert torch.equal(first.targets_BT, again.targets_BT)


def test_no_global_generator_is_used(task):
    before, torch_before = np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002
    task.batch(numpy_generator(5), 16)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_no_sequence_comes_twice_over_rows_steps_and_seeds(task):
    streams = [(seed, "data", step) for seed in (0, 1) for step in range(1, 51)]
    seen = [rows(task.batch(numpy_generator(*stream), 16)) for stream in streams]
    assert len(set.union(*seen)) == 16 * len(streams)


def test_the_evaluation_set_shares_no_sequence_with_training_even_at_the_same_seed(task):
    held_out = rows(evaluation_set(task, EvaluationConfig(sequences=512, seed=0), torch.device("cpu")))
    trained = set.union(*(rows(task.batch(numpy_generator(0, "data", step), 16)) for step in range(1, 101)))
    assert len(held_out) == 512
    assert not held_out & trained

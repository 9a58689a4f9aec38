"""The real model and the default task: a known curve, and resuming with attention dropout and in bf16."""

from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from training_stub import CPU, config_of, records, weights

from ablate.config.schema import EvaluationConfig, Precision, RunConfig, TrainingConfig
from ablate.models.gpt import GPT
from ablate.records import RunFolder
from ablate.training import seeds
from ablate.training.trainer import Outcome, Parts, train

CONF = Path(__file__).parents[2] / "conf"
GOLDEN = {
    "rope": [1.79738, 1.54428, 1.42052, 1.42129, 1.40667],
    "roper": [2.02592, 1.62132, 1.45135, 1.42911, 1.415],
}
"""Training losses of the first five steps at the default size, seed 0."""


def named(group, name):
    root = OmegaConf.create({"rope_percentage": 1.0, "training": {"steps": 23}, "model": {}})
    place = "model.attention" if group == "attention" else group
    OmegaConf.update(root, place, OmegaConf.load(CONF / group / f"{name}.yaml"), force_add=True)
    return instantiate(OmegaConf.select(root, place), _convert_="all")


def parts_of(scheme, device, dropout=0.0, schedule="cosine"):
    task = named("task", "copy_repeat")
    settings = {k: v for k, v in OmegaConf.load(CONF / "model" / "gpt.yaml").items() if not k.startswith("_")}
    model = GPT(len(task.alphabet), attention=named("attention", scheme), **settings | {"dropout": dropout})
    seeds.initialise(model, 0)
    model.to(device)
    optimizer = named("optimizer", "adam")(model.parameters())
    return Parts(model=model, task=task, optimizer=optimizer, schedule=named("schedule", schedule)(optimizer))


def run(path: Path, config, parts, device=CPU, stop_after=10**9) -> Outcome:
    path.mkdir(exist_ok=True)
    asked = iter(range(10**9))
    return train(
        parts,
        config,
        RunFolder(path),
        device=device,
        source="s",
        should_stop=lambda: next(asked) >= stop_after,
        on_log=lambda record: None,
    )


@pytest.mark.parametrize("scheme", GOLDEN)
def test_the_first_losses_are_known(tmp_path, scheme):
    config = RunConfig(
        training=TrainingConfig(steps=5, log_every=1), evaluation=EvaluationConfig(sequences=8, curve_sequences=8)
    )
    run(tmp_path, config, parts_of(scheme, CPU, schedule="constant"))
    assert [r["loss"] for r in records(tmp_path, "train")] == pytest.approx(GOLDEN[scheme], rel=1e-4)


@pytest.mark.parametrize("precision", list(Precision))
def test_a_transformer_with_dropout_goes_on_bit_for_bit(tmp_path, precision):
    config = config_of(precision=precision)
    run(tmp_path / "straight", config, parts_of("roper", CPU, 0.2))
    run(tmp_path / "stopped", config, parts_of("roper", CPU, 0.2), stop_after=10)
    run(tmp_path / "stopped", config, parts_of("roper", CPU, 0.2))
    assert records(tmp_path / "straight") == records(tmp_path / "stopped")
    assert weights(tmp_path / "straight") == weights(tmp_path / "stopped")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_run_on_a_gpu_can_be_continued_there_and_read_on_a_cpu(tmp_path):
    cuda = torch.device("cuda")
    parts = parts_of("roper", cuda, 0.2)
    state = torch.cuda.get_rng_state()
    run(tmp_path / "straight", config_of(), parts, cuda)
    assert torch.equal(torch.cuda.get_rng_state(), state)
    run(tmp_path / "stopped", config_of(), parts_of("roper", cuda, 0.2), cuda, stop_after=10)
    run(tmp_path / "stopped", config_of(), parts_of("roper", cuda, 0.2), cuda)
    for one, other in zip(records(tmp_path / "straight"), records(tmp_path / "stopped"), strict=True):
        assert one == pytest.approx(other, rel=1e-3)
    run(tmp_path / "stopped", config_of(), parts_of("roper", CPU, 0.2), CPU)

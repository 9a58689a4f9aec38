"""A model small enough for thousands of steps, and the parts of a run around it."""

import logging
from pathlib import Path

import torch
from torch import nn

from ablate.config.schema import (
    EvaluationConfig,
    Precision,
    RunConfig,
    RuntimeConfig,
    SeedsConfig,
    TrainingConfig,
)
from ablate.records import RunFolder
from ablate.tasks.copy_repeat import CopyRepeat
from ablate.training import seeds
from ablate.training.trainer import Parts, train

CPU = torch.device("cpu")
TASK = CopyRepeat(seq_len=16, substr_len=3, rnd_len=3)


class TinyModel(nn.Module):
    """Logits from this token and the one before it, with dropout in between."""

    def __init__(self, vocabulary=5, width=8, dropout=0.3):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(2 * width, vocabulary)

    def forward(self, tokens_BT):
        x_BTC = self.embedding(tokens_BT)
        return self.head(self.dropout(torch.cat([x_BTC, x_BTC.roll(1, dims=1)], dim=-1)))

    def initialise(self, generator_for):
        for name, parameter in self.named_parameters():
            nn.init.normal_(parameter, std=0.3, generator=generator_for(name))

    def effective(self):
        return {}


def warmup(optimizer):
    return torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=9)


def parts_of(seed=0, *, model=None, task=TASK, schedule=warmup):
    model = model or TinyModel()
    seeds.initialise(model, seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    return Parts(model=model, task=task, optimizer=optimizer, schedule=schedule(optimizer))


def config_of(  # noqa: PLR0917
    steps=23,
    log_every=3,
    eval_every=5,
    checkpoint_every=4,
    seed=0,
    grad_clip=1.0,
    precision=Precision.float32,
    data=None,
    dropout=None,
):
    return RunConfig(
        seed=seed,
        training=TrainingConfig(
            steps=steps,
            batch_size=4,
            eval_every=eval_every,
            log_every=log_every,
            grad_clip=grad_clip,
            precision=precision,
        ),
        evaluation=EvaluationConfig(sequences=40, curve_sequences=10, batch_size=16),
        seeds=SeedsConfig(data=data, dropout=dropout),
        runtime=RuntimeConfig(checkpoint_every=checkpoint_every),
    )


def run(path: Path, config=None, *, parts=None, source="s", stop_after=None, on_log=lambda record: None):
    """Train in `path`; `stop_after` is how many steps are done before the run is told to stop, evaluating or not."""
    path.mkdir(parents=True, exist_ok=True)
    config = config or config_of()
    parts, steps = parts or parts_of(config.seed), []
    parts.optimizer.register_step_post_hook(lambda *_: steps.append(1))
    return train(
        parts,
        config,
        RunFolder(path),
        device=CPU,
        source=source,
        should_stop=lambda: stop_after is not None and len(steps) >= stop_after,
        on_log=on_log,
    )


def records(path: Path, split=None):
    """Every line of metrics.jsonl but the seconds, in file order."""
    found = list(RunFolder(path)._lines())
    return [{k: v for k, v in r.items() if k != "seconds"} for r in found if split in (None, r["split"])]


def weights(path: Path):
    """The checkpoint's content but for times, as text that shows every bit."""
    content = torch.load(RunFolder(path).checkpoint)
    return repr({key: _plain(value) for key, value in content.items() if "seconds" not in key})


def _plain(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, value.tolist()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def quiet():
    logging.getLogger("ablate").setLevel(logging.ERROR)

"""What is timed: our training, labml-nn's on the same batches, and plain matrix products. How, is in `lanes`.

An engine repeats its step until the gate, which it asks once for each one, says stop. It returns the mean seconds that
a step spends on drawing its batch, or nan where batches are none of its business.

Shape suffixes: B sequences, T positions, C model width, V vocabulary.
"""

import tempfile
from collections.abc import Callable, Iterable
from math import nan
from pathlib import Path
from time import perf_counter
from typing import cast

import torch
from torch import nn
from torch.nn import functional as F

from ablate.config.build import build, trial_task
from ablate.config.explain import compose_cell
from ablate.config.register import to_run_config
from ablate.config.schema import RunConfig
from ablate.records import RunFolder
from ablate.tasks.base import IGNORED, Batch
from ablate.training.seeds import numpy_generator
from ablate.training.trainer import train
from benchmarks.figures import Size

Gate = Callable[[], bool]
Engine = Callable[[Size, int, Gate], float]

CPU = torch.device("cpu")
ENDLESS = ("training.steps=1000000000", "training.eval_every=1000000000", "runtime.checkpoint_every=0")
MATMUL_SIDES = (512, 1024, 2048)
MATMUL_FLOPS = 2 * max(MATMUL_SIDES) ** 3
"""Of one step of the matrix engine, at whichever side turns out quickest."""
PEER_BATCHES = 16
CLIP = 1.0


def config_of(overrides: Iterable[str]) -> RunConfig:
    """The config that the command line would compose, on the CPU."""
    return to_run_config(compose_cell([*overrides, "runtime.device=cpu"]))


def size_of(name: str, overrides: Iterable[str]) -> Size:
    """The size of a training step with these overrides."""
    config = config_of(overrides)
    model = {key: config.model[key] for key in ("width", "layers", "heads", "feed_forward")}
    task = trial_task(config.task)
    return Size(
        name=name,
        overrides=tuple(overrides),
        batch=config.training.batch_size,
        seq_len=task.seq_len,
        vocabulary=len(task.alphabet),
        **model,
    )


def ablate(size: Size, threads: int, gate: Gate) -> float:
    """The product's own `train`: batches, forward, loss, backward, clipping, Adam, log; no evaluation on the way."""
    torch.set_num_threads(threads)
    config = config_of((*size.overrides, *ENDLESS, f"runtime.threads={threads}"))
    parts = build(config, CPU).parts
    with tempfile.TemporaryDirectory() as folder:
        outcome = train(
            parts,
            config,
            RunFolder(Path(folder)),
            device=CPU,
            source="benchmark",
            should_stop=after_each_step(parts.optimizer, gate),
            on_log=lambda record: None,
        )
    return outcome.data_seconds / outcome.steps_done


def after_each_step(optimizer: torch.optim.Optimizer, gate: Gate) -> Gate:
    """What a run may ask at any time whether to stop: passed on to the gate once after each step of the optimiser.

    A run asks while it draws its evaluation sets too, which is no training and must not pass for it.
    """
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    def should_stop() -> bool:
        nonlocal steps
        if steps == 0:
            return False
        assert steps == 1, f"{steps} steps were trained between two questions whether to stop"
        steps = 0
        return gate()

    optimizer.register_step_post_hook(count)
    return should_stop


class LabmlModel(nn.Module):
    """labml-nn's encoder with RoPER attention, embedding and output layer, put together as its RoPER experiment does.

    Token ids [T, B] -> logits [T, B, V]. (The experiment's own class for this cannot be imported without torchvision
    and the rest of its experiment framework; it holds these parts and the mask, as here.)
    """

    def __init__(self, size: Size) -> None:
        from labml_nn.transformers.feed_forward import FeedForward  # noqa: PLC0415  (an optional peer)
        from labml_nn.transformers.models import Encoder, Generator, TransformerLayer  # noqa: PLC0415
        from labml_nn.transformers.rope.value_pe import RotaryValuePEMultiHeadAttention  # noqa: PLC0415
        from labml_nn.transformers.utils import subsequent_mask  # noqa: PLC0415

        super().__init__()
        layer = TransformerLayer(
            d_model=size.width,
            self_attn=RotaryValuePEMultiHeadAttention(size.heads, size.width, 1.0, 1.0),
            feed_forward=FeedForward(size.width, size.feed_forward * size.width, 0.0),
            dropout_prob=0.0,
        )
        self.src_embed = nn.Embedding(size.vocabulary, size.width)
        self.encoder = Encoder(layer, size.layers)
        self.generator = Generator(size.vocabulary, size.width)
        self.mask = subsequent_mask(size.seq_len)

    def forward(self, tokens_TB: torch.Tensor) -> torch.Tensor:
        """Logits of the next token at every position."""
        return cast(torch.Tensor, self.generator(self.encoder(self.src_embed(tokens_TB), self.mask)))


def labml_nn(size: Size, threads: int, gate: Gate) -> float:
    """labml-nn's model on our batches, which were drawn and laid out before; our clipping and the same fused Adam."""
    torch.set_num_threads(threads)
    config = config_of(size.overrides)
    batches = _peer_batches(config)
    model = LabmlModel(size).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=config.optimizer["lr"], fused=True)
    step = 0
    while not gate():
        peer_step(model, optimizer, batches[step % len(batches)])
        step += 1
    return nan


def peer_step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch) -> None:
    """One step; the tensors of the batch are laid out [T, B]."""
    inputs_TB, targets_TB = batch
    optimizer.zero_grad(set_to_none=True)
    logits_TBV = model(inputs_TB)
    loss = F.cross_entropy(logits_TBV.flatten(0, 1), targets_TB.flatten(), ignore_index=IGNORED)
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()


def _peer_batches(config: RunConfig) -> list[Batch]:
    """The batches of the first steps of a run with this config, positions first."""
    task = trial_task(config.task)
    draws = (
        task.batch(numpy_generator(config.seed, "data", step), config.training.batch_size)
        for step in range(1, PEER_BATCHES + 1)
    )
    return [Batch(*(tensor_BT.t().contiguous() for tensor_BT in draw)) for draw in draws]


def matmul(size: Size, threads: int, gate: Gate) -> float:
    """float32 products of square matrices by `torch.mm`, MATMUL_FLOPS a step, at the side that is quickest here.

    The size of the training step plays no part.
    """
    del size
    torch.set_num_threads(threads)
    fastest = min((_products(side) for side in MATMUL_SIDES), key=_best_seconds)
    while not gate():
        fastest()
    return nan


def _products(side: int) -> Callable[[], None]:
    """A step of products of matrices that are there already, so that no memory is claimed on the clock."""
    a, b, out = torch.rand(side, side), torch.rand(side, side), torch.empty(side, side)

    def step() -> None:
        for _ in range(MATMUL_FLOPS // (2 * side**3)):
            torch.mm(a, b, out=out)

    return step


def _best_seconds(step: Callable[[], None]) -> float:
    """The shortest of three runs: what slows one down by chance says nothing about the step."""
    seconds = []
    for _ in range(3):
        began = perf_counter()
        step()
        seconds.append(perf_counter() - began)
    return min(seconds)


ENGINES: dict[str, Engine] = {"ablate": ablate, "labml-nn": labml_nn, "matmul": matmul}

"""The fixed evaluation set and what a model scores on it; nothing here trains or draws from a training stream.

The loss is the mean over all counted tokens, R = Σ s_i / Σ c_i with s_i the summed loss and c_i the counted tokens of
sequence i, so a sequence without counted tokens has no weight. Sequences are independent, tokens of one sequence are
not: the standard error is that of a ratio estimator over n sequences (Cochran, Sampling Techniques, 3rd ed., 6.4, for
an infinite population), with c the mean of the c_i:

    se(R)² = Σ (s_i - R c_i)² / (n (n - 1) c²)

The same holds for accuracy, with s_i the number of tokens predicted right. Both are teacher-forced: each token is
predicted from the true tokens before it.

All or nothing: where the model's output at any position of a set holds NaN or +inf, or only -inf, or -inf for the
counted target, every score of the set is nan, accuracy too: the argmax over NaN is no prediction.

Shape suffixes: N sequences of the set, B of a batch, T positions, V vocabulary.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from ablate.config.schema import EvaluationConfig, Precision
from ablate.tasks.base import IGNORED, Batch, HeldOut, Task
from ablate.training.seeds import numpy_generator

_CHUNK = 256
"""Sequences drawn from one stream; the set of n sequences is the beginning of every larger set."""


class Evaluation(NamedTuple):
    """Teacher-forced scores over counted tokens; the standard errors are nan for a single sequence.

    All four are nan where the model's output is not finite.
    """

    loss: float
    loss_se: float
    accuracy: float
    accuracy_se: float
    sequences: int

    def metrics(self) -> dict[str, float]:
        """The scores under the names that a run's record uses."""
        return {f"eval/{name}": value for name, value in self._asdict().items()}


def evaluation_set(
    task: Task, config: EvaluationConfig, device: torch.device, between: Callable[[], None] = lambda: None
) -> Batch:
    """The fixed set, drawn from `evaluation.seed` alone; inputs and targets of shape [N, T] on `device`.

    `between` is called before each part is drawn; what it raises is passed on.

    Raises ValueError when no target of it counts, or there are fewer problems to evaluate on than sequences.
    """
    check_held_out(task, config)
    size = max(config.sequences, config.curve_sequences)
    streams = [numpy_generator(config.seed, "evaluation", i) for i in range(-(-size // _CHUNK))]
    chunks = []
    for stream in streams:
        between()
        chunks.append(task.batch(stream, _CHUNK, "eval"))
    inputs_NT, targets_NT = (torch.cat(tensors)[:size].to(device) for tensors in zip(*chunks, strict=True))
    for key in ("sequences", "curve_sequences"):
        if not bool((targets_NT[: getattr(config, key)] != IGNORED).any()):
            raise ValueError(f"evaluation.{key}={getattr(config, key)}: no target of these sequences counts; use more")
    return Batch(inputs_NT, targets_NT)


def check_held_out(task: Task, config: EvaluationConfig) -> None:
    """Raise ValueError when evaluation asks for more sequences than the task has problems that training never sees."""
    for key in ("sequences", "curve_sequences"):
        if isinstance(task, HeldOut) and getattr(config, key) > task.held_out:
            raise ValueError(
                f"evaluation.{key}={getattr(config, key)}: the task keeps only about {task.held_out} different "
                f"problems for evaluation; use evaluation.{key}={task.held_out} or larger problems"
            )


class Scores(NamedTuple):
    """An evaluation, and at each position the targets that count and those predicted right, both of shape [T]."""

    evaluation: Evaluation
    hits_T: npt.NDArray[np.float64]
    counts_T: npt.NDArray[np.float64]

    def accuracy_by_position(self, parts: int) -> dict[tuple[int, int], float]:
        """Accuracy on so many parts of the sequence, of equal width; by the first and last position, counted from 1.

        A part without a counted target is left out.
        """
        ends = [len(self.hits_T) * i // parts for i in range(parts + 1)]
        spans = [(low, high) for low, high in pairwise(ends) if self.counts_T[low:high].sum() > 0]
        return {
            (low + 1, high): float(self.hits_T[low:high].sum() / self.counts_T[low:high].sum()) for low, high in spans
        }


def evaluate(model: nn.Module, data: Batch, *, batch_size: int, precision: Precision = Precision.float32) -> Evaluation:
    """Score `model` on `data` without gradients and in evaluation mode; every module's mode is put back after."""
    return score(model, data, batch_size=batch_size, precision=precision).evaluation


def score(
    model: nn.Module,
    data: Batch,
    *,
    batch_size: int,
    precision: Precision = Precision.float32,
    between: Callable[[], None] = lambda: None,
) -> Scores:
    """The same, with what was right at each position. `between` is called before each batch."""
    sums, places = [], []
    # Not inference_mode: tables that a model builds and keeps here could not take part in training afterwards.
    with evaluation_mode(model), torch.no_grad(), arithmetic(precision, data.inputs_BT.device):
        for start in range(0, len(data.inputs_BT), batch_size):
            between()
            targets_BT = data.targets_BT[start : start + batch_size]
            columns = _columns(model(data.inputs_BT[start : start + batch_size]), targets_BT)
            sums.append(torch.stack([column_BT.sum(dim=1, dtype=torch.float64) for column_BT in columns]))
            places.append(torch.stack([column_BT.sum(dim=0, dtype=torch.float64) for column_BT in columns[1:]]))
    losses_N, hits_N, counts_N = torch.cat(sums, dim=1).cpu().numpy()
    hits_T, counts_T = torch.stack(places).sum(dim=0).cpu().numpy()
    if not np.isfinite(losses_N).all():
        losses_N, hits_N, hits_T = (np.full_like(sums, np.nan) for sums in (losses_N, hits_N, hits_T))
    found = Evaluation(*_ratio(losses_N, counts_N), *_ratio(hits_N, counts_N), sequences=len(counts_N))
    return Scores(found, hits_T, counts_T)


def arithmetic(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """The context of a forward pass: autocast for bf16, nothing for float32."""
    if precision is Precision.bf16:
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def token_losses(logits_BTV: torch.Tensor, targets_BT: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of each token in nats, float32 of shape [B, T], 0 where the target is ignored."""
    flat = F.cross_entropy(
        logits_BTV.flatten(0, 1).float(), targets_BT.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return flat.view_as(targets_BT)


def _columns(logits_BTV: torch.Tensor, targets_BT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Per target: its loss, whether it was predicted right, whether it counts; each of shape [B, T].

    The loss is nan, of a target that does not count too, where the largest logit is no finite number.
    """
    counted_BT = targets_BT != IGNORED
    largest_BT, guesses_BT = logits_BTV.max(dim=-1)
    losses_BT = token_losses(logits_BTV, targets_BT).where(largest_BT.isfinite(), torch.nan)
    return losses_BT, (guesses_BT == targets_BT) & counted_BT, counted_BT


def _ratio(sums_N: npt.NDArray[np.float64], counts_N: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Σ s / Σ c and its standard error (see the module's docstring)."""
    n, total = len(counts_N), counts_N.sum()
    ratio = sums_N.sum() / total
    if n < 2:
        return float(ratio), float("nan")
    residuals_N = sums_N - ratio * counts_N
    return float(ratio), float(np.sqrt(n / (n - 1) * np.square(residuals_N).sum()) / total)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Evaluation mode while the block runs; every module's own mode is put back after."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training

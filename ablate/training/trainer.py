"""The training loop: steps, records, checkpoints, and the end of a run. It knows no task, model or metric by name.

What a step does depends on the weights, the optimiser's and schedule's states and the step's number, for every random
draw comes from a stream named after the step. So a run continued from a checkpoint is the run that was not stopped, and
neither evaluating nor logging more often changes what is trained.

Shape suffixes: B sequences, T positions, V vocabulary.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import torch
from torch import nn

from ablate.config.schema import RunConfig
from ablate.records import RunFolder, Status
from ablate.tasks.base import IGNORED, Batch, Task
from ablate.training import checkpoint
from ablate.training.evaluation import arithmetic, token_losses
from ablate.training.scoring import Scorer, without_value
from ablate.training.seeds import numpy_generator, seed_dropout
from ablate.training.window import Window

INDEX = ("step", "tokens", "seconds", "split")
"""What every record of the log says before its values."""

log = logging.getLogger(__name__)

DRAWN_AHEAD = 16
"""Steps whose batches are drawn at once."""


@dataclass(kw_only=True)
class Parts:
    """What is trained: the model is initialised and on its device, the optimiser holds its parameters."""

    model: nn.Module
    task: Task
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler


class Outcome(NamedTuple):
    """How training ended. Seconds and tokens add up over resumes; `train_seconds` is all but evaluation, data included.

    `steps_done` of a diverged run is the step at which the number in `message` was first not finite. `metrics` are
    those of the final evaluation, empty unless finished.

    A run has diverged when a training loss, a gradient norm or the evaluation loss at the task's own length is not
    finite. Where only another length or generation is not, what it learns is sound: it goes on and can finish, every
    metric of that set is nan (null in its record), and `message` names them. Whoever asks for such a metric finds that
    the run has diverged there (`analysis.study.LoadedRun.outcome`).
    """

    status: Status
    metrics: dict[str, float]
    steps_done: int
    tokens: int
    seconds: float
    train_seconds: float
    evaluation_seconds: float
    data_seconds: float
    resumed_from: int | None
    message: str | None


def train(
    parts: Parts,
    config: RunConfig,
    folder: RunFolder,
    *,
    device: torch.device,
    source: str,
    should_stop: Callable[[], bool],
    on_log: Callable[[Mapping[str, Any]], None],
    should_prune: Callable[[int, Mapping[str, float]], bool] = lambda step, scores: False,
) -> Outcome:
    """Train to the end, or to where the run diverges or is told to stop; continue from the folder's checkpoint.

    `source` is the fingerprint of the code. `should_stop` is asked before each step and during evaluation; an
    evaluation that was broken off is made again when the run continues. `on_log` is given each record after it was
    written, `should_prune` the step and the scores of each evaluation before the last; what they raise ends training
    and is passed on. torch's generators are left as they were.
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count() if device.type == "cuda" else 0)):
        run = _Run(parts, config, folder, device=device, source=source, should_stop=should_stop, on_log=on_log)
        run.resume()
        try:
            return run.until_stopped(should_prune)
        except _DivergedError as error:
            return run.outcome(Status.diverged, step=error.step, message=error.message)


class _DivergedError(Exception):
    def __init__(self, step: int, message: str) -> None:
        super().__init__(message)
        self.step = step
        self.message = message


class _Stopped(Exception):
    """Raised wherever the run looks whether it should stop."""


class _Run:
    """One call of `train`: the parts and how far they have come."""

    def __init__(
        self,
        parts: Parts,
        config: RunConfig,
        folder: RunFolder,
        *,
        device: torch.device,
        source: str,
        should_stop: Callable[[], bool],
        on_log: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.parts, self.config, self.folder = parts, config, folder
        self.device, self.source, self.should_stop, self.on_log = device, source, should_stop, on_log
        self.parameters = [parameter for parameter in parts.model.parameters() if parameter.requires_grad]
        self.seed_data = config.seed if config.seeds.data is None else config.seeds.data
        self.seed_dropout = config.seed if config.seeds.dropout is None else config.seeds.dropout
        self.step = 0
        self.resumed_from: int | None = None
        self.learning_rate = math.nan
        self.window = Window()
        self.ahead: deque[tuple[Batch, int]] = deque()
        self.evaluation_seconds = self.data_seconds = 0.0
        self.started = perf_counter()

    def until_stopped(self, should_prune: Callable[[int, Mapping[str, float]], bool]) -> Outcome:
        try:
            return self.loop(should_prune)
        except _Stopped:
            if self.step != self.resumed_from:
                self.save()
            return self.outcome(Status.interrupted)

    def loop(self, should_prune: Callable[[int, Mapping[str, float]], bool]) -> Outcome:
        training, last = self.config.training, self.config.training.steps
        self.parts.model.train()
        self.scorer = self.draw_evaluation_sets()
        if self.misses_evaluation() and should_prune(self.step, self.log_evaluation(final=False)):
            return self.pruned()
        while self.step < last:
            self.look_for_stop()
            self.train_step()
            if _due(training.log_every, self.step) or self.step == last:
                self.log_training()
            if _due(training.eval_every, self.step) and self.step < last:
                scores = self.log_evaluation(final=False)
                if should_prune(self.step, scores):
                    return self.pruned()
            if _due(self.config.runtime.checkpoint_every, self.step) or self.step == last:
                self.save()
        return self.finished(self.final_metrics())

    def finished(self, metrics: dict[str, float]) -> Outcome:
        missing = ", ".join(without_value(metrics))
        message = f"{missing}: null, because the model's output is not finite there (NaN or inf)" if missing else None
        return self.outcome(Status.finished, metrics=metrics, message=message)

    def draw_evaluation_sets(self) -> Scorer:
        config = self.config
        return Scorer(
            self.parts.model,
            self.parts.task,
            config.evaluation,
            config.training.precision,
            self.device,
            between=self.look_for_stop,
        )

    def look_for_stop(self) -> None:
        if self.should_stop():
            raise _Stopped

    def misses_evaluation(self) -> bool:
        """Whether this step's evaluation, other than the last, was broken off when the run was stopped."""
        due = self.step > 0 and _due(self.config.training.eval_every, self.step)
        if not due or self.step == self.config.training.steps:
            return False
        return all((record["split"], record["step"]) != ("eval", self.step) for record in self.folder.read_metrics())

    def train_step(self) -> None:
        self.step += 1
        parts, began = self.parts, perf_counter()
        batch, count = self.next_batch()
        inputs_BT, targets_BT = (tensor.to(self.device, non_blocking=True) for tensor in batch)
        self.data_seconds += perf_counter() - began
        seed_dropout(self.seed_dropout, self.step)
        parts.optimizer.zero_grad(set_to_none=True)
        with arithmetic(self.config.training.precision, self.device):
            logits_BTV = parts.model(inputs_BT)
        loss = token_losses(logits_BTV, targets_BT).sum() / max(count, 1)
        torch.autograd.backward(loss)
        norm = self.clip_gradients()
        self.learning_rate = parts.optimizer.param_groups[0]["lr"]
        parts.optimizer.step()
        parts.schedule.step()
        self.window.add(loss.detach(), norm, count)

    def next_batch(self) -> tuple[Batch, int]:
        """The batch of this step and its number of counted tokens.

        Batches are drawn a few steps ahead, each from its own stream: drawn one by one between steps of training, whose
        data push numpy's out of the processor's caches, they take three times as long.
        """
        if not self.ahead:
            last = min(self.step + DRAWN_AHEAD - 1, self.config.training.steps)
            self.ahead.extend(self.draw(step) for step in range(self.step, last + 1))
        return self.ahead.popleft()

    def draw(self, step: int) -> tuple[Batch, int]:
        generator = numpy_generator(self.seed_data, "data", step)
        batch = self.parts.task.batch(generator, self.config.training.batch_size, "train")
        return batch, int((batch.targets_BT != IGNORED).sum())

    def clip_gradients(self) -> torch.Tensor:
        """The norm of all gradients, before clipping."""
        if self.config.training.grad_clip is not None:
            return nn.utils.clip_grad_norm_(self.parameters, self.config.training.grad_clip)
        return nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])

    def log_training(self) -> None:
        self.check_finite()
        self.record("train", {**self.window.values(), "lr": self.learning_rate})
        self.window = Window()

    def log_evaluation(self, *, final: bool) -> dict[str, float]:
        self.check_finite()
        began = perf_counter()
        scores = self.scorer.scores(final=final)
        self.evaluation_seconds += perf_counter() - began
        self.record("eval", scores)
        if not math.isfinite(scores["loss"]):
            raise _DivergedError(self.step, f"evaluation loss is {scores['loss']} at step {self.step}")
        return scores

    def final_metrics(self) -> dict[str, float]:
        """The last step's evaluation on everything, taken from the log when the run had got that far before."""
        for record in self.folder.read_metrics():
            if record["split"] == "eval" and record["step"] == self.step and record["loss"] is not None:
                return {f"eval/{name}": value for name, value in record.items() if name not in INDEX}
        return {f"eval/{name}": value for name, value in self.log_evaluation(final=True).items()}

    def record(self, split: str, values: Mapping[str, Any]) -> None:
        index = (self.step, self.tokens(self.step), self.seconds(), split)
        record = {**dict(zip(INDEX, index, strict=True)), **values}
        self.folder.append_metrics([record])
        self.on_log(record)

    def check_finite(self) -> None:
        """Raise when a step since the last record diverged, so no record or checkpoint is made of such weights."""
        if found := self.window.not_finite(self.step):
            raise _DivergedError(*found)

    def save(self) -> None:
        self.check_finite()
        content = checkpoint.Checkpoint(
            step=self.step,
            seconds=self.seconds(),
            evaluation_seconds=self.evaluation_seconds,
            data_seconds=self.data_seconds,
            model=dict(self.parts.model.state_dict()),
            optimizer=self.parts.optimizer.state_dict(),
            schedule=self.parts.schedule.state_dict(),
            window=self.window.state(),
        )
        checkpoint.save(self.folder, content, source=self.source)

    def resume(self) -> None:
        """Continue from the checkpoint if there is one; drop what was logged after it."""
        self.folder.remove_temporaries()
        found = checkpoint.load(self.folder, source=self.source, misfit=self.misfit)
        self.folder.keep_metrics_until(found.step if found else -1)
        if found is None:
            return
        self.parts.model.load_state_dict(found.model)
        self.parts.optimizer.load_state_dict(found.optimizer)
        self.parts.schedule.load_state_dict(found.schedule)
        self.window = Window.from_state(found.window, self.device)
        self.step = self.resumed_from = found.step
        self.evaluation_seconds, self.data_seconds = found.evaluation_seconds, found.data_seconds
        self.started -= found.seconds

    def misfit(self, found: checkpoint.Checkpoint) -> str | None:
        """What a checkpoint that says it is this run's has that this run cannot go on from."""
        last = self.config.training.steps
        if not 0 <= found.step <= last:
            return f"saved at step {found.step}, this run has {last} steps"
        if not self.is_logged(found.step):
            return f"{self.folder.metrics.name} is damaged, records before its step {found.step} are missing"
        return checkpoint.misfit(found.model, self.parts.model.state_dict())

    def pruned(self) -> Outcome:
        return self.outcome(Status.pruned, message=f"pruned at step {self.step} of {self.config.training.steps}")

    def is_logged(self, step: int) -> bool:
        """Whether the log has all of a run that is saved at `step`: a curve with a gap would give wrong numbers.

        The evaluation at `step` itself may have been broken off.
        """
        training = self.config.training
        spans = {"train": (training.log_every, step + 1), "eval": (training.eval_every, step)}
        due = {(split, n) for split, (every, end) in spans.items() if every > 0 for n in range(every, end, every)}
        return due <= {(record.get("split"), record.get("step")) for record in self.folder.read_metrics()}

    def seconds(self) -> float:
        return perf_counter() - self.started

    def tokens(self, step: int) -> int:
        return step * self.config.training.batch_size * self.parts.task.seq_len

    def outcome(
        self,
        status: Status,
        *,
        step: int | None = None,
        metrics: dict[str, float] | None = None,
        message: str | None = None,
    ) -> Outcome:
        done, seconds = self.step if step is None else step, self.seconds()
        return Outcome(
            status=status,
            metrics=metrics or {},
            steps_done=done,
            tokens=self.tokens(done),
            seconds=seconds,
            train_seconds=seconds - self.evaluation_seconds,
            evaluation_seconds=self.evaluation_seconds,
            data_seconds=self.data_seconds,
            resumed_from=self.resumed_from,
            message=message,
        )


def _due(every: int, step: int) -> bool:
    """Whether something done every so many steps, 0 for never, is to be done at this one."""
    return every > 0 and step % every == 0

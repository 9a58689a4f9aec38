"""What a run evaluates itself on: the fixed set, the same task at other lengths, problems answered by generation.

Names, as in the log (a run's record puts `eval/` before them):

    loss, accuracy             teacher-forced, on the task's own length (`training.evaluation`)
    loss@128, accuracy@128     the same on sequences of 128 positions (`evaluation.lengths`)
    accuracy@128[33-64]        of the targets at positions 33 to 64 of these, in `BUCKETS` parts of equal width
    exact_match                share of held-out problems whose generated answer is right, greedy (`tasks.base.Scored`)

with `_se` behind a name for its standard error. Each set is scored all or nothing: where the model's output is not
finite (`training.evaluation`, `training.generation`), every number about that set is nan, and null in the log. A length
that a model has no positions for, or at which the task has no sequence, is told and left out.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

from ablate.config.schema import EvaluationConfig, Precision
from ablate.tasks.base import Batch, HeldOut, Scored, Task
from ablate.training.evaluation import Scores, check_held_out, evaluation_set, score
from ablate.training.generation import NotFiniteError, generate, longest_context
from ablate.training.seeds import numpy_generator

BUCKETS = 4
"""Parts of a sequence, of equal width, on which accuracy is told apart at other lengths."""


@dataclass
class Scorer:
    """Scores one model; sets and problems are drawn once, from `evaluation.seed` alone, and live on `device`.

    `between` is called before each part of the work, often enough for a run to stop within seconds; what it raises ends
    the scoring.
    """

    model: nn.Module
    task: Task
    config: EvaluationConfig
    precision: Precision
    device: torch.device
    between: Callable[[], None] = lambda: None
    _own: Batch = field(init=False)
    _longer: dict[int, Batch] = field(init=False)
    _prompts: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        """Draw everything. Raises ValueError when the task has too few problems, or none of a length."""
        check(self.task, self.config)
        self._own = evaluation_set(self.task, self.config, self.device, self.between)
        lengths = [length for length in self.config.lengths if length not in out_of_reach(self.model, self.config)]
        self._longer = {
            n: evaluation_set(self.task.with_length(n), self.config, self.device, self.between) for n in lengths
        }
        self._prompts = []
        if isinstance(self.task, Scored) and _most_problems(self.config):
            generator = numpy_generator(self.config.seed, "problems")
            self._prompts = self.task.prompts(generator, _most_problems(self.config))

    def scores(self, *, final: bool) -> dict[str, float]:
        """All scores by name: on everything at the end of a run, on the first of everything along the way."""
        sequences = self.config.sequences if final else self.config.curve_sequences
        problems = self.config.problems if final else self.config.curve_problems
        found = self._score(_first(self._own, sequences)).evaluation._asdict()
        for length, data in self._longer.items():
            found |= at_length(self._score(_first(data, sequences)), length)
        if self._prompts and problems:
            found |= self._exact_match(self._prompts[:problems])
        return found

    def _score(self, data: Batch) -> Scores:
        config = self.config
        return score(self.model, data, batch_size=config.batch_size, precision=self.precision, between=self.between)

    def _exact_match(self, prompts: list[list[int]]) -> dict[str, float]:
        """The share of right answers and its standard error √(p (1 - p) / (n - 1)), nan for a single problem.

        Both are nan where the model could not choose a token of some answer.
        """
        task, n = self.task, len(prompts)
        assert isinstance(task, Scored)
        try:
            answers = generate(self.model, prompts, task.most_tokens, stop=task.stop, between=self.between)
            share = sum(task.is_right(*pair) for pair in zip(prompts, answers, strict=True)) / n
        except NotFiniteError:
            share = math.nan
        return {
            "exact_match": share,
            "exact_match_se": math.sqrt(share * (1 - share) / (n - 1)) if n > 1 else math.nan,
            "problems": n,
        }


def at_length(scores: Scores, length: int) -> dict[str, float]:
    """The scores on sequences of that length, by name."""
    named = {
        f"{name.removesuffix('_se')}@{length}{'_se' if name.endswith('_se') else ''}": value
        for name, value in scores.evaluation._asdict().items()
        if name != "sequences"
    }
    return named | {
        f"accuracy@{length}[{low}-{high}]": value for (low, high), value in scores.accuracy_by_position(BUCKETS).items()
    }


def without_value(scores: Mapping[str, float | None]) -> list[str]:
    """The metrics that have no finite number, standard errors and parts of a sequence left out."""
    plain = {name: value for name, value in scores.items() if not name.endswith(("_se", "]"))}
    return [name for name, value in plain.items() if value is None or not math.isfinite(value)]


def _first(data: Batch, sequences: int) -> Batch:
    return Batch(*(tensor[:sequences] for tensor in data))


def _most_problems(config: EvaluationConfig) -> int:
    return max(config.problems, config.curve_problems)


def out_of_reach(model: nn.Module, config: EvaluationConfig) -> list[int]:
    """The lengths for which the model has no positions."""
    limit = longest_context(model)
    return [length for length in config.lengths if limit is not None and length > limit]


def remarks(model: nn.Module, config: EvaluationConfig) -> list[str]:
    """What is left out, worth recording with the run."""
    limit = longest_context(model)
    return [
        f"evaluation.lengths={length}: not evaluated, the model has {limit} positions"
        for length in out_of_reach(model, config)
    ]


def check(task: Task, config: EvaluationConfig) -> None:
    """Raise ValueError for a length at which the task has no sequences, and for more problems than are held out."""
    for length in config.lengths:
        if length < 1:
            raise ValueError(f"evaluation.lengths={length}: must be at least 1")
        if config.lengths.count(length) > 1:
            raise ValueError(f"evaluation.lengths={length}: given more than once")
        try:
            check_held_out(task.with_length(length), config)
        except (ValueError, AttributeError) as error:
            raise ValueError(f"evaluation.lengths={length}: not possible with this task ({error})") from error
    for key in ("problems", "curve_problems"):
        asked = getattr(config, key)
        if isinstance(task, Scored) and isinstance(task, HeldOut) and asked > task.held_out:
            raise ValueError(
                f"evaluation.{key}={asked}: the task keeps only about {task.held_out} different problems for "
                f"evaluation; use evaluation.{key}={task.held_out} or larger problems"
            )


def final_metrics(task: Task, config: EvaluationConfig) -> list[str]:
    """The names of the final metrics that a run of this task records, standard errors and counts left out."""
    names = ["loss", "accuracy"]
    names += [f"{name}@{length}" for length in config.lengths for name in names[:2]]
    names += ["exact_match"] * (isinstance(task, Scored) and config.problems > 0)
    return [f"eval/{name}" for name in names]

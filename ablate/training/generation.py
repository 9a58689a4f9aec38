"""Text from a trained model, token by token: greedy or sampled, many prompts at once, with or without a cache.

Prompts of different lengths stand side by side from position 0 on, as in training: at each step every sequence takes
its next token, from its prompt while that lasts and then from the model. So nothing is padded, and every position
scheme sees each sequence as if it were alone.

A context of C tokens is kept like this: n known tokens are read from token s on, s = 0 while n <= C, else the smallest
multiple of h = max(1, floor(C / 2)) with n - s <= C. That is, when the context is full its older half is dropped; the
positions start anew at s, and the cache with them. With and without cache the model reads the same tokens.

Each prompt has a random stream of its own (`seeds`), so a sampled text does not depend on the other prompts.

A token is chosen among finite numbers: where the largest logit of a text that takes one is NaN or infinite, there is no
likeliest token, and no text.

Shape suffixes: B prompts, N tokens of the longest text, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import nn

from ablate.models.base import CachedModel
from ablate.training.evaluation import evaluation_mode
from ablate.training.seeds import torch_generator


class NotFiniteError(ValueError):
    """The model's output holds NaN or infinity, so no token can be chosen."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Tokens drawn from softmax(logits / temperature), of the `top_k` likeliest only where that is given.

    Raises ValueError for a temperature that is not above 0 and a top_k below 1.
    """

    seed: int = 0
    temperature: float = 1.0
    top_k: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature < float("inf"):
            raise ValueError(f"temperature={self.temperature}: must be above 0; greedy takes the likeliest token")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k={self.top_k}: must be at least 1")

    def choose(self, logits_BV: torch.Tensor, uniform_B: torch.Tensor) -> torch.Tensor:
        """The token of each row whose share of the line from 0 to 1 holds its number; int64 [B].

        Any token for a row of NaN, which is that of a text that takes none.
        """
        logits_BV = logits_BV.double()
        scores_BV = (logits_BV - logits_BV.amax(-1, keepdim=True)) / self.temperature  # else a small one overflows
        if self.top_k is not None and self.top_k < scores_BV.shape[-1]:
            best_BK = scores_BV.topk(self.top_k)
            scores_BV = torch.full_like(scores_BV, -torch.inf).scatter(-1, best_BK.indices, best_BK.values)
        ends_BV = scores_BV.softmax(-1).cumsum(-1)
        chosen_B = torch.searchsorted(ends_BV, uniform_B[:, None] * ends_BV[:, -1:], right=True)[:, 0]
        return chosen_B.clamp(max=ends_BV.shape[-1] - 1)


def generate(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    tokens: int,
    *,
    sampling: Sampling | None = None,
    context: int | None = None,
    stop: int | None = None,
    cached: bool = True,
    between: Callable[[], None] = lambda: None,
) -> list[list[int]]:
    """Continue each prompt by up to `tokens` token ids; greedy without `sampling`.

    A text ends early with the token `stop`, which is then its last. `context` is the most tokens the model reads at a
    time, None for no limit but its own. A model without a cache is read from the start of its context each time, as is
    any with `cached=False`. `between` is called before each token; what it raises is passed on. Raises ValueError for
    no prompt, an empty one, and numbers below 1 or beyond the model's, and NotFiniteError where no token can be chosen.
    """
    limit = longest_context(model)
    _check(prompts, tokens, context, limit)
    device = next(model.parameters()).device
    texts = _Texts(prompts, tokens, stop, device)
    choose = _greedy if sampling is None else sampling.choose
    uniform_BN = _uniform(sampling, len(prompts), tokens, device)
    reader = _Reader(model, context or limit, cached=cached and isinstance(model, CachedModel))
    with evaluation_mode(model), torch.no_grad():
        while texts.growing():
            between()
            logits_BV = reader.next_logits(texts.known())
            texts.check(logits_BV)
            texts.add(choose(logits_BV, texts.pick(uniform_BN)))
    return texts.continuations()


def longest_context(model: nn.Module) -> int | None:
    """The most tokens the model can read at a time; None where it has no limit of its own."""
    return model.context if isinstance(model, CachedModel) else None


def window_start(known: int, context: int | None) -> int:
    """The first token that is read when so many are known (see the module's docstring)."""
    if context is None or known <= context:
        return 0
    half = max(1, context // 2)
    return -(-(known - context) // half) * half


class _Reader:
    """Gives the model what it may see, and each token only once where it remembers."""

    def __init__(self, model: nn.Module, context: int | None, *, cached: bool) -> None:
        self.model, self.context, self.cached = model, context, cached
        self.begin = self.read = 0
        self.cache = cast(CachedModel, model).new_cache() if cached else None

    def next_logits(self, known_BN: torch.Tensor) -> torch.Tensor:
        """Logits [B, V] of the token after the known ones."""
        length = known_BN.shape[1]
        begin = window_start(length, self.context)
        if not self.cached:
            return cast(torch.Tensor, self.model(known_BN[:, begin:])[:, -1])
        if begin != self.begin:
            self.begin = self.read = begin
            self.cache = cast(CachedModel, self.model).new_cache()
        logits_BNV = self.model(known_BN[:, self.read :], self.cache)
        self.read = length
        return cast(torch.Tensor, logits_BNV[:, -1])


class _Texts:
    """Prompts and what was added to them, side by side; `length` tokens of each are known."""

    def __init__(self, prompts: Sequence[Sequence[int]], tokens: int, stop: int | None, device: torch.device) -> None:
        self.stop = stop
        self.prompts_B = torch.tensor([len(prompt) for prompt in prompts], device=device)
        self.ends_B = self.prompts_B + tokens
        self.length = min(len(prompt) for prompt in prompts)
        self.tokens_BN = torch.zeros(len(prompts), int(self.ends_B.max()), dtype=torch.int64, device=device)
        for row, prompt in zip(self.tokens_BN, prompts, strict=True):
            row[: len(prompt)] = torch.tensor(prompt, device=device)

    def growing(self) -> bool:
        """Whether some text has not come to its end."""
        return self.length < int(self.ends_B.max())

    def known(self) -> torch.Tensor:
        """The known tokens, [B, length]."""
        return self.tokens_BN[:, : self.length]

    def check(self, logits_BV: torch.Tensor) -> None:
        """Raise NotFiniteError when a text that takes its next token from the model would have none to take."""
        taking_B = (self.length >= self.prompts_B) & (self.length < self.ends_B)
        if bool((taking_B & ~logits_BV.amax(-1).isfinite()).any()):
            raise NotFiniteError(f"the model's output is not finite (NaN or inf) after {self.length} tokens of a text")

    def pick(self, uniform_BN: torch.Tensor) -> torch.Tensor:
        """The random number of each text's next token, [B]; any number while its prompt lasts."""
        places_B = (self.length - self.prompts_B).clamp(0, uniform_BN.shape[1] - 1)
        return uniform_BN.gather(1, places_B[:, None])[:, 0]

    def add(self, chosen_B: torch.Tensor) -> None:
        """Add a token to every text, that of its prompt while it lasts."""
        in_prompt_B = self.length < self.prompts_B
        self.tokens_BN[:, self.length] = torch.where(in_prompt_B, self.tokens_BN[:, self.length], chosen_B)
        self.length += 1
        if self.stop is not None:
            stopped_B = ~in_prompt_B & (chosen_B == self.stop) & (self.length < self.ends_B)
            self.ends_B = torch.where(stopped_B, self.length, self.ends_B)

    def continuations(self) -> list[list[int]]:
        """What was added to each prompt."""
        bounds = zip(self.tokens_BN.tolist(), self.prompts_B.tolist(), self.ends_B.tolist(), strict=True)
        return [row[begin:end] for row, begin, end in bounds]


def _greedy(logits_BV: torch.Tensor, uniform_B: torch.Tensor) -> torch.Tensor:
    return logits_BV.argmax(-1)


def _uniform(sampling: Sampling | None, prompts: int, tokens: int, device: torch.device) -> torch.Tensor:
    """A number in [0, 1) for each token of each text, float64 [B, tokens]; zeros when nothing is drawn."""
    if sampling is None:
        return torch.zeros(prompts, tokens, dtype=torch.float64, device=device)
    streams = [torch_generator(sampling.seed, "generation", prompt) for prompt in range(prompts)]
    return torch.stack([torch.rand(tokens, dtype=torch.float64, generator=stream) for stream in streams]).to(device)


def _check(prompts: Sequence[Sequence[int]], tokens: int, context: int | None, limit: int | None) -> None:
    if not prompts:
        raise ValueError("prompts: there are none; give at least one")
    if not all(len(prompt) for prompt in prompts):
        raise ValueError("prompt='': is empty; give it at least one token")
    if tokens < 1:
        raise ValueError(f"tokens={tokens}: must be at least 1")
    if context is not None and context < 1:
        raise ValueError(f"context={context}: must be at least 1")
    if context is not None and limit is not None and context > limit:
        raise ValueError(f"context={context}: the model has {limit} positions; use context={limit}")

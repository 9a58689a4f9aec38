"""What a task is to the rest of the house: a vocabulary and a source of batches, drawn from a generator it is given.

Also here: what every task needs to say in the same way, text to token ids and back and the refusal of bad sizes. How
problems are kept apart for evaluation stands in `splits`.

Shape suffixes: B sequences, T positions, W tokens (one more than positions).
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Split = Literal["train", "eval"]
"""Which problems a batch is made of. A task with `held_out` problems never shows those under "train"."""

IGNORED = -1
"""The target of a position that does not count towards loss or accuracy."""


class Batch(NamedTuple):
    """Token ids to read and to predict, both int64 of shape [B, T]; targets hold IGNORED where none counts."""

    inputs_BT: torch.Tensor
    targets_BT: torch.Tensor


@runtime_checkable
class Task(Protocol):
    """A sequence task.

    A task's constructor takes keyword-only parameters, exactly those of its YAML, and raises ValueError naming the
    parameter and the rule when no sequence of that size could have a target.
    """

    @property
    def alphabet(self) -> str:
        """The characters that token ids 0, 1, ... stand for; its length is the vocabulary."""
        ...

    @property
    def seq_len(self) -> int:
        """The number of positions T of every batch."""
        ...

    def batch(self, generator: np.random.Generator, size: int, split: Split = "train") -> Batch:
        """Draw `size` sequences. The same generator state gives the same batch; no other randomness is used."""
        ...

    def with_length(self, seq_len: int) -> "Task":
        """The same task, alphabet included, at another length; ValueError where none of that length is possible.

        Where the length of a problem is drawn and `seq_len` is larger, all problems are longer than any of this task.
        """
        ...


@runtime_checkable
class HeldOut(Protocol):
    """A task that keeps problems back for evaluation, the same ones for every seed."""

    @property
    def held_out(self) -> int:
        """How many different problems only "eval" shows: a tenth of all, give or take chance."""
        ...


@runtime_checkable
class Scored(Protocol):
    """A task whose answers can be generated token by token and judged whole."""

    @property
    def stop(self) -> int:
        """The token that ends an answer."""
        ...

    @property
    def most_tokens(self) -> int:
        """No right answer has more tokens than this, the stop token included."""
        ...

    def prompts(self, generator: np.random.Generator, size: int) -> list[list[int]]:
        """Draw `size` questions, as tokens, from the problems that are held out."""
        ...

    def is_right(self, prompt: Sequence[int], generated: Sequence[int]) -> bool:
        """Judge what was generated after a prompt; what follows the first stop token does not matter."""
        ...


def encode(alphabet: str, text: str) -> list[int]:
    """Token ids of a text; ValueError names the characters that the alphabet lacks."""
    ids = {character: i for i, character in enumerate(alphabet)}
    if unknown := sorted(set(text) - set(alphabet)):
        raise ValueError(f"the alphabet has no {', '.join(map(repr, unknown))}: it is {alphabet!r}")
    return [ids[character] for character in text]


def decode(alphabet: str, tokens: Iterable[int]) -> str:
    """The text that token ids stand for."""
    return "".join(alphabet[token] for token in tokens)


def alphabet_fingerprint(alphabet: str) -> str:
    """16 hexadecimal digits that tell which characters, in which order, a model's tokens stand for."""
    return hashlib.sha256(alphabet.encode()).hexdigest()[:16]


def until_stop(generated: Sequence[int], stop: int) -> list[int] | None:
    """The tokens before the first stop token, or None where none came."""
    tokens = [int(token) for token in generated]
    return tokens[: tokens.index(stop)] if stop in tokens else None


def to_batch(tokens_BW: Ints, counted_BW: Bools) -> Batch:
    """Inputs are all tokens but the last, targets all but the first; a token counts as target where `counted_BW`."""
    targets_BT = np.where(counted_BW, tokens_BW, IGNORED)[:, 1:]
    return Batch(to_tensor(tokens_BW[:, :-1]), to_tensor(targets_BT))


def to_tensor(tokens: Ints) -> torch.Tensor:
    """The same numbers as a contiguous tensor."""
    return torch.from_numpy(np.ascontiguousarray(tokens))


def require_at_least(key: str, value: int, smallest: int, reason: str) -> None:
    """Raise ValueError when a parameter is too small."""
    if value < smallest:
        raise ValueError(f"task.{key}={value}: must be at least {smallest} ({reason}); use task.{key}={smallest}")


def require_between(key: str, value: int, smallest: int, largest: int, reason: str) -> None:
    """Raise ValueError when a parameter lies outside what it may be."""
    if not smallest <= value <= largest:
        nearest = min(max(value, smallest), largest)
        raise ValueError(
            f"task.{key}={value}: must be between {smallest} and {largest} ({reason}); use task.{key}={nearest}"
        )


def require_choice(key: str, value: str, choices: Sequence[str]) -> None:
    """Raise ValueError when a parameter is none of its choices."""
    if value not in choices:
        raise ValueError(f"task.{key}={value}: must be {' or '.join(choices)}")

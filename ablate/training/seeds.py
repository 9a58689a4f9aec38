"""Named random streams: the one module that turns a seed into randomness. Nothing is drawn here.

A stream is a seed and a name such as ("data", 17). The name is hashed with the seed (SHA-256 of their JSON), so streams
of different names are unrelated, no stream depends on how far another was read, and step 17 can be drawn without steps
1 to 16. The hash is the same on every platform and in every process.
"""

import hashlib
import json

import numpy as np
import torch

from ablate.models.base import Model


def numpy_generator(seed: int, *stream: str | int) -> np.random.Generator:
    """A fresh numpy generator at the start of the stream."""
    return np.random.Generator(np.random.PCG64(_key(seed, stream)))


def torch_generator(seed: int, *stream: str | int) -> torch.Generator:
    """A fresh CPU generator at the start of the stream."""
    return torch.Generator().manual_seed(_torch_seed(seed, stream))


def seed_dropout(seed: int, step: int) -> None:
    """Put torch's own generators at the start of the dropout stream of one step.

    Dropout, also the one inside `scaled_dot_product_attention`, takes no generator: it draws from torch's global one.
    So this is set before each step, and who calls it restores it (`torch.random.fork_rng`). `torch.manual_seed` would
    do the same but formats a stack trace on each call while CUDA is not in use.
    """
    value = _torch_seed(seed, ("dropout", step))
    torch.default_generator.manual_seed(value)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(value)


def initialise(model: Model, seed: int) -> None:
    """Set every parameter from the stream of its own name, so models start equal in what they have in common."""
    model.initialise(lambda name: torch_generator(seed, "init", name))


def _key(seed: int, stream: tuple[str | int, ...]) -> int:
    text = json.dumps([seed, *stream])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")


def _torch_seed(seed: int, stream: tuple[str | int, ...]) -> int:
    """63 bits: what `manual_seed` takes as a non-negative number on every device."""
    return _key(seed, stream) & (2**63 - 1)

"""Tasks that go wrong on purpose, for tests of what a sweep survives; options of tests/faulty_conf."""

import os
import signal
import time
from typing import Literal

import numpy as np
import torch

from ablate.tasks.base import Batch, Split


class Faulty:
    """Repeats random letters; at batch `at` it raises, exits, kills itself, asks for too much memory or tells its GPUs.

    One that waits does so before every batch from `at` on, for `seconds`: steps of one length on any machine.
    """

    def __init__(
        self,
        *,
        seq_len: int,
        how: Literal["fine", "raise", "exit", "kill", "memory", "tell", "wait"],
        at: int,
        seconds: float = 0.2,
    ) -> None:
        self._seq_len, self.how, self.at, self.seconds, self.drawn = seq_len, how, at, seconds, 0

    @property
    def alphabet(self) -> str:
        return "ab"

    @property
    def seq_len(self) -> int:
        return self._seq_len

    def batch(self, generator: np.random.Generator, size: int, split: Split = "train") -> Batch:
        self.drawn += 1
        if self.drawn == self.at:
            self._fail()
        letters = torch.from_numpy(generator.integers(0, 2, (size, self._seq_len + 1)))
        return Batch(letters[:, :-1], letters[:, 1:])

    def _fail(self) -> None:
        if self.how == "raise":
            raise RuntimeError("raised on purpose")
        if self.how == "exit":
            os._exit(9)
        if self.how == "kill":  # as the kernel does when memory is short
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "memory":
            torch.empty(2**50)
        if self.how == "tell":
            raise RuntimeError(f"sees {os.environ.get('CUDA_VISIBLE_DEVICES')!r}")
        if self.how == "wait":
            time.sleep(self.seconds)
            self.drawn -= 1

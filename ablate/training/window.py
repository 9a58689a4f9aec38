"""The training steps since the last record: losses and gradient norms, left on the device until they are wanted.

Reading a number from a GPU waits for it, so the loop adds tensors here and reads them once per record.
"""

import math
from typing import Any, NamedTuple, Self

import torch


class NotFinite(NamedTuple):
    """The first step of a window whose loss or gradient norm is no finite number."""

    step: int
    message: str


class Window:
    """Scalar tensors per step, with the number of tokens each mean loss was taken over."""

    def __init__(self) -> None:
        self._losses: list[torch.Tensor] = []
        self._norms: list[torch.Tensor] = []
        self._counts: list[int] = []

    def add(self, loss: torch.Tensor, norm: torch.Tensor, count: int) -> None:
        """Add a step: its mean loss over `count` tokens (0 dimensions, detached) and its gradient norm."""
        self._losses.append(loss)
        self._norms.append(norm)
        self._counts.append(count)

    def values(self) -> dict[str, float | None]:
        """Loss, the mean over all counted tokens (None when there are none), and gradient norm, the mean over steps."""
        losses, norms = self._read()
        total = sum(self._counts)
        summed = math.fsum(loss * count for loss, count in zip(losses, self._counts, strict=True))
        return {"loss": summed / total if total else None, "grad_norm": math.fsum(norms) / len(norms)}

    def not_finite(self, last_step: int) -> NotFinite | None:
        """The first step that diverged, if one did; `last_step` is the number of the step added last."""
        losses, norms = self._read()
        first_step = last_step - len(losses) + 1
        for step, (loss, norm) in enumerate(zip(losses, norms, strict=True), first_step):
            for name, value in (("training loss", loss), ("gradient norm", norm)):
                if not math.isfinite(value):
                    return NotFinite(step, f"{name} is {value} at step {step}")
        return None

    def state(self) -> dict[str, Any]:
        """Plain lists, for a checkpoint. Python floats hold float32 numbers exactly."""
        losses, norms = self._read()
        return {"losses": losses, "norms": norms, "counts": list(self._counts)}

    @classmethod
    def from_state(cls, state: dict[str, Any], device: torch.device) -> Self:
        """The window that `state` was taken from."""
        window = cls()
        window._losses = [torch.tensor(value, device=device) for value in state["losses"]]
        window._norms = [torch.tensor(value, device=device) for value in state["norms"]]
        window._counts = list(state["counts"])
        return window

    def _read(self) -> tuple[list[float], list[float]]:
        if not self._losses:
            return [], []
        losses, norms = torch.stack([torch.stack(self._losses), torch.stack(self._norms)]).tolist()
        return losses, norms

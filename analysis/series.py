"""One metric along one run, as compact arrays. How logs are read is in `analysis.curves`, what is kept in `cache`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]


class Series(NamedTuple):
    """One metric along one run: `step` ascending, each once; NaN where a value or a number of tokens is not known."""

    step: Steps
    tokens: Floats
    value: Floats

    def at(self, where: Steps | npt.NDArray[np.bool_] | slice) -> "Series":
        """The part at these places."""
        return Series(self.step[where], self.tokens[where], self.value[where])


def series_of(step: Sequence[int], tokens: Sequence[float | None], value: Sequence[float | None]) -> Series:
    """Sort what was logged by step; of a step logged twice (by a resumed run) the later stands."""
    steps = np.array(step, dtype=np.int64)
    last = len(steps) - 1 - np.unique(steps[::-1], return_index=True)[1]
    return Series(steps, np.array(tokens, dtype=np.float64), np.array(value, dtype=np.float64)).at(last)


EMPTY = series_of([], [], [])

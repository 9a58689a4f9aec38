"""Constraints on what a trial may come to: `hydra.sweeper.constraints: ["parameters <= 200000", "seconds < 60"]`.

METRIC OP NUMBER, the metric any that an objective may be; its value is the mean over the trial's seeds. Nothing is
evaluated as code. Optuna takes a constraint as met when its number is at most 0, so `<` and `<=` are the same to it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ablate.config.errors import ConfigError, nearest

FORM = re.compile(
    r"\s*(?P<metric>[^\s<>=]+)\s*(?P<sign><=|>=|<|>)\s*(?P<limit>[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)\s*", re.I
)


class Constraint(NamedTuple):
    """An upper (`sign` 1) or lower (-1) limit of a metric."""

    metric: str
    sign: int
    limit: float

    def excess(self, value: float) -> float:
        """Return by how much a value is beyond the limit; at most 0 when it is not."""
        return self.sign * (value - self.limit)

    def __str__(self) -> str:
        """Return the constraint as it is written."""
        return f"{self.metric} {'<=' if self.sign > 0 else '>='} {self.limit:g}"


def read_constraints(texts: Sequence[str], known: Sequence[str]) -> list[Constraint]:
    """Return the constraints of these texts on known metrics; raises ConfigError."""
    return [_read(str(text), known) for text in texts]


def _read(text: str, known: Sequence[str]) -> Constraint:
    found = FORM.fullmatch(text)
    if found is None:
        raise ConfigError(f"hydra.sweeper.constraints={text}: must be METRIC <= NUMBER, such as 'parameters <= 200000'")
    if found["metric"] not in known:
        raise ConfigError(
            f"hydra.sweeper.constraints={text}: no final metric of these runs; {nearest(found['metric'], known)}"
        )
    return Constraint(found["metric"], 1 if found["sign"][0] == "<" else -1, float(found["limit"]))

"""What a sweep declares of its question (`sweep.metric` to `sweep.reference`) and of its end (`sweep.until`), checked.

Only what can be known before there is a result. What the values mean for a comparison is in the analysis.
"""

import math
from collections.abc import Sequence
from typing import Any

from ablate.config.errors import ConfigError, nearest
from ablate.config.schema import RunConfig, SweepConfig, Transform, Until
from ablate.directions import direction_of

BLOCK, MOST_SEEDS = 5, 40
"""Seeds per block and at most, when a sweep goes on until decided and does not say."""


def check(sweep: SweepConfig, metrics: Sequence[str]) -> None:
    """Raise ConfigError for a value that no comparison could use, or that would have no effect.

    `metrics` are the final metrics that a run records.
    """
    if sweep.metric not in metrics:
        raise ConfigError(f"sweep.metric={sweep.metric}: no final metric of this run; {nearest(sweep.metric, metrics)}")
    if sweep.threshold is not None and not math.isfinite(sweep.threshold):
        raise ConfigError(f"sweep.threshold={sweep.threshold}: must be a finite number")
    _check_margin(sweep)
    if sweep.until is Until.decided and sweep.direction is None and direction_of(sweep.metric) is None:
        rule = "the name does not say which way is better; give sweep.direction=lower or sweep.direction=higher"
        raise ConfigError(f"sweep.metric={sweep.metric}: {rule}")
    for key in ("block", "max_seeds"):
        value = getattr(sweep, key)
        if value is not None and sweep.until is Until.planned:
            raise ConfigError(f"sweep.{key}={value}: has no effect without sweep.until=decided")
        if value is not None and value < 1:
            raise ConfigError(f"sweep.{key}={value}: must be at least 1")


def _check_margin(sweep: SweepConfig) -> None:
    if sweep.margin is None:
        return
    text = str(sweep.margin).strip()
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ConfigError(f"sweep.margin={text}: must be a number above 0, such as 0.01, or per cent, such as 2%")
    if sweep.transform is Transform.log and not text.endswith("%"):
        raise ConfigError(f"sweep.margin={text}: must be in per cent (2%) with sweep.transform=log")


def declared(sweep: SweepConfig) -> dict[str, Any]:
    """Return the question as a plan keeps it."""
    return {
        "metric": sweep.metric,
        "direction": sweep.direction.value if sweep.direction else None,
        "transform": sweep.transform.value,
        "threshold": sweep.threshold,
        "margin": sweep.margin,
        "reference": sweep.reference,
    }


def seed_pool(config: RunConfig, seeds: list[int]) -> list[int]:
    """Return all seeds that a sweep may use, in order: those given, or with `until=decided` those from the first on.

    Raises ConfigError when more are asked for than given.
    """
    sweep = config.sweep
    if sweep.until is Until.planned:
        return seeds
    if len(seeds) == 1:
        return list(range(seeds[0], seeds[0] + (sweep.max_seeds or MOST_SEEDS)))
    most = sweep.max_seeds or len(seeds)
    if most > len(seeds):
        raise ConfigError(f"sweep.max_seeds={most}: only {len(seeds)} seeds are given; leave seed= out, or give more")
    return seeds[:most]

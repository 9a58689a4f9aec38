"""Hydra's hook before a single run: refuse a config that cannot be run while there is no folder yet.

A sweep checks its cells itself (`sweep.plan`).
"""

from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from ablate.config import ablation, explain, preflight
from ablate.config.errors import ConfigError, refuse
from ablate.config.register import plain, to_run_config


class Preflight(Callback):
    """Ends the process with exit code 2 (Hydra turns any other exception of a callback into a warning)."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        """Check the run's config and its folder."""
        overrides = list(config.hydra.overrides.task)
        try:
            preflight.check(to_run_config(config))
            ablation.check(config, overrides, plain(config))
            preflight.check_writable(Path(str(config.hydra.run.dir)))
        except (ConfigError, *explain.EXPECTED) as error:
            refuse(explain.explain(error, overrides))

"""Hydra's hook before a run or sweep: refuse what cannot be run while there is no folder yet.

A sweep checks its cells itself (`sweep.plan`).
"""

import sys
import traceback
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from ablate.config import ablation, explain, preflight
from ablate.config.errors import ConfigError, refuse
from ablate.config.register import check_stands_alone, given_overrides, plain, to_run_config
from ablate.config.schema import Until

OUR_SWEEPERS = "hydra_plugins.ablate_"


class Preflight(Callback):
    """Ends the process where something is wrong: Hydra turns any other exception of a callback into a warning."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        """Check a single run's config and its folder."""
        overrides = given_overrides(config.hydra)
        try:
            _check_run(config, overrides)
        except (ConfigError, *explain.EXPECTED) as error:
            refuse(explain.explain(error, overrides))
        except Exception:
            traceback.print_exc()
            sys.exit(1)
        if config.sweep.dry_run:
            sys.stdout.write(f"would train {config.hydra.run.dir}\n")
            sys.exit(0)

    def on_multirun_start(self, config: DictConfig, **_: Any) -> None:
        """Refuse a sweeper that neither checks nor records what it does."""
        if not str(config.hydra.sweeper.get("_target_")).startswith(OUR_SWEEPERS):
            chosen = config.hydra.runtime.choices.get("hydra/sweeper")
            refuse(f"hydra/sweeper={chosen}: checks and records nothing; use hydra/sweeper=grid or optuna")


def _check_run(config: DictConfig, overrides: list[str]) -> None:
    if config.runtime.sweep_id is not None:
        raise ConfigError(f"runtime.sweep_id={config.runtime.sweep_id}: is set by a sweep for its runs, leave it out")
    check_stands_alone(config)
    typed = to_run_config(config)
    preflight.check(typed)
    if typed.sweep.until is Until.decided:
        raise ConfigError("sweep.until=decided: adds seeds to a sweep; use -m and name the variants to compare")
    ablation.check(config, overrides, plain(config))
    preflight.check_writable(Path(str(config.hydra.run.dir)))

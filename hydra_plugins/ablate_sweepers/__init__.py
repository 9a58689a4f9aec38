"""The thin adapters through which Hydra 1.3 finds ablate's sweepers; it accepts plugins from this namespace only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ablate.sweep.search.settings import Settings


class HydraParts(Sweeper):
    """Keeps what Hydra supplies, for the sweepers below."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra supplies and make the configured launcher."""
        from hydra.core.plugins import Plugins  # noqa: PLC0415  (Hydra imports this module while it makes Plugins)

        from ablate.sweep import options  # noqa: PLC0415  (as below)
        from ablate.sweep.composing import SharingLoader  # noqa: PLC0415  (as below)

        self.config = config
        options.check(options.resolved(config))
        loader: Any = SharingLoader(hydra_context.config_loader)
        self.hydra_context = HydraContext(config_loader=loader, callbacks=hydra_context.callbacks)
        self.launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=self.hydra_context, task_function=task_function, config=config
        )


class GridSweeper(HydraParts):
    """Hands Hydra's parts to `ablate.sweep.grid`, which does the work; `params` are swept as if on the command line."""

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        self.params = params or {}

    def sweep(self, arguments: list[str]) -> Any:
        """Run the sweep; ends the process with the exit code when something failed."""
        from ablate.sweep.grid import run_grid  # noqa: PLC0415  (imports torch; Hydra imports this module at every start)
        from ablate.sweep.plan import with_params  # noqa: PLC0415  (as below)

        assert self.hydra_context is not None
        assert self.config is not None
        both = with_params(arguments, self.params)
        run_grid(self.hydra_context.config_loader, self.launcher, self.config, both)


@dataclass(kw_only=True)
class OptunaSweeper(Settings, HydraParts):
    """Hands Hydra's parts to `ablate.sweep.search.search`, which does the work.

    Its fields are the keys of hydra.sweeper.
    """

    def sweep(self, arguments: list[str]) -> Any:
        """Run the search; ends the process with the exit code when something failed."""
        from ablate.sweep.search.search import run_search  # noqa: PLC0415  (as above, and Optuna)

        assert self.hydra_context is not None
        assert self.config is not None
        run_search(self.hydra_context.config_loader, self.launcher, self.config, arguments)


@dataclass(kw_only=True)
class TuneSweeper(OptunaSweeper):
    """Hands Hydra's parts to `ablate.sweep.tuning.tuner`, which does the work."""

    report_seeds: int | list[int] = 10

    def sweep(self, arguments: list[str]) -> Any:
        """Run the tuning; ends the process with the exit code when something failed."""
        from ablate.sweep.tuning.tuner import run_tuning  # noqa: PLC0415  (as above)

        assert self.hydra_context is not None
        assert self.config is not None
        run_tuning(self.hydra_context.config_loader, self.launcher, self.config, arguments)

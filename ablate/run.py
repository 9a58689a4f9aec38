"""The entry point: `python -m ablate.run` trains one run, `-m` a sweep.

Reads the command line, lets Hydra compose, and tells every refusal in one line with exit code 2 before anything is
written. What a run does is in `job`, what a sweep does in `sweep.grid`.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from ablate import (
    provenance,  # noqa: F401  (notes the code before any of it is imported)
    stdio,
)
from ablate.config import arguments, explain
from ablate.config.errors import ConfigError, refuse
from ablate.config.file_settings import settings_of_files
from ablate.config.register import config_dir, given_overrides, plain, to_run_config
from ablate.records import RunFolder, Status, StudyFolder

FAILED, INTERRUPTED = 1, 130


def train(config: DictConfig) -> dict[str, Any]:
    """One job, in whatever process a launcher chose; returns its final metrics, {} when there are none."""
    from ablate import isolation, job, worker  # noqa: PLC0415  (torch: not needed to plan, to complete a word or to print help)
    from ablate.console import RunConsole  # noqa: PLC0415

    stdio.make_safe()  # a worker's streams are its own
    typed, values = to_run_config(config), plain(config)
    folder = RunFolder(Path(HydraConfig.get().runtime.output_dir))
    context = _context(config, values, folder)
    console = RunConsole(typed, quiet=context.sweep is not None)
    try:
        with worker.at_work():
            done = job.perform(typed, values, folder, context, console.on_log)
    except ConfigError as error:
        refuse(str(error)) if context.sweep is None else sys.stderr.write(f"ablate: {error}\n")
        raise
    if isolation.leftovers:
        worker.leave_pool()
    console.end(done, folder)
    status = done.record.status if done.record else None
    if HydraConfig.get().mode is not RunMode.MULTIRUN and status is not Status.finished:
        raise SystemExit(INTERRUPTED if status is Status.interrupted else FAILED)
    if status in (Status.failed, Status.diverged) and typed.sweep.fail_fast and context.stop_file:
        context.stop_file.touch()
    return dict(done.record.metrics) if done.record else {}


def _context(config: DictConfig, values: dict[str, Any], folder: RunFolder) -> Any:
    """Return what the run is told about where it belongs: from its sweep's plan, or from its own command line."""
    from ablate.config.identity import cell_identity  # noqa: PLC0415
    from ablate.config.labels import factors_of, label_of  # noqa: PLC0415
    from ablate.job import Context  # noqa: PLC0415
    from ablate.sweep.plan import command_line, factors_of_record  # noqa: PLC0415

    settings = HydraConfig.get()
    files = {
        "config.yaml": OmegaConf.to_yaml(config),
        "hydra.yaml": OmegaConf.to_yaml(OmegaConf.create({"hydra": settings})),
        "overrides.yaml": OmegaConf.to_yaml(settings.overrides.task),
    }
    sweep = config.runtime.sweep_id
    if sweep is None:
        factors = factors_of(given_overrides(settings))
        label = label_of(factors) if factors else str(settings.runtime.choices.get("attention"))
        return Context(label=label, factors=factors, command=command_line(), hydra_files=files)
    study = StudyFolder(folder.path.parents[2])
    plan = study.read_sweep(sweep)
    label, found = factors_of_record(plan, cell_identity(values))
    judged = {}
    if plan.search is not None and plan.search["pruner"] is not None:
        from ablate.sweep.search.judge import judge_of  # noqa: PLC0415  (Optuna: only runs that may be pruned need it)

        judged["should_prune"] = judge_of(plan, cell_identity(values), int(config.seed))
    return Context(
        label=label,
        factors=dict(found),
        command=plan.command,
        sweep=sweep,
        stop_file=study.stop_file(sweep),
        hydra_files=files,
        **judged,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; the process ends with the exit codes of the README."""
    stdio.make_safe()
    given = list(sys.argv[1:] if argv is None else argv)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then raises what it would print, and we say it in one line
    conf, overrides = config_dir(), given
    try:
        folders = [conf, *arguments.config_dirs(given)]
        arguments.given[:] = given
        options, overrides = arguments.apart(given)
        explain.check_options(
            [*options, *(one for one in overrides if one.startswith("-"))],
            [one for one in overrides if not one.startswith("-")],
        )
        more = settings_of_files(overrides, folders, multirun=arguments.is_multirun(options))
        sys.argv[1:] = arguments.translate([*given, *more], folders)
        arguments.given[:] = given
        overrides = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
        explain.check_hydra_keys(overrides)
        hydra.main(version_base="1.3", config_path=str(conf), config_name="config")(train)()
    except (ConfigError, *explain.EXPECTED) as error:
        refuse(explain.explain(error, overrides))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:
        sys.stderr.write(f"ablate: {error}\n")
        sys.exit(FAILED)


if __name__ == "__main__":
    # The function that jobs run must belong to an importable module, not to __main__, for worker processes to find it.
    from ablate.run import main as entry

    entry()

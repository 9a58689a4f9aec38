"""Everything that can be known to be wrong before a run starts, told in one line each.

Three layers: the typed sections' values, every `_target_` node against its constructor (`signature`), and a trial build
in which the constructors judge their own values (task and model for real, optimiser over one stand-in).
"""

import contextlib
import errno
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hydra.errors import InstantiationException

from ablate import isolation
from ablate.config import build, question
from ablate.config.errors import ConfigError
from ablate.config.schema import RunConfig
from ablate.config.signature import check_node, modules_of
from ablate.training import scoring
from ablate.training.evaluation import check_held_out

LEAVES = ("model", "task", "optimizer", "schedule")
AT_LEAST_ONE = (
    "training.steps",
    "training.batch_size",
    "training.eval_every",
    "training.log_every",
    "evaluation.sequences",
    "evaluation.curve_sequences",
    "evaluation.batch_size",
    "runtime.threads",
    "runtime.runs_per_device",
)
AT_LEAST_ZERO = (
    "seed",
    "evaluation.problems",
    "evaluation.curve_problems",
    "evaluation.seed",
    "seeds.init",
    "seeds.data",
    "seeds.dropout",
    "runtime.checkpoint_every",
)


def check(config: RunConfig, *, device_is_here: bool = True) -> list[str]:
    """Check one run's config; raises ConfigError, returns warnings worth recording.

    `device_is_here` says that the run will train on this machine, so that its device can be looked for.
    """
    _check_values(config)
    for leaf in LEAVES:
        node = getattr(config, leaf)
        if not isinstance(node, Mapping) or "_target_" not in node:
            raise ConfigError(f"{leaf}={node!r}: must be a node with _target_; choose an option of the group '{leaf}'")
        check_node(leaf, node)
    with isolation.kept():
        _trial(config)
    if device_is_here:
        _check_device(config)
    return warnings(config)


def warnings(config: RunConfig) -> list[str]:
    """Return what is allowed but worth recording with the run."""
    found = []
    scheme = config.model.get("attention") if isinstance(config.model, Mapping) else None
    if config.rope_percentage != RunConfig().rope_percentage and "rope_percentage" not in (scheme or {}):
        found.append(f"rope_percentage={config.rope_percentage}: not applicable, the scheme rotates nothing")
    if config.evaluation.sequences < config.evaluation.curve_sequences:
        found.append("evaluation.curve_sequences is larger than evaluation.sequences; the smaller is used")
    return found + [warning for leaf in LEAVES for warning in _set_by_imports(leaf, getattr(config, leaf))]


def _set_by_imports(leaf: str, node: Any) -> list[str]:
    """Import what the node names, so that a build sets nothing by it, and return what the imports set."""
    found = []
    for module in modules_of(node):
        with contextlib.suppress(Exception):  # the build says what is wrong with it
            isolation.imported(module)
        if names := isolation.set_by_import.get(module):
            found.append(
                f"{leaf}: {module} sets {', '.join(names)} when it is imported, which is put back before a run; "
                "set it in the constructor"
            )
    return found


def _check_values(config: RunConfig) -> None:
    for key in AT_LEAST_ONE:
        _check_least(config, key, 1)
    for key in AT_LEAST_ZERO:
        _check_least(config, key, 0)
    clip = config.training.grad_clip
    if clip is not None and not clip > 0:
        raise ConfigError(f"training.grad_clip={clip}: must be above 0, or null for no clipping")
    if not 0 <= config.rope_percentage <= 1:
        raise ConfigError(f"rope_percentage={config.rope_percentage}: must lie between 0 and 1")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*", config.study):
        raise ConfigError(
            f"study={config.study!r}: a study is one folder name of letters, digits and _ . + = -; "
            f"try study={re.sub(r'[^A-Za-z0-9_.+=-]+', '_', config.study).strip('._') or 'study'}"
        )


def _check_least(config: RunConfig, key: str, least: int) -> None:
    section, _, name = key.rpartition(".")
    value = getattr(getattr(config, section) if section else config, name)
    if value is not None and value < least:
        raise ConfigError(f"{key}={value}: must be at least {least}")


def _trial(config: RunConfig) -> None:
    task = _judge("task", config.task, lambda: build.trial_task(config.task))
    _judge("task", config.task, lambda: check_held_out(task, config.evaluation))
    _judge("evaluation", {}, lambda: scoring.check(task, config.evaluation))
    question.check(config.sweep, scoring.final_metrics(task, config.evaluation))
    model = _judge("model", config.model, lambda: build.trial_model(config.model, len(task.alphabet)))
    _check_context(getattr(model, "context", None), task.seq_len)
    optimizer = _judge("optimizer", config.optimizer, lambda: build.trial_optimizer(config.optimizer))
    _judge("schedule", config.schedule, lambda: build.trial_schedule(config.schedule, optimizer))


def _check_device(config: RunConfig) -> None:
    try:
        build.choose_device(config.runtime.device)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _check_context(context: int | None, seq_len: int) -> None:
    """A model with a last position must have room for the task's sequences."""
    if context is not None and context < seq_len:
        raise ConfigError(
            f"model.attention.length={context}: must be at least task.seq_len={seq_len}, the positions of a sequence; "
            f"use model.attention.length={seq_len}"
        )


def _given(node: Mapping[str, Any]) -> str:
    values = ", ".join(f"{key}={value}" for key, value in node.items() if not key.startswith("_"))
    return f" (given {values})" if values else ""


def _judge(leaf: str, node: Mapping[str, Any], make: Callable[[], Any]) -> Any:
    """Run a constructor; its complaint becomes ours, in one line and with the leaf named."""
    try:
        return make()
    except Exception as error:  # whatever a constructor of another library raises, it is about these values
        cause: BaseException = error
        while isinstance(cause, InstantiationException) and cause.__cause__ is not None:
            cause = cause.__cause__
        text = " ".join(str(cause).split()) or type(cause).__name__
        raise ConfigError(text if "=" in text.split(":")[0] else f"{leaf}: {text}{_given(node)}") from error


def check_writable(folder: Path) -> None:
    """Check that `folder` can be made and written, without leaving anything behind; raises ConfigError."""
    try:
        existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
        if not existing.is_dir():
            raise ConfigError(f"{folder}: cannot be made, {existing} is a file")
        if max(len(os.fsencode(part)) for part in folder.parts) > os.pathconf(existing, "PC_NAME_MAX"):
            raise OSError(errno.ENAMETOOLONG, "a name in it is too long")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise PermissionError(f"no permission to write in {existing}")
        with tempfile.TemporaryDirectory(dir=existing, prefix=".ablate-check-"):
            pass
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written ({error}); choose another with runtime.output_dir=") from error

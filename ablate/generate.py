"""`python -m ablate.generate RUN --prompt TEXT`: a finished run's model continues a text.

RUN is the run's folder. The model is built from its config.yaml and takes its weights from its checkpoint; how text is
made of it is in `ablate.training.generation`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import torch
import yaml
from hydra.errors import HydraException
from omegaconf import OmegaConf
from torch import nn

from ablate import stdio
from ablate.config import trusted
from ablate.config.build import build, choose_device
from ablate.config.errors import ConfigError, nearest, refuse
from ablate.config.identity import cell_identity
from ablate.config.register import to_run_config
from ablate.config.schema import Device
from ablate.jsonfiles import RecordError
from ablate.records import RunFolder, RunRecord, Status
from ablate.tasks.base import Task, alphabet_fingerprint, decode, encode
from ablate.training import checkpoint
from ablate.training.generation import Sampling, generate, longest_context


class Trained(NamedTuple):
    """A finished run's model with its trained weights, and the task it was trained on."""

    model: nn.Module
    task: Task


def load(folder: RunFolder, device: torch.device, *, trust: bool = False) -> Trained:
    """Build a finished run's model and load what it was trained to; raises ValueError when that cannot be done.

    Unless `trust`, also when its config names anything to build that is not of this project or torch's.
    """
    record = _finished(folder)
    values = _values(folder, record)
    if not trust:
        trusted.check(values, origin=str(folder.config))
    state = checkpoint.final_model(folder, source=record.checkpoint_source)
    try:
        parts = build(to_run_config(OmegaConf.create(values)), device).parts
    except HydraException as error:
        raise ConfigError(f"{folder.config}: cannot be built ({' '.join(str(error).split())})") from error
    if record.effective.get("alphabet") not in (None, alphabet_fingerprint(parts.task.alphabet)):
        raise ConfigError(f"{folder.config}: the task's characters are not those that the run was trained on")
    try:
        parts.model.load_state_dict(state)
    except RuntimeError as error:
        raise ConfigError(f"{folder.checkpoint}: does not fit the model of {folder.config.name}") from error
    return Trained(parts.model, parts.task)


def _finished(folder: RunFolder) -> RunRecord:
    try:
        record = folder.read()
    except RecordError as error:
        raise ConfigError(str(error)) from error
    if record is None:
        raise ConfigError(f"{folder.path}: no such run; {_hint(folder.path)}")
    if record.status is not Status.finished:
        raise ConfigError(f"{folder.path}: the run is {record.status}, not finished; train it to its end first")
    return record


def _hint(path: Path) -> str:
    """Name runs below the folder, or folders beside where it should be."""
    below = sorted(str(found.parent) for depth in ("*", "*/*", "*/*/*") for found in path.glob(f"{depth}/run.json"))
    if below:
        return f"a run's folder is needed: {', '.join(below[:3])}" + (", ..." if len(below) > 3 else "")
    beside = path.absolute().parent
    names = [found.name for found in beside.iterdir() if found.is_dir()] if beside.is_dir() else []
    return f"in {path.parent}: {nearest(path.name, names)}"


def _values(folder: RunFolder, record: RunRecord) -> dict[str, Any]:
    """The run's config; raises ConfigError unless it is the one that the run was trained with."""
    try:
        values = dict(yaml.safe_load(folder.config.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, TypeError, ValueError) as error:
        raise ConfigError(f"{folder.config}: cannot be read ({' '.join(str(error).split())})") from error
    if cell_identity(values) != record.cell or values.get("seed") != record.seed:
        raise ConfigError(f"{folder.config}: not the config this run was trained with; its cell is {record.cell[:8]}")
    return values


def tokens_of(text: str, alphabet: str, *, name: str) -> list[int]:
    """The token ids of a text; raises ConfigError naming the characters that the model does not know."""
    try:
        return encode(alphabet, text)
    except ValueError as error:
        raise ConfigError(f"{name}={text!r}: {error}") from error


def texts(trained: Trained, arguments: argparse.Namespace) -> list[dict[str, str]]:
    """Each prompt with its continuation."""
    alphabet, length = trained.task.alphabet, trained.task.seq_len
    trained_context = min(length, longest_context(trained.model) or length)
    continuations = generate(
        trained.model,
        [tokens_of(prompt, alphabet, name="--prompt") for prompt in arguments.prompt],
        arguments.tokens,
        sampling=_sampling(arguments),
        context=trained_context if arguments.context is None else arguments.context,
        stop=_stop(arguments.stop, alphabet),
    )
    spelled = [decode(alphabet, tokens) for tokens in continuations]
    return [{"prompt": p, "continuation": c} for p, c in zip(arguments.prompt, spelled, strict=True)]


def _stop(text: str | None, alphabet: str) -> int | None:
    if text is None:
        return None
    if len(text) != 1:
        raise ConfigError(f"--stop={text!r}: must be one character")
    return tokens_of(text, alphabet, name="--stop")[0]


def _sampling(arguments: argparse.Namespace) -> Sampling | None:
    given = {name: getattr(arguments, name) for name in ("seed", "temperature", "top_k")}
    chosen = {name: value for name, value in given.items() if value is not None}
    if arguments.greedy:
        if chosen:
            raise ConfigError(f"--greedy: draws nothing, so it goes without {', '.join(chosen)}")
        return None
    return Sampling(**chosen)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Refuse in one line, without the usage."""
        refuse(message)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="python -m ablate.generate", description="A finished run's model continues a text.")
    parser.add_argument("run", type=Path, help="a run's folder: multirun/<study>/runs/<cell>/seed=<n>")
    parser.add_argument("--prompt", action="append", required=True, help="text to continue; again for more texts")
    parser.add_argument("--tokens", type=int, default=1000, help="most tokens to add (default: %(default)s)")
    parser.add_argument("--greedy", action="store_true", help="always the likeliest token, in place of drawing one")
    parser.add_argument("--temperature", type=float, help="below 1 keeps to the likely, above 1 evens out (default: 1)")
    parser.add_argument("--top-k", type=int, help="draw among the k likeliest tokens only (default: all)")
    parser.add_argument("--seed", type=int, help="of the draws (default: 0)")
    parser.add_argument("--stop", help="end a text after this character")
    parser.add_argument("--context", type=int, help="most tokens the model reads at a time (default: as trained)")
    parser.add_argument("--device", type=Device, choices=list(Device), default=Device.auto, help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print a list of prompts and continuations for scripts")
    parser.add_argument("--trust", action="store_true", help="build parts of other packages that its config names")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the prompts with their continuations; exit code 2 for bad input."""
    stdio.make_safe()
    arguments = _arguments(argv)
    try:
        folder, device = RunFolder(arguments.run), choose_device(arguments.device)
        found = texts(load(folder, device, trust=arguments.trust), arguments)
    except ValueError as error:
        refuse(str(error))
    if arguments.json:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    else:
        sys.stdout.writelines(f"{text['prompt']}{text['continuation']}\n" for text in found)
    stdio.end_if_lost()


if __name__ == "__main__":
    main()

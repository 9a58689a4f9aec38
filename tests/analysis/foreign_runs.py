"""Trees of runs as other programs leave them: Hydra's folder beside a file of metrics in one of several layouts."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

Curve = Sequence[tuple[int, float | None]]
"""Steps and values; None for a blank."""

NOON = 1_767_268_800
"""2026-01-01T12:00:00Z, when the first file was written."""


def write_hydra(run: Path, overrides: Sequence[str], config: Mapping[str, object] | None = None) -> Path:
    """What Hydra writes of a run."""
    hydra = run / ".hydra"
    hydra.mkdir(parents=True)
    (hydra / "overrides.yaml").write_text(yaml.safe_dump(list(overrides)) if overrides else "[]\n")
    if config is not None:
        (hydra / "config.yaml").write_text(yaml.safe_dump(dict(config)))
    return run


def lightning(run: Path, curve: Curve, version: int = 0, name: str = "val_loss") -> Path:
    """Lightning's CSVLogger: training and validation on lines of their own, with blanks."""
    lines = [f"epoch,step,train_loss,{name}"]
    for epoch, (step, value) in enumerate(curve):
        lines += [f"{epoch},{step},0.9,", f"{epoch},{step},,{'' if value is None else value}"]
    return write(run / "lightning_logs" / f"version_{version}" / "metrics.csv", lines)


def json_lines(run: Path, curve: Curve, name: str = "val_loss") -> Path:
    """A record a line, NaN as Python writes it, training records between."""
    records = [{"step": step, "train_loss": 0.9} for step, _ in curve]
    records += [{"step": step, name: value} for step, value in curve]
    return write(run / "log.jsonl", [json.dumps(record) for record in records])


def table(run: Path, curve: Curve, name: str = "val_loss") -> Path:
    """A dense CSV."""
    return write(run / "metrics.csv", [f"step,{name}", *(f"{step},{value}" for step, value in curve)])


def write(path: Path, lines: Sequence[str], at: int = 0) -> Path:
    """A file of lines, written `at` seconds after noon."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return touch(path, at)


def touch(path: Path, at: int) -> Path:
    """Set when a file was written, in seconds after noon."""
    os.utime(path, (NOON + at, NOON + at))
    return path


LAYOUTS = {
    "lightning": (lightning, "**/metrics.csv:val_loss"),
    "JSON lines": (json_lines, "log.jsonl:val_loss"),
    "dense CSV": (table, "metrics.csv:val_loss"),
}

ARMS = {"gpt": [0.50, 0.52, 0.49, 0.51, 0.53], "mamba": [0.45, 0.47, 0.43, 0.455, 0.48]}


def write_grid(root: Path, layout: str = "dense CSV", arms: Mapping[str, Sequence[float]] = ARMS) -> Path:
    """A multirun of model x trainer.seed in the folders that Hydra makes, numbered past ten; three steps each."""
    writer = LAYOUTS[layout][0]
    for place, (model, seed) in enumerate((model, seed) for seed in range(len(arms["gpt"])) for model in arms):
        run = root / "2026-01-01" / "10-00-00" / str(place + 5)
        write_hydra(run, [f"model={model}", f"trainer.seed={seed}"], {"trainer": {"seed": seed}, "lr": 0.1})
        final = arms[model][seed]
        writer(run, [(10, final + 0.4), (20, final + 0.1), (30, final)])
    return root


def run_folders(root: Path) -> list[Path]:
    """The run folders in the order of their numbers."""
    return sorted((path.parent for path in root.rglob(".hydra")), key=lambda path: int(path.name))

"""Where a result comes from: the fingerprint of the source code, git state, versions, host. Computed once a process."""

import hashlib
import importlib.metadata
import importlib.util
import platform
import socket
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent
RESULT_CODE = ("models", "tasks", "training", "config/build.py")
"""The parts of the package whose code can change a result."""

PACKAGES = ("ablate", "torch", "numpy", "hydra-core", "omegaconf")


def source_fingerprint(config: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits for the code a run executes: this package's and that of `_target_`s outside it."""
    digest = hashlib.sha256(_package_digest().encode())
    for module in sorted(set(_outside_modules(config))):
        origin = _origin(module)
        if origin is not None:
            digest.update(module.encode() + origin.read_bytes())
    return digest.hexdigest()[:16]


@cache
def _package_digest() -> str:
    digest = hashlib.sha256()
    for part in RESULT_CODE:
        path = PACKAGE / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            digest.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _outside_modules(node: Any) -> Iterator[str]:
    """Modules of `_target_`s that are neither ours nor torch's (torch's version is recorded on its own)."""
    if not isinstance(node, Mapping):
        return
    target = node.get("_target_")
    if isinstance(target, str) and target.split(".")[0] not in ("ablate", "torch"):
        yield target.rpartition(".")[0]
    for value in node.values():
        yield from _outside_modules(value)


def _origin(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin and Path(spec.origin).is_file() else None


@cache
def git_state() -> dict[str, Any]:
    """Return {"commit", "dirty"} of the code's checkout; `dirty` is a hash of the diff or null; {} outside git."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return {}
    diff = git_diff()
    return {"commit": commit.strip(), "dirty": hashlib.sha256(diff.encode()).hexdigest()[:16] if diff else None}


@cache
def git_diff() -> str:
    """Return the changes to the checkout's tracked files since its commit; empty for none, or outside git."""
    return _git("diff", "HEAD") or ""


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(PACKAGE), *arguments], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # A changed file may hold anything, in no encoding.
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can change a result."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


def host() -> str:
    """Return this machine's name."""
    return socket.gethostname()

"""Where a result comes from: the fingerprint of the source code, git state, versions, host. Computed once a process.

A file may be edited while processes that have imported it go on, so the fingerprint of a run is that of the code its
process holds: taken when this module is imported, before any module it covers, compared when all of them are imported,
and kept from then on. What is on disk now is another question, which `fingerprint_on_disk` answers without executing
anything. Imports the standard library only; of the package, when asked, all that the fingerprint covers.
"""

import contextlib
import hashlib
import importlib
import importlib.metadata
import logging
import pkgutil
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ablate import isolation

LOG = logging.getLogger("ablate")

PACKAGE = Path(__file__).resolve().parent
RESULT_CODE = ("models", "tasks", "training", "config/build.py")
"""The parts of the package whose code can change a result."""

PACKAGES = ("ablate", "torch", "numpy", "hydra-core", "omegaconf")


def source_fingerprint(config: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits for the code a run executes: this package's and that of `_target_`s outside it.

    Imports that code. Two files of one name and content are one code, wherever they lie. Code that was edited while it
    was imported has a fingerprint of its own, which no other code has.
    """
    return _joined(_package_as_loaded(), {module: _as_loaded(module) for module in _outside_modules(config)})


def code_parts(config: Mapping[str, Any]) -> dict[str, str]:
    """Return what the fingerprint of a run is made of: 16 hexadecimal digits for this package and each other module."""
    outside = {module: _as_loaded(module) for module in _outside_modules(config)}
    named = {name: hashlib.sha256(content).hexdigest() for name, content in outside.items() if content is not None}
    return {name: digest[:16] for name, digest in {PACKAGE.name: _package_as_loaded(), **named}.items()}


def fingerprint_on_disk(config: Mapping[str, Any]) -> str | None:
    """Return the fingerprint that a process started now would find; None when a module of the config is not here."""
    files = {module: _file_of(module) for module in _outside_modules(config)}
    if not all(files.values()):
        return None
    return _joined(_package_digest(), {module: file.read_bytes() for module, file in files.items() if file})


def _joined(package: str, outside: Mapping[str, bytes | None]) -> str:
    digest = hashlib.sha256(package.encode())
    for module, content in sorted(outside.items()):
        if content is not None:
            digest.update(module.encode() + content)
    return digest.hexdigest()[:16]


def _package_digest() -> str:
    digest = hashlib.sha256()
    for part in RESULT_CODE:
        path = PACKAGE / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            digest.update(file.relative_to(PACKAGE).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


_BEFORE = _package_digest()


@cache
def _package_as_loaded() -> str:
    """Import all that the digest covers, so that nothing of it is read later, and say whether it is what was there."""
    for part in RESULT_CODE:
        name = f"{__package__}.{part.removesuffix('.py').replace('/', '.')}"
        module = importlib.import_module(name)
        for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
            importlib.import_module(found.name)
    after = _package_digest()
    return after if after == _BEFORE else _edited(str(PACKAGE), _BEFORE, after)


@cache
def _as_loaded(module: str) -> bytes | None:
    """Import a module and return the content of its file; None when it cannot be found."""
    file = _file_of(module)
    if file is None:
        return None
    before = file.read_bytes()
    with contextlib.suppress(Exception):  # whatever is wrong with it, the run that needs it says so
        isolation.imported(module)
    after = file.read_bytes()
    return after if after == before else _edited(str(file), before.hex(), after.hex()).encode()


def _edited(path: str, before: str, after: str) -> str:
    LOG.warning("%s was edited while it was imported; the run is marked as one of other code", path)
    return f"{before} or {after}"


def _outside_modules(config: Mapping[str, Any]) -> list[str]:
    return sorted(set(_targets_outside(config)))


def _targets_outside(node: Any) -> Iterator[str]:
    """Modules of `_target_`s that are neither ours nor torch's (torch's version is recorded on its own)."""
    if not isinstance(node, Mapping):
        return
    target = node.get("_target_")
    if isinstance(target, str) and "." in target and target.split(".")[0] not in ("ablate", "torch"):
        yield target.rpartition(".")[0]
    for value in node.values():
        yield from _targets_outside(value)


def _file_of(module: str) -> Path | None:
    """Return the file of a module, or of the module that a class around the target stands in; executes nothing."""
    found, path = None, None
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        spec = _spec(".".join(parts[:end]), path)
        if spec is None:
            return None
        found, path = spec.origin, spec.submodule_search_locations
        if path is None:
            break
    return Path(found) if found and Path(found).is_file() else None


def _spec(name: str, path: Any) -> Any:
    """Return what the import system would load, asked part by part: `importlib.util.find_spec` imports the parents."""
    with contextlib.suppress(ImportError, ValueError):
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path)
            if spec is not None:
                return spec
    return None


SOURCES = ("*.py", "conf/*.yaml")
"""What of a checkout can change a result, and so belongs to its recorded changes; nothing else is looked at."""

NEW_SOURCES = (f"{PACKAGE.name}/*.py", "conf/*.yaml")
"""The same for files that were never added to git, among which an environment or other projects may lie."""

MOST_NEW = 100
"""Files never added to git whose content is recorded."""

PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv")
"""What the user's own settings of git could change."""


@cache
def git_state() -> dict[str, Any]:
    """Return {"commit", "dirty"} of the code's checkout; `dirty` is a hash of the diff or null; {} outside git.

    A package that was installed inside a checkout of something else is outside.
    """
    commit = _git("rev-parse", "HEAD") if _is_tracked() else None
    if commit is None:
        return {}
    diff = git_diff()
    return {"commit": commit.strip(), "dirty": hashlib.sha256(diff.encode()).hexdigest()[:16] if diff else None}


@cache
def git_diff() -> str:
    """Return the changes to the checkout's sources since its commit, new files too; empty for none, or outside git."""
    if not _is_tracked():
        return ""
    changed = _git("diff", *PLAIN, "HEAD", "--relative", "--", *SOURCES) or ""
    new = (_git("ls-files", "-z", "--others", "--exclude-standard", "--", *NEW_SOURCES) or "").split("\0")
    return changed + "".join(_added(name) for name in sorted(filter(None, new))[:MOST_NEW])


def _added(name: str) -> str:
    """Return a new file as a diff, which git calls a difference, exit code 1."""
    return _git("diff", *PLAIN, "--no-index", "--", "/dev/null", name, fine=(0, 1)) or ""


def _is_tracked() -> bool:
    return _git("ls-files", "--error-unmatch", "--", f"{PACKAGE.name}/__init__.py") is not None


def _git(*arguments: str, fine: tuple[int, ...] = (0,)) -> str | None:
    """Return what git prints, asked where the package lies; None when it fails or is not there."""
    command = ["git", "-C", str(PACKAGE.parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # A changed file may hold anything, in no encoding.
    return done.stdout.decode("utf-8", "replace") if done.returncode in fine else None


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


@cache
def processor() -> str:
    """Return the kind of this machine's processor, empty where nothing tells it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor()

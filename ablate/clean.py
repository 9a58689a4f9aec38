"""What a study no longer needs: `python -m ablate.clean STUDY [--old-code] [--yes]`.

Lists what can go, with sizes, and removes it for good once `--yes` or the answer to its question says so:

- locks whose owner is gone;
- temporary files that a process left when it died while writing;
- run folders in which no run ever began (no record, no result, no checkpoint, no file of yours);
- with `--old-code`, runs of another state of the source code than the present one.

Runs of the present code stay, an interrupted one too: the same command continues it. Nothing is touched that a live
process holds, nor anything behind a symbolic link. Imports neither torch nor Hydra.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from ablate import locks, provenance
from ablate.config.errors import refuse
from ablate.records import RunFolder, StudyFolder
from ablate.resume import read_or_none
from ablate.status import check_study

TEMPORARIES = ".*.tmp"


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """One thing that can go: why, and the lock that must be free for it (null: it has none)."""

    path: Path
    why: str
    size: int
    lock: Path | None


def leftovers(study: StudyFolder, *, old_code: bool = False) -> list[Leftover]:
    """Return what can go, in a fixed order; sizes are in bytes."""
    found = [*_of_sweeps(study)]
    for folder in study.runs():
        if not _is_linked(folder.path, study.path) and not locks.is_held(folder.lock):
            found += _of_run(folder, old_code)
    return found


def _of_sweeps(study: StudyFolder) -> Iterator[Leftover]:
    """Temporary files beside the runs have no lock: those of the last TAKE_OVER seconds may be in use."""
    for parent in (study.path, study.sweeps_path, study.search_path):
        if _is_linked(parent, study.path):
            continue
        for path in sorted(parent.glob(TEMPORARIES)):
            if path.is_file() and time.time() - path.lstat().st_mtime > locks.TAKE_OVER:
                yield Leftover(path=path, why="temporary file", size=size_of(path), lock=None)
    if not _is_linked(study.search_path, study.path):
        for path in sorted(study.search_path.glob("*.lock")):
            if not locks.is_held(path):
                yield Leftover(path=path, why="stale lock", size=size_of(path), lock=path)


def _of_run(folder: RunFolder, old_code: bool) -> Iterator[Leftover]:
    why = "never began" if _never_began(folder) else "old code" if old_code and _is_of_old_code(folder) else None
    if why is not None:
        yield Leftover(path=folder.path, why=why, size=size_of(folder.path), lock=folder.lock)
        return
    for parent in (folder.path, folder.hydra):
        for path in sorted(parent.glob(TEMPORARIES)):
            yield Leftover(path=path, why="temporary file", size=size_of(path), lock=folder.lock)
    if folder.lock.is_file():
        yield Leftover(path=folder.lock, why="stale lock", size=size_of(folder.lock), lock=folder.lock)


def _is_linked(path: Path, study: Path) -> bool:
    """Whether `path` reaches out of the study, or through a symbolic link."""
    return path.resolve() != study.resolve() / path.relative_to(study)


def _never_began(folder: RunFolder) -> bool:
    """Whether the folder holds only what is written before a record is."""
    early = {folder.hydra.name, folder.config.name, folder.log.name, folder.lock.name}
    return all(path.name in early or path.match(TEMPORARIES) for path in folder.path.iterdir())


def _is_of_old_code(folder: RunFolder) -> bool:
    """Whether the run's source is known and is not the present one; a run that cannot be read is left alone."""
    record = read_or_none(folder)
    if record is None or not record.source:
        return False
    try:
        values = yaml.safe_load(folder.config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False
    return isinstance(values, dict) and record.source != provenance.source_fingerprint(values)


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of a folder's files; links count as themselves."""
    files = [path] if not path.is_dir() else [inner for inner in path.rglob("*") if not inner.is_dir()]
    return sum(file.lstat().st_size for file in files)


def remove(leftover: Leftover, *, old_code: bool = False) -> bool:
    """Remove it for good and return True, unless it is held, or has become something else, since it was listed."""
    if leftover.lock is None:
        leftover.path.unlink(missing_ok=True)
        return True
    if not leftover.lock.parent.is_dir():
        return False
    with locks.hold(leftover.lock) as mine:
        return bool(mine) and _removed(leftover, old_code)


def _removed(leftover: Leftover, old_code: bool) -> bool:
    """Remove what this process holds the lock of; a lock itself goes when it is let go."""
    path = leftover.path
    if not path.is_dir():
        if path != leftover.lock:
            path.unlink(missing_ok=True)
        return True
    folder = RunFolder(path)
    if not (_never_began(folder) or (old_code and _is_of_old_code(folder))):
        return False
    shutil.rmtree(path)
    if not any(path.parent.iterdir()):
        path.parent.rmdir()
    return True


def readable(size: int) -> str:
    """Return a number of bytes as people say it: 812 B, 1.4 kB, 3.0 MB."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def listing(study: StudyFolder, found: Sequence[Leftover]) -> str:
    """Return the list for a terminal: why, size, path in the study; then the total."""
    lines = [f"{item.why:<14}  {readable(item.size):>8}  {item.path.relative_to(study.path)}" for item in found]
    return "\n".join([*lines, f"{len(found)} to remove, {readable(sum(item.size for item in found))}"])


def _asked(question: str) -> bool:
    """Ask at a terminal; elsewhere the answer is no."""
    return sys.stdin.isatty() and input(question).strip().lower() in ("y", "yes")


def main(argv: Sequence[str] | None = None, ask: Callable[[str], bool] = _asked) -> None:
    """List, ask, remove; exit code 0, 1 when something listed could not be removed, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m ablate.clean", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("study", type=Path, help="a study's folder, such as multirun/copy_repeat")
    parser.add_argument("--old-code", action="store_true", help="also runs of another state of the source code")
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    arguments = parser.parse_args(argv)
    study = StudyFolder(arguments.study)
    check_study(study)
    found = leftovers(study, old_code=arguments.old_code)
    if not found:
        sys.stdout.write(f"{study.path}: nothing to remove\n")
        return
    sys.stdout.write(listing(study, found) + "\n")
    if not (arguments.yes or ask("Remove them for good? [y/N] ")):
        sys.stdout.write("Nothing was removed; --yes removes them for good.\n")
        return
    _remove_all(found, old_code=arguments.old_code)


def _remove_all(found: Sequence[Leftover], *, old_code: bool) -> None:
    """Remove what is listed and say how it went."""
    try:
        left = [item for item in found if not remove(item, old_code=old_code)]
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}; nothing more was removed")
    sys.stdout.write(f"Removed {len(found) - len(left)}.\n")
    for item in left:
        sys.stderr.write(f"ablate: {item.path}: left, it is in use or has changed since\n")
    if left:
        sys.exit(1)


if __name__ == "__main__":
    main()

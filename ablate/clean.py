"""What a study no longer needs: `python -m ablate.clean STUDY [--interrupted] [--old-code] [--yes]`.

Lists what can go, with sizes, and removes it for good once `--yes` or the answer to its question says so:

- locks whose owner is gone;
- temporary files that a process left when it died while writing;
- run folders in which no run ever began (no record, no result, no checkpoint, no file of yours);
- with `--interrupted`, runs that were begun and not ended, with their checkpoints: without it they stay, since the same
  command continues them;
- with `--old-code`, runs of another state of the source code than the present one; a run whose own modules are not to
  be found here stays.

What ended under the present code stays. Nothing is touched that a live process holds, nor anything behind a symbolic
link. Imports neither torch nor Hydra.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from ablate import locks, provenance, stdio
from ablate.config.errors import refuse
from ablate.records import RunFolder, Status, StudyFolder
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


def leftovers(study: StudyFolder, asked: Collection[str] = ()) -> list[Leftover]:
    """Return what can go, in a fixed order; `asked` are those of RUNS that go as well. Sizes are in bytes."""
    found = [*_of_sweeps(study)]
    for folder in study.runs():
        if not _is_linked(folder.path, study.path) and not locks.is_held(folder.lock):
            found += _of_run(folder, asked)
    return found


def _of_sweeps(study: StudyFolder) -> Iterator[Leftover]:
    """Temporary files beside the runs have no lock: those of the last TAKE_OVER seconds may be in use."""
    for parent in (study.path, study.sweeps_path, study.search_path, study.tuning_path):
        if not _is_linked(parent, study.path):
            for path in sorted(parent.glob(TEMPORARIES)):
                if path.is_file() and _is_old(path):
                    yield Leftover(path=path, why="temporary file", size=size_of(path), lock=None)
    for path in study.work_locks():
        if not _is_linked(path.parent, study.path) and not locks.is_held(path):
            yield Leftover(path=path, why="stale lock", size=size_of(path), lock=path)


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > locks.TAKE_OVER
    except FileNotFoundError:  # it has got its name
        return False


def _of_run(folder: RunFolder, asked: Collection[str]) -> Iterator[Leftover]:
    if (why := _why_whole(folder, asked)) is not None:
        yield Leftover(path=folder.path, why=why, size=size_of(folder.path), lock=folder.lock)
        return
    for parent in [folder.path] if folder.hydra.is_symlink() else [folder.path, folder.hydra]:
        for path in sorted(parent.glob(TEMPORARIES)):
            yield Leftover(path=path, why="temporary file", size=size_of(path), lock=folder.lock)
    if folder.lock.is_file():
        yield Leftover(path=folder.lock, why="stale lock", size=size_of(folder.lock), lock=folder.lock)


def _is_linked(path: Path, study: Path) -> bool:
    """Whether `path` reaches out of the study, or through a symbolic link."""
    return path.resolve() != study.resolve() / path.relative_to(study)


def _why_whole(folder: RunFolder, asked: Collection[str]) -> str | None:
    """Return why the whole folder goes, None when it stays."""
    kinds = {"never began": _never_began, **{why: RUNS[why] for why in asked}}
    return next((why for why, is_so in kinds.items() if is_so(folder)), None)


def _never_began(folder: RunFolder) -> bool:
    """Whether the folder holds only what is written before a record is."""
    early = {folder.hydra.name, folder.config.name, folder.log.name, folder.lock.name}
    return all(path.name in early or path.match(TEMPORARIES) for path in folder.path.iterdir())


def _is_of_old_code(folder: RunFolder) -> bool:
    """Whether the run's code is known and is not the present one; where either cannot be read, the run stays."""
    record = read_or_none(folder)
    if record is None or not record.source:
        return False
    try:
        values = yaml.safe_load(folder.config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return False
    present = provenance.fingerprint_on_disk(values) if isinstance(values, dict) else None
    return present is not None and record.source != present


def _was_interrupted(folder: RunFolder) -> bool:
    """Whether the run was begun and not ended; a record that says `running` is of a process that is gone."""
    record = read_or_none(folder)
    return record is not None and record.status in (Status.interrupted, Status.running)


RUNS: dict[str, Callable[[RunFolder], bool]] = {"interrupted": _was_interrupted, "old code": _is_of_old_code}
"""Runs that go only when asked for, by why they do."""


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of a folder's files; links count as themselves."""
    files = [path] if not path.is_dir() else [inner for inner in path.rglob("*") if not inner.is_dir()]
    return sum(map(_size, files))


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except FileNotFoundError:  # gone since it was listed
        return 0


def remove(leftover: Leftover) -> bool:
    """Remove it for good and return True, unless it is held, or has become something else, since it was listed."""
    if leftover.lock is None:
        leftover.path.unlink(missing_ok=True)
        return True
    if not leftover.lock.parent.is_dir():
        return False
    with locks.hold(leftover.lock) as mine:
        return bool(mine) and _removed(leftover)


def _removed(leftover: Leftover) -> bool:
    """Remove what this process holds the lock of; a lock itself goes when it is let go."""
    path = leftover.path
    if not path.is_dir():
        if path != leftover.lock:
            path.unlink(missing_ok=True)
        return True
    if _why_whole(RunFolder(path), [leftover.why] if leftover.why in RUNS else []) != leftover.why:
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
    stdio.make_safe()
    parser = argparse.ArgumentParser(prog="python -m ablate.clean", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("study", type=Path, help="a study's folder, such as multirun/copy_repeat")
    parser.add_argument("--interrupted", action="store_true", help="also runs that were begun and not ended")
    parser.add_argument("--old-code", action="store_true", help="also runs of another state of the source code")
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    arguments = parser.parse_args(argv)
    study = StudyFolder(arguments.study)
    check_study(study)
    named = {"interrupted": arguments.interrupted, "old code": arguments.old_code}
    found = leftovers(study, [why for why, asked in named.items() if asked])
    if not found:
        sys.stdout.write(f"{study.path}: nothing to remove\n")
        return
    sys.stdout.write(listing(study, found) + "\n")
    if not (arguments.yes or ask("Remove them for good? [y/N] ")):
        sys.stdout.write("Nothing was removed; --yes removes them for good.\n")
        return
    _remove_all(found)


def _remove_all(found: Sequence[Leftover]) -> None:
    """Remove what is listed and say how it went."""
    try:
        left = [item for item in found if not remove(item)]
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}; nothing more was removed")
    sys.stdout.write(f"Removed {len(found) - len(left)}.\n")
    for item in left:
        sys.stderr.write(f"ablate: {item.path}: left, it is in use or has changed since\n")
    if left:
        sys.exit(1)


if __name__ == "__main__":
    main()

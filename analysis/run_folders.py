"""The run folders of a study of another program: what holds Hydra's files, links followed, each real folder once.

A run folder is not searched any deeper, and hidden folders are passed over. Real folders come before links, links in
the order of their names, so a run that can be reached by several ways always has the same name.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ablate.records import RunFolder

SHOWN = 5


@dataclass
class RunFolders:
    """The run folders below a study's folder, and the entries that were left out, by reason."""

    root: Path
    runs: list[Path] = field(default_factory=list)
    dangling: list[Path] = field(default_factory=list)
    above: list[Path] = field(default_factory=list)
    again: list[Path] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)

    def remarks(self) -> Iterable[str]:
        """What was left out, one line for each reason."""
        yield from self._left_out(self.dangling, "link leads", "links lead", "nowhere")
        yield from self._left_out(self.above, "link leads", "links lead", "to a folder that holds this study")
        yield from self._left_out(self.again, "link leads", "links lead", "to a run that is read under another name")
        yield from self._left_out(self.unreadable, "folder", "folders", "cannot be read")

    def _left_out(self, paths: Sequence[Path], one: str, many: str, why: str) -> Iterable[str]:
        if paths:
            names = sorted((path.relative_to(self.root) for path in paths), key=natural)
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            shown = ", ".join(name.as_posix() for name in names[:SHOWN])
            yield f"{len(names)} {one if len(names) == 1 else many} {why}, left out: {shown}{more}"


def find_run_folders(root: Path) -> RunFolders:
    """Search a study's folder."""
    found = RunFolders(root)
    seen: set[tuple[int, int]] = set()
    runs: set[tuple[int, int]] = set()
    holders = {_identity(parent) for parent in root.resolve().parents}
    folders, links = deque([root]), deque[Path]()
    while folders or links:
        folder = folders.popleft() if folders else links.popleft()
        identity = _identity(folder)
        if identity in runs:
            found.again.append(folder)
        elif identity in holders:
            found.above.append(folder)
        elif identity not in seen:
            seen.add(identity)
            if _is_run(folder):
                runs.add(identity)
                found.runs.append(folder)
            else:
                _look_into(folder, found, folders, links)
    found.runs.sort(key=natural)
    return found


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _is_run(folder: Path) -> bool:
    run = RunFolder(folder)
    return run.hydra_overrides.is_file() or run.hydra_config.is_file()


def _look_into(folder: Path, found: RunFolders, folders: deque[Path], links: deque[Path]) -> None:
    """Put off what is in a folder: its folders, and links to folders for when no real folder is left."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: natural(Path(entry.name)))
    except OSError:
        found.unreadable.append(folder)
        return
    for entry in entries:
        path, is_link = folder / entry.name, entry.is_symlink()
        if entry.name.startswith(".") and entry.name != ".hydra":
            continue
        if is_link and not path.exists():
            found.dangling.append(path)
        elif entry.name != ".hydra" and entry.is_dir():
            (links if is_link else folders).append(path)


def natural(path: Path) -> list[str | int]:
    """A sort key that puts 2 before 10."""
    parts = re.split(r"([0-9]+)", path.as_posix())
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]

"""The folder of a report: its files are written, and those that an earlier report left and this one lacks go.

What a report wrote is listed in `.written.json` beside it, each file with the hash of its content. Only a file that is
listed and still is what was written is ever removed, so what a user put there or changed stays. The list depends on
the report alone: the same report gives the same bytes.
"""

import contextlib
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

from ablate.jsonfiles import write_atomic

LIST = ".written.json"


def write_report(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write these files by their names relative to the folder, and remove what only an earlier report had."""
    earlier = _listed(folder)
    for name, content in files.items():
        write_atomic(folder / name, content)
    for name in sorted(earlier.keys() - files.keys()):
        _remove(folder, name, earlier[name])
    written = {name: _hash(content) for name, content in sorted(files.items())}
    write_atomic(folder / LIST, (json.dumps(written, indent=1, ensure_ascii=False) + "\n").encode())


def _listed(folder: Path) -> dict[str, str]:
    """What the last report wrote, hashes by name; a list that cannot be read, or a name outside, says nothing."""
    try:
        found = json.loads((folder / LIST).read_bytes())
    except (OSError, ValueError):
        return {}
    return {name: said for name, said in found.items() if _is_inside(name)} if isinstance(found, dict) else {}


def _is_inside(name: str) -> bool:
    return not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts


def _remove(folder: Path, name: str, said: str) -> None:
    """Remove a file that is as it was written, and the folders that it leaves empty; one that is gone is no error."""
    file = folder / name
    with contextlib.suppress(OSError):
        if _hash(file.read_bytes()) != said:
            return
        file.unlink()
        for parent in PurePosixPath(name).parents[:-1]:
            (folder / parent).rmdir()  # raises OSError for one that still holds something


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()

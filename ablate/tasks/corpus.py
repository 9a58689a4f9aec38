"""Text from a file, or from the one text that is fetched from the network: read, checked, as one string.

Downloaded once into the user's cache folder ($XDG_CACHE_HOME or ~/.cache, there `ablate/`), and only kept when its
SHA-256 is right.
"""

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

import torch


class Source(NamedTuple):
    """Where a text comes from, and what it must hash to."""

    name: str
    url: str
    sha256: str


TINY_SHAKESPEARE = Source(
    "tinyshakespeare.txt",
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)


def read_text(path: Path) -> str:
    """The characters of a UTF-8 file; ValueError, naming task.path, when it is missing, empty or not text."""
    try:
        content = path.expanduser().read_bytes()
    except OSError as error:
        raise ValueError(f"task.path={path}: cannot be read ({error.strerror}); name a text file") from error
    if not content:
        raise ValueError(f"task.path={path}: is empty; name a text file")
    if b"\0" in content:
        raise ValueError(f"task.path={path}: is binary (0x00 at byte {content.index(0)}); name a UTF-8 text file")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"task.path={path}: is not UTF-8 ({content[error.start]:#04x} at byte {error.start}); name a UTF-8 file"
        ) from error


def cached(source: Source) -> Path:
    """The file in the cache folder, downloaded if it is not there or was damaged; shows progress on stderr.

    Raises ValueError that says how to do without the network when there is none.
    """
    path = cache_folder() / source.name
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == source.sha256:
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Writes beside the target and renames when the hash is right.
        torch.hub.download_url_to_file(source.url, str(path), hash_prefix=source.sha256)
    except (OSError, RuntimeError) as error:
        raise ValueError(
            f"task.path=null: {source.url} could not be downloaded to {path} ({error}); "
            f"use task.path=FILE with any text file, or put that one there"
        ) from error
    return path


def cache_folder() -> Path:
    """Where downloads are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ablate"

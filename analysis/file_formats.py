"""The bytes of a file as text, whatever wrote it; what is no text is refused in one line that names the format found.

Formats are known by how a file begins, not by its name: a `.csv` that is an Excel workbook is called one. Compressed
files (gzip, bzip2, xz) are unpacked, UTF-8, UTF-16 and marked UTF-32 are decoded.
"""

import bz2
import codecs
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from analysis.study import StudyError


class EmptyFileError(StudyError):
    """A file with nothing in it, as a program leaves it that was killed before it wrote."""


SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson", ".parquet")
PACKED = (".gz", ".bz2", ".xz")

_COMPRESSED: tuple[tuple[bytes, Callable[[BinaryIO], Any]], ...] = (
    (rb"\x1f\x8b", gzip.open),
    (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", bz2.open),
    (rb"\xfd7zXZ\x00", lzma.open),
)

_AS_CSV = "write it as CSV with the program that made it"

_BINARY = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook", "save the sheet as CSV"),
    (b"SQLite format 3\x00", "an SQLite database", "write the rows of the table as CSV"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _AS_CSV),
    (b"\x93NUMPY", "a NumPy array", _AS_CSV),
    (b"ARROW1", "an Arrow (Feather) file", "write it as CSV or Parquet"),
    (b"Obj\x01", "an Avro file", "write it as CSV or JSON lines"),
    (b"\x28\xb5\x2f\xfd", "a file compressed by Zstandard", "unpack it with `zstd -d`, or compress it with gzip"),
    (b"\x04\x22\x4d\x18", "a file compressed by LZ4", "unpack it with `lz4 -d`, or compress it with gzip"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it"),
    (b"Rar!", "a RAR archive", "unpack it"),
    (b"MATLAB 5.0", "a MATLAB file", _AS_CSV),
    (b"<stata_dta>", "a Stata file", _AS_CSV),
    (b":W&B", "a log of Weights & Biases", "download the runs as CSV from their table, or write run.history() as CSV"),
    (b"%PDF", "a PDF", "give the table as CSV"),
    (b"\x89PNG", "a picture (PNG)", "give the numbers as CSV"),
    (b"\xff\xd8\xff", "a picture (JPEG)", "give the numbers as CSV"),
)
"""How formats begin that are not read, what they are called, and what to do."""

_TEXTS = (
    (
        r"<!doctype html|<html|<table",
        "a page in HTML",
        "download the file itself (on GitHub: Raw), or write the table as CSV",
    ),
    (r"<\?xml|<[a-z]+[ >]", "XML", _AS_CSV),
    (r"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself with `git lfs pull`"),
    (r"\|.*\|[ \t]*\r?\n[ \t]*\|?[ \t]*:?-+", "a table in Markdown", "write it as CSV"),
    (r"\\(begin|documentclass)", "LaTeX", "write the table as CSV"),
    (r"%yaml|---[ \t]*\r?\n", "YAML", "write the table as CSV or JSON lines"),
    (r"@relation", "a file of Weka (ARFF)", _AS_CSV),
)

_EVENTS = ("a TensorBoard event file", "export its scalars as CSV (in TensorBoard: the download links of a chart)")

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

PARQUET = re.compile(rb"PAR1[^\x20-\x7e]")


def plain_name(path: Path) -> str:
    """The file's name without the endings that say its format: t of t.csv.gz."""
    packed = path.suffix.lower() in PACKED and Path(path.stem).suffix.lower() in SUFFIXES
    return Path(path.stem).stem if packed else path.stem


def named_like_a_table(path: Path) -> bool:
    """Whether the name ends as those of tables do, compressed or not."""
    plain = path.with_suffix("") if path.suffix.lower() in PACKED else path
    return plain.suffix.lower() in SUFFIXES


def unpacked(path: Path, *, torn: bool = False) -> bytes:
    """The bytes of a file, unpacked if it is compressed.

    `torn`: of one that is cut off, as a killed program leaves it, what can be read; else it is refused.
    """
    data = path.read_bytes()
    opened = next((opened for magic, opened in _COMPRESSED if re.match(magic, data)), None)
    if opened is None:
        return data
    parts: list[bytes] = []
    try:
        with opened(io.BytesIO(data)) as stream:
            while part := stream.read1(1 << 16):
                parts.append(part)
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if not (torn and isinstance(error, EOFError)):
            raise StudyError(
                f"{path}: a compressed file that is damaged ({error}); copy or compress it again"
            ) from None
    return b"".join(parts)


def decoded(path: Path, data: bytes, *, torn: bool = False) -> str:
    """The bytes as text. Raises StudyError, one line, for every format that is no text and for another encoding.

    `torn`: null bytes, as a crash leaves them, are left out, and bytes that are no text become �.
    """
    encoding = _encoding(data)
    if encoding == "utf-8":
        _refuse_binary(path, data, torn=torn)
    try:
        text = data.decode(encoding, errors="replace" if torn else "strict")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        told = f"line {line} is not {encoding.removesuffix('-sig').upper()} ({error.reason}, byte {error.start + 1})"
        raise StudyError(f"{path}: {told}; save the file as UTF-8") from None
    _refuse_unreadable(path, text, torn=torn)
    return text.replace("\0", "") if torn else text


def _encoding(data: bytes) -> str:
    """By the byte order mark; without one UTF-8, or UTF-16 where every second byte of Latin text is null."""
    marked = next((name for bom, name in _BOMS if data.startswith(bom)), None)
    start = data[:4096]
    latin = 0.8 * len(start) <= 2 * start.count(b"\0") <= len(start)
    if marked is None and start and latin:
        halves = {"utf-16-le": start[1::2], "utf-16-be": start[::2]}
        return next((name for name, half in halves.items() if 10 * half.count(b"\0") >= 8 * len(half)), "utf-8")
    return marked or "utf-8"


def _refuse_binary(path: Path, data: bytes, *, torn: bool) -> None:
    start = data[:4096]
    if start.startswith(b"PK\x03\x04"):
        raise _refused(path, *_zip(data))
    if b"brain.Event:" in start[:512] or path.name.startswith("events.out.tfevents"):
        raise _refused(path, *_EVENTS)
    if start[257:262] == b"ustar":
        raise _refused(path, "a tar archive", "unpack it")
    if re.match(rb"\x80[\x02-\x05]", start):
        raise _refused(path, "a Python pickle", "write the table as CSV (pickles are not opened: they can run code)")
    for magic, name, advice in _BINARY:
        if start.startswith(magic):
            raise _refused(path, name, advice)
    control = len(re.findall(rb"[\x01-\x08\x0b\x0e-\x1f]", start))
    if 20 * control > len(start.strip(b"\0")) or (2 * start.count(b"\0") > len(start) and not torn):
        raise _refused(path, "a binary file of a format that is not known", "give CSV, JSON or Parquet")


def _zip(data: bytes) -> tuple[str, str]:
    """What a zip archive is, by what it holds."""
    try:
        inside = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return "a zip archive that is damaged", "copy it again and unpack it"
    if any(name.startswith("xl/") for name in inside):
        return "an Excel workbook", "save the sheet as CSV"
    if "mimetype" in inside and "content.xml" in inside:
        return "an OpenDocument file", "save the sheet as CSV"
    if any(name.endswith("data.pkl") for name in inside):
        return "a PyTorch checkpoint", "write its numbers as CSV"
    if inside and all(name.endswith(".npy") for name in inside):
        return "NumPy arrays (.npz)", "write them as CSV"
    return f"a zip archive that holds {', '.join(inside[:3]) or 'nothing'}", "unpack it"


def _refuse_unreadable(path: Path, text: str, *, torn: bool) -> None:
    """Raise StudyError for text that is no table or log: nothing at all, or another language."""
    if not text.strip(" \t\r\n\0"):
        raise EmptyFileError(f"{path}: the file is empty")
    if not torn and "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise StudyError(f"{path}: line {line} holds null bytes, as a crash leaves them; remove that line")
    for begins, name, advice in _TEXTS:
        if re.match(begins, text.lstrip(), re.IGNORECASE):
            raise _refused(path, name, advice)


def _refused(path: Path, found: str, advice: str) -> StudyError:
    return StudyError(f"{path}: this is {found}, which is not read; {advice}")

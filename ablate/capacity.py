"""How many runs fit on this machine at once: the cores and the memory that this process may use, cgroups included.

A container or a batch job sees the whole machine and may use a part of it; its cgroup says which (version 2, or the
older version 1). A limit may be set on the group itself or on any above it. Imports the standard library only.
"""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

RUN_BYTES = 350 * 2**20
"""Memory of a run whose peak is not known: that of one default run, as `benchmarks.memory` measures it (345 MiB).

An idle worker, which has imported torch, takes 235 MiB of it.
"""

USABLE = 0.9
"""Share of the free memory that workers may take; the rest is for the table at the end and for others."""

FILES = Path("/")
"""Where proc/ and sys/fs/cgroup are looked for; tests set another."""


def cores() -> int:
    """Return how many cores this process may use, at least 1; part of a core counts as one."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [share for folder in _groups("cpu") if (share := _cpu_share(folder)) is not None]
    return max(1, min([allowed, *(math.ceil(share) for share in quotas)]))


def free_memory() -> int | None:
    """Return the bytes that this process and its children may still take; None where the system does not say."""
    free = [left for folder in _groups("memory") if (left := _left(folder)) is not None]
    for line in _lines(FILES / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            free.append(int(line.split()[1]) * 1024)
    return min(free) if free else None


def fitting(free: int | None, peaks: Sequence[int]) -> int | None:
    """Return how many runs fit into so much free memory, at least 1; None where there is no telling.

    `peaks` are the peak memories of runs of the same kind, as far as they are known; the largest counts.
    """
    return None if free is None else max(1, int(USABLE * free) // of_a_run(peaks))


def of_a_run(peaks: Sequence[int]) -> int:
    """Return the memory to expect of a run, in bytes."""
    return max(peaks, default=RUN_BYTES)


def _groups(controller: str) -> Iterator[Path]:
    """The folders of this process's cgroup and of those above it; a container may see them at the top only."""
    root = FILES / "sys/fs/cgroup"
    for line in _lines(FILES / "proc/self/cgroup"):
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        top = root / controller if names else root
        own = top / path.lstrip("/")
        yield from (folder for folder in (own, *own.parents) if folder == top or top in folder.parents)


def _cpu_share(folder: Path) -> float | None:
    quota, period, *_ = [*_words(folder / "cpu.max"), "max", "max"]
    if quota == "max":
        quota = next(iter(_words(folder / "cpu.cfs_quota_us")), "-1")
        period = next(iter(_words(folder / "cpu.cfs_period_us")), "0")
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) > 0 else None


def _left(folder: Path) -> int | None:
    """Return what a group may still take; files that the system keeps in memory can be given up."""
    for most, used, kept in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        limit, now = _words(folder / most), _words(folder / used)
        if limit and now and limit[0].isdecimal():
            files = [int(line.split()[1]) for line in _lines(folder / "memory.stat") if line.split()[:1] == [kept]]
            return max(0, int(limit[0]) - int(now[0]) + sum(files))
    return None


def _words(file: Path) -> list[str]:
    return " ".join(_lines(file)).split()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []

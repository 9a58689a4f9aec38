"""How the runs of a study were computed, where that is no part of their identity: by what code and what arithmetic.

Threads, the kind of device (the processor too, on a CPU) and the version of torch change the order in which numbers are
added, so the same cell and seed ends with other bits. Runs that differ in these may be averaged, but not unnoticed.
"""

import re
from collections.abc import Iterable, Sequence

from ablate.records import RunRecord


def mixed_code(records: Iterable[RunRecord]) -> bool:
    """Whether runs with a result come from more than one state of the code.

    A module that only some cells need (a scheme of the user's beside one of ours) is not another state of it.
    """
    runs = [record for record in records if record.status.is_result]
    sources = {(run.cell, run.source) for run in runs}
    if len(sources) > len({run.cell for run in runs}):
        return True
    if not all(run.code for run in runs):  # recorded by an earlier version
        return len({run.source for run in runs}) > 1
    states = {part for run in runs for part in run.code.items()}
    return len(states) > len({module for module, _ in states})


def mixed_arithmetic(records: Iterable[RunRecord]) -> list[str]:
    """What runs with a result differ in, with the values: ["1 and 2 threads"]; what was not recorded is no value."""
    runs = [record for record in records if record.status.is_result]
    threads = sorted({run.threads for run in runs if run.threads})
    devices = sorted({kind for run in runs if (kind := device_kind(run.device))})
    processors = sorted({run.processor for run in runs if run.processor and run.device == "cpu"})
    versions = sorted({version for run in runs if (version := run.versions.get("torch"))})
    named = (("", threads, " threads"), ("", devices, ""), ("", processors, ""), ("torch ", versions, ""))
    return [f"{before}{listed(values)}{after}" for before, values, after in named if len(values) > 1]


def device_kind(device: str) -> str:
    """The device without its number on the machine: cuda:1 (NVIDIA H200) is cuda (NVIDIA H200)."""
    return re.sub(r"^(\w+):\d+", r"\1", device)


def listed(values: Sequence[object]) -> str:
    """1 and 2; 1, 2 and 4."""
    *others, last = map(str, values)
    return f"{', '.join(others)} and {last}"

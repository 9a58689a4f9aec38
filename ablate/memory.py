"""The peak memory of one run in a process that may train many, in bytes: CUDA's on a GPU, resident memory on a CPU."""

import contextlib
import resource
import sys
from pathlib import Path

import torch

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """Resets the process's peak where the system allows it (Linux, CUDA), so that the peak is this run's own."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            RESET.write_text("5")
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()

    def read(self) -> int:
        """Return the peak since the object was made."""
        if torch.cuda.is_available() and (used := torch.cuda.max_memory_allocated()) > 0:
            return int(used)
        return resident_peak()


def resident_peak() -> int:
    """Return the peak resident memory of this process since the last reset."""
    with contextlib.suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

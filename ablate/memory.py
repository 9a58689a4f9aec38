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
        self._gpu: torch.device | None = None
        with contextlib.suppress(OSError):
            RESET.write_text("5")

    def watch(self, device: torch.device) -> None:
        """Count on `device` from now on, where that is a GPU: the one of the run, not the process's first."""
        if device.type == "cuda":
            torch.cuda.init()  # type: ignore[no-untyped-call]
            torch.cuda.reset_peak_memory_stats(device)
            self._gpu = device

    def read(self) -> int:
        """Return the peak since the object was made, or since it watches a GPU."""
        return resident_peak() if self._gpu is None else int(torch.cuda.max_memory_allocated(self._gpu))


def resident_peak() -> int:
    """Return the peak resident memory of this process since the last reset."""
    with contextlib.suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

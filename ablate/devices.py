"""Which device a run trains on: the visible GPU with the fewest runs of this user.

Each run on a GPU holds a slot of it: a file, locked with `flock`, in a folder of the user's among the machine's
temporary files, so it counts the runs of all sweeps there, and a process that dies frees its slot. Slots are named for
the GPU itself, not for its index: two sweeps with different CUDA_VISIBLE_DEVICES mean the same card by it. Nothing
waits: how many runs start at once is the launcher's business (`runtime.runs_per_device`).
"""

import contextlib
import fcntl
import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from ablate.config.build import choose_device
from ablate.config.schema import Device


def visible_gpus() -> list[str]:
    """Return a lasting name for each GPU that CUDA_VISIBLE_DEVICES leaves, by index."""
    return [
        str(getattr(torch.cuda.get_device_properties(index), "uuid", index))
        for index in range(torch.cuda.device_count())
    ]


def slots_folder() -> Path:
    """Return the folder of this user's slots on this machine."""
    return Path(tempfile.gettempdir()) / f"ablate-devices-{os.getuid()}"


@contextlib.contextmanager
def placed(wanted: Device) -> Iterator[torch.device]:
    """The device of a run for as long as the block runs. Raises ValueError for `cuda` where torch sees none."""
    device = choose_device(wanted)
    if device.type != "cuda":
        yield device
        return
    with free_slot(visible_gpus(), slots_folder()) as index:
        yield torch.device("cuda", index)


@contextlib.contextmanager
def free_slot(gpus: Sequence[str], folder: Path) -> Iterator[int]:
    """Hold the first free slot, all GPUs' first slots before any second one; yields the index of its GPU."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for slot, (index, gpu) in ((slot, gpu) for slot in itertools.count() for gpu in enumerate(gpus)):
        descriptor = os.open(folder / f"{gpu}.{slot}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        try:
            yield index
        finally:
            os.close(descriptor)
        return

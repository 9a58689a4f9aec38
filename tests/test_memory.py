"""The peak memory of a run: its GPU's own, faked on the CPU; else resident memory."""

import psutil
import pytest
import torch

from ablate.memory import PeakMemory


@pytest.fixture
def gpus(monkeypatch) -> dict[int, int]:
    """Two GPUs by index with the peak since the last reset, the first used by another run of this process."""
    peaks = {0: 7_000, 1: 5_000}
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: peaks.update({device.index: 0}))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: peaks[device.index])
    return peaks


def test_a_run_on_the_second_gpu_has_its_peak_from_there(gpus):
    memory = PeakMemory()
    memory.watch(torch.device("cuda", 1))
    gpus[0], gpus[1] = 90_000, 3_000
    assert memory.read() == 3_000


def test_a_run_on_the_cpu_has_its_resident_peak_whatever_the_gpus_hold(gpus):
    memory = PeakMemory()
    memory.watch(torch.device("cpu"))
    before = memory.read()
    below = before - psutil.Process().memory_info().rss  # where the system keeps the peak of earlier runs
    block = torch.ones(max(below, 0) + 64 * 2**20, dtype=torch.uint8)
    assert memory.read() - before > 32 * 2**20
    assert block.all()
    assert gpus == {0: 7_000, 1: 5_000}

"""Runs spread over the visible GPUs, faked on the CPU."""

import contextlib
import subprocess
import sys

import pytest
import torch

from ablate import devices
from ablate.config.build import choose_device
from ablate.config.register import local_workers
from ablate.config.schema import Device


def taken(gpus, folder, runs):
    """The GPUs of so many runs at once."""
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(devices.free_slot(gpus, folder)) for _ in range(runs)]


@pytest.mark.parametrize(("gpus", "expected"), [(["a"], [0, 0, 0, 0]), (["a", "b"], [0, 1, 0, 1])])
def test_four_runs_on_one_and_two_gpus_are_spread_evenly(tmp_path, gpus, expected):
    assert taken(gpus, tmp_path, 4) == expected


def test_the_next_run_takes_the_gpu_that_became_free(tmp_path):
    gpus = ["a", "b"]
    with devices.free_slot(gpus, tmp_path) as long:
        with devices.free_slot(gpus, tmp_path) as short:
            assert (long, short) == (0, 1)
        with devices.free_slot(gpus, tmp_path) as following:
            assert following == 1


def test_two_sweeps_that_see_the_same_cards_under_other_numbers_agree(tmp_path):
    with devices.free_slot(["a", "b"], tmp_path), devices.free_slot(["b", "a"], tmp_path) as other:
        assert other == 0


def test_a_process_that_dies_frees_its_slot(tmp_path):
    program = (
        "import os, sys; from pathlib import Path; from ablate.devices import free_slot\n"
        "with free_slot(['a', 'b'], Path(sys.argv[1])) as index: os._exit(index)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, timeout=120).returncode == 0
    assert taken(["a", "b"], tmp_path, 1) == [0]


def test_the_pool_has_so_many_processes_per_visible_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert local_workers("auto") == 2
    assert local_workers("auto", 3) == 6


def test_a_placed_run_has_the_index_of_its_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(devices, "visible_gpus", lambda: ["a", "b"])
    monkeypatch.setattr(devices, "slots_folder", lambda: tmp_path)
    with devices.placed(Device.auto) as first, devices.placed(Device.cuda) as second:
        assert [str(first), str(second)] == ["cuda:0", "cuda:1"]
    with devices.placed(Device.cpu) as device:
        assert str(device) == "cpu"


def test_without_a_visible_gpu_auto_means_cpu_and_cuda_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device(Device.auto).type == "cpu"
    with pytest.raises(ValueError, match=r"runtime\.device=cuda: torch sees no CUDA device here"):
        choose_device(Device.cuda)

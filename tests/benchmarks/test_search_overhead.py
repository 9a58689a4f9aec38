"""The benchmark of a search searches for real, with an objective that trains nothing."""

import pytest
from hydra.core.global_hydra import GlobalHydra

from benchmarks.search_overhead import STORAGES, seconds_per_trial


@pytest.mark.parametrize("storage", STORAGES)
def test_every_storage_is_measured(tmp_path, storage):
    GlobalHydra.instance().clear()
    wall, busy = seconds_per_trial(tmp_path, storage, 3)
    assert wall > 0 < busy
    assert len(list(tmp_path.glob("*/runs/*/seed=0/run.json"))) == 3

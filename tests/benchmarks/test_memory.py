"""The memory benchmark on a few tiny runs; what it finds on real ones stands in benchmarks/README.md."""

import pytest

from ablate.records import StudyFolder
from benchmarks import memory


def test_the_peak_is_that_of_one_run_in_a_process_of_its_own(tmp_path):
    assert memory.peak_of_a_run(tmp_path, memory.TINY) > 10 * memory.MIB


def test_growth_is_read_after_the_first_and_the_last_of_its_runs(tmp_path, monkeypatch):
    def count_runs():
        return 100 * len(StudyFolder(tmp_path).runs())

    monkeypatch.setattr(memory, "resident", count_runs)
    assert memory.growth(tmp_path, first=1, last=3) == (100, 300)


def test_resident_memory_is_a_plausible_number_of_bytes():
    assert memory.MIB < memory.resident() < 2**40


def test_a_run_that_fails_is_no_measurement():
    with pytest.raises(RuntimeError, match="did not finish"):
        memory._finished(None)

"""The scale benchmark on a handful of small runs; what it finds on thousands stands in benchmarks/README.md."""

import pytest

from ablate.records import StudyFolder
from analysis.curves import RunLog
from benchmarks import analysis_scale
from benchmarks.analysis_scale import Measured, Size


@pytest.mark.parametrize(("all_eval", "evaluations"), [(False, 2), (True, 500)])
def test_the_study_has_the_size_asked_for(tmp_path, all_eval, evaluations):
    size = Size(runs=4, records=500, variants=2, all_eval=all_eval)
    study = analysis_scale.write_study(tmp_path / "s", size)
    assert len(study.runs()) == 4
    for run in study.runs():
        assert len(run.read_metrics()) == 500
        assert len(RunLog(run).series("eval/loss").step) == evaluations


def test_a_report_is_timed_cold_and_again_in_processes_of_their_own(tmp_path):
    study = analysis_scale.write_study(tmp_path / "s", Size(runs=6, records=250, variants=2))
    found = analysis_scale.measure(study)
    assert list(found) == ["cold", "again"]
    assert all(one.seconds > 0 and one.worked > 0 and one.peak > analysis_scale.MIB for one in found.values())
    assert study.analysis_cache.is_dir()


def test_a_report_that_fails_is_no_measurement(tmp_path, capfd):
    with pytest.raises(RuntimeError, match="ended with 2"):
        analysis_scale.report_cost(StudyFolder(tmp_path))
    assert "the study is empty" in capfd.readouterr().err


def test_a_line_says_what_was_measured_and_the_table_has_a_row_for_each_report():
    size = Size(runs=2000, records=10, variants=1, all_eval=True)
    line = analysis_scale.title(size, 10**9)
    assert line == "2,000 runs x 10 records, 1 variants, 1.00 GB of logs; every record is an evaluation"
    assert analysis_scale.table({"cold": Measured(2.0, 1.0, 2**20)}).row_count == 1

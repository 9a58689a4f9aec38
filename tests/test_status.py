"""How a study stands, for people and scripts."""

import json
import subprocess
import sys

import pytest

from ablate import locks, status
from ablate.records import PlannedCell, RunRecord, Status, StudyFolder, SweepPlan


@pytest.fixture
def study(tmp_path) -> StudyFolder:
    """rope: finished, diverged, running; roper: failed, dead owner, waiting."""
    study = StudyFolder(tmp_path / "copy_repeat")
    cells = [PlannedCell(cell=c * 64, label=c, factors={"attention": c}, folder=f"gpt-{c}", overrides=[]) for c in "ab"]
    study.write_sweep(
        SweepPlan(id="20260101T000000-aa", created="", command="", study="s", cells=cells, seeds=[0, 1, 2])
    )
    stands = {("a", 0): "finished", ("a", 1): "diverged", ("a", 2): "running", ("b", 0): "failed", ("b", 1): "running"}
    for (label, seed), how in stands.items():
        folder = study.run(f"gpt-{label}", seed)
        error = {"type": "ValueError", "message": "no"} if how == "failed" else None
        folder.write(
            RunRecord(
                status=Status(how),
                study="s",
                cell=label * 64,
                label=label,
                factors={},
                seed=seed,
                steps_planned=10,
                error=error,
            )
        )
        folder.append_metrics([{"step": 4, "split": "train", "loss": 0.5}])
    return study


def states(study: StudyFolder, capsys) -> dict:
    with pytest.raises(SystemExit) as end:
        status.main([str(study.path), "--json"])
    assert end.value.code == 1
    return json.loads(capsys.readouterr().out)


def test_every_planned_run_is_counted_once_and_a_dead_owner_is_an_interrupted_run(study, capsys):
    with locks.hold(study.run("gpt-a", 2).lock):
        found = states(study, capsys)
    assert found["counts"] == {"diverged": 1, "failed": 1, "finished": 1, "interrupted": 1, "running": 1, "waiting": 1}
    running = next(run for run in found["runs"] if run["status"] == "running")
    assert (running["label"], running["seed"], running["step"], running["steps_planned"]) == ("a", 2, 4, 10)


def test_the_table_names_failures_and_their_folders(study, capsys):
    with pytest.raises(SystemExit):
        status.main([str(study.path)])
    out = capsys.readouterr().out
    assert "failed b seed=0" in out
    assert "ValueError: no" in out
    assert "gpt-b" in out


def test_watching_ends_when_nothing_runs_or_waits(study, capsys):
    study.sweep_file("20260101T000000-aa").unlink()
    with pytest.raises(SystemExit):
        status.main([str(study.path), "--watch"])
    assert "finished" in capsys.readouterr().out


def test_an_unknown_study_names_the_nearest(study, capsys):
    with pytest.raises(SystemExit) as end:
        status.main([str(study.path.parent / "copy_repaet")])
    assert end.value.code == 2
    assert "did you mean copy_repeat?" in capsys.readouterr().err


def test_a_folder_that_is_no_study_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        status.main([str(tmp_path)])
    assert end.value.code == 2
    assert "not a study" in capsys.readouterr().err


def test_it_answers_without_torch_or_hydra():
    code = "import sys, ablate.status; print([m for m in ('torch', 'hydra', 'pandas') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"

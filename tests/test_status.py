"""How a study stands, for people and scripts."""

import contextlib
import errno
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from ablate import locks, status
from ablate.records import PlannedCell, RunRecord, Status, StudyFolder, SweepPlan
from ablate.sweep.runs import Watcher, is_at_work


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


def test_watching_goes_on_while_a_sweep_is_at_work_and_says_what_it_left(study, capsys, monkeypatch):
    waited = []
    with contextlib.ExitStack() as sweep:
        sweep.enter_context(locks.hold(study.sweep_lock("20260101T000000-aa")))
        monkeypatch.setattr(time, "sleep", lambda seconds: waited.append(seconds) or sweep.close())
        with pytest.raises(SystemExit):
            status.main([str(study.path), "--watch"])
    assert waited == [status.WATCH_EVERY]
    told = "no sweep is at work, and 3 of 6 runs are left; its command again continues"
    assert told in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("lock", ["sweeps/20270101T000000-bb.lock", "tuning/tune.lock"])
def test_watching_goes_on_for_a_search_before_its_plan_and_for_a_tuning(study, lock):
    path = study.path / lock
    path.parent.mkdir(exist_ok=True)
    with locks.hold(path):
        assert is_at_work(study)
    assert not is_at_work(study)


def test_a_damaged_plan_is_told_once_however_long_one_watches(study, capsys, monkeypatch):
    study.sweep_file("20270101T000000-bb").write_text("{")
    looks = iter(range(3))
    with contextlib.ExitStack() as sweep:
        sweep.enter_context(locks.hold(study.sweep_lock("20260101T000000-aa")))
        monkeypatch.setattr(time, "sleep", lambda seconds: next(looks, None) is not None or sweep.close())
        with pytest.raises(SystemExit):
            status.main([str(study.path), "--watch"])
    told = capsys.readouterr()
    assert (told.out + told.err).count("20270101T000000-bb.json") == 1


def test_a_label_in_brackets_is_shown_as_it_is(study, capsys):
    plan = study.read_sweep("20260101T000000-aa")
    plan.cells[0] = replace(plan.cells[0], label="[/red]range=[0.1,0.9]")
    study.write_sweep(plan)
    with pytest.raises(SystemExit):
        status.main([str(study.path)])
    assert "[/red]range=[0.1,0.9]" in capsys.readouterr().out


def test_ctrl_c_ends_the_watch_without_a_word(study, capsys, monkeypatch):
    def ctrl_c(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", ctrl_c)
    with locks.hold(study.sweep_lock("20260101T000000-aa")), pytest.raises(SystemExit) as end:
        status.main([str(study.path), "--watch"])
    assert end.value.code == 130
    assert capsys.readouterr().err == ""


RECORD_DAMAGES = {
    "error": "oops",
    "steps_planned": "many",
    "metrics": {"eval/loss": "low"},
    "factors": [],
    "label": None,
    "seed": "zero",
    "seconds": [],
    "status": "sleeping",
    "sweep": 3,
}


@pytest.mark.parametrize("key", RECORD_DAMAGES)
def test_a_record_with_a_value_of_another_kind_is_one_damaged_run(study, capsys, key):
    path = study.run("gpt-a", 0).record
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: RECORD_DAMAGES[key]}))
    found = states(study, capsys)
    assert found["counts"]["damaged"] == 1
    assert len(found["runs"]) == 6


@pytest.mark.parametrize("key", ["status", "study", "cell", "label", "factors", "seed"])
def test_a_record_without_a_needed_key_is_one_damaged_run(study, capsys, key):
    path = study.run("gpt-a", 0).record
    path.write_text(json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != key}))
    assert states(study, capsys)["counts"]["damaged"] == 1


@pytest.mark.parametrize("error", [{}, {"type": "ValueError"}, {"message": "no"}, {"type": "E", "why": "x"}])
def test_an_error_that_lacks_a_part_is_told_with_what_it_has(study, capsys, error):
    path = study.run("gpt-b", 0).record
    path.write_text(json.dumps(json.loads(path.read_text()) | {"error": error}))
    failed = next(run for run in states(study, capsys)["runs"] if run["status"] == "failed")
    assert failed["error"] == f"{error.get('type', '')}: {error.get('message', '')}"


@pytest.mark.parametrize(
    "line",
    [
        '{"step": null, "split": "train"}',
        '{"step": "x", "split": "train", "loss": 1}',
        '{"step": NaN, "split": "train", "loss": 1}',
        '{"step": 9, "split": ["train"], "loss": 1}',
        '{"step": 9, "split": "train", "loss": "low"}',
        '{"step": 9, "split": "train", "tokens": []}',
        '{"step": true, "split": "train"}',
        "[9]",
        "9",
        "[" * 100000,
    ],
)
def test_a_line_of_metrics_that_is_no_record_is_left_out(study, capsys, line):
    folder = study.run("gpt-a", 2)
    with folder.metrics.open("a") as file:
        file.write(line + "\n")
    interrupted = next(run for run in states(study, capsys)["runs"] if run["status"] == "interrupted")
    assert (interrupted["step"], interrupted["loss"]) == (4, 0.5)
    assert folder.read_metrics() == [{"step": 4, "split": "train", "loss": 0.5}]


PLAN_DAMAGES = {"seeds": None, "cells": [{"cell": "a"}], "until": [], "study": 3, "question": "x", "search": {}}


@pytest.mark.parametrize("key", PLAN_DAMAGES)
def test_a_damaged_plan_is_named_and_its_runs_are_still_found(study, capsys, key):
    path = study.sweep_file("20260101T000000-aa")
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: PLAN_DAMAGES[key]}))
    with pytest.raises(SystemExit):
        status.main([str(study.path), "--json"])
    out, err = capsys.readouterr()
    assert len(json.loads(out)["runs"]) == 5
    assert err.startswith(f"ablate: {path}: not a sweep plan (")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["record", "metrics", "lock"])
def test_a_folder_in_the_place_of_a_file_is_one_damaged_run_at_most(study, capsys, name):
    path = getattr(study.run("gpt-a", 0), name)
    path.unlink(missing_ok=True)
    path.mkdir()
    found = states(study, capsys)
    assert len(found["runs"]) == 6
    assert found["counts"].get("damaged", 0) == (name == "record")


def test_a_record_that_cannot_be_read_for_a_moment_is_looked_at_again(study, monkeypatch):
    watcher, folder = Watcher(), study.run("gpt-a", 0)
    with monkeypatch.context() as patch:

        def stale(path):
            raise OSError(errno.ESTALE, "Stale file handle")

        patch.setattr(Path, "read_bytes", stale)
        assert watcher.state(folder).status == "damaged"
    assert watcher.state(folder).status == "finished"


def test_a_study_that_cannot_be_read_is_told_in_one_line(study, capsys, monkeypatch):
    def denied(*_):
        raise PermissionError(errno.EACCES, "Permission denied", str(study.runs_path))

    monkeypatch.setattr(status, "study_states", denied)
    with pytest.raises(SystemExit) as end:
        status.main([str(study.path)])
    assert end.value.code == 2
    assert capsys.readouterr().err == f"ablate: {study.runs_path}: cannot be read (Permission denied)\n"


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


def told(states: list[status.RunState]) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(status.render(StudyFolder(Path("s")), states))
    return console.file.getvalue()


def run_state(seed: int, how: str, **more) -> status.RunState:
    plain = {"label": "rope", "seed": seed, "status": how, "step": 0, "steps_planned": 100, "loss": None, "error": None}
    return status.RunState(**{**plain, "folder": f"f{seed}", **more})


def test_the_time_left_is_that_of_the_finished_runs_over_those_under_way():
    done = [run_state(seed, "finished", seconds=seconds) for seed, seconds in enumerate((50.0, 70.0))]
    going = [run_state(2, "running", step=50), run_state(3, "running", step=100)]
    # 60 s a run; three wait, half a run and none are left of those under way, two at a time: 60 * 3.5 / 2 = 105 s.
    assert "about 1 min 45 s left" in told([*done, *going, *(run_state(seed, "waiting") for seed in range(4, 7))])
    assert "left" not in told(done)
    assert "left" not in told(going)


def test_hundreds_of_failures_do_not_fill_the_terminal():
    text = told([run_state(seed, "failed", error="ValueError: no") for seed in range(500)])
    assert len(text.splitlines()) < 45
    assert "and 484 more (--json has all)" in text
    assert "500 failed" in text


def test_a_run_on_another_machine_runs_for_as_long_as_its_heart_beats(study, capsys):
    """The sweep may be on any machine that shares the folder: only the lock's file tells, by owner and by time."""
    lock = study.run("gpt-b", 1).lock
    lock.write_text(json.dumps({"host": "elsewhere", "pid": 1, "started": 1, "boot": "another"}))
    assert states(study, capsys)["counts"]["running"] == 1
    beat = time.time() - locks.TAKE_OVER - 5
    os.utime(lock, (beat, beat))
    found = states(study, capsys)
    assert "running" not in found["counts"]
    assert found["counts"]["interrupted"] == 2
    assert lock.exists()

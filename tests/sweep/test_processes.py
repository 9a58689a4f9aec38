"""Sweeps over real worker processes: what dies takes nothing with it, what is stopped continues."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from ablate.records import RunRecord, Status, StudyFolder

CONF = Path(__file__).resolve().parents[1] / "faulty_conf"
SLOW = ("training.steps=3000", "training.eval_every=1000", "runtime.checkpoint_every=50")


def records(study: str) -> list[RunRecord]:
    return [record for folder in StudyFolder(Path("multirun") / study).runs() if (record := folder.read()) is not None]


def wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def some_run_has_a_checkpoint(study: str) -> bool:
    return any(folder.checkpoint.exists() for folder in StudyFolder(Path("multirun") / study).runs())


@pytest.mark.parametrize("how", ["raise", "exit", "memory"])
def test_a_run_that_dies_takes_no_other_with_it(spawn, tiny, how):
    sized = [value for value in tiny if not value.startswith("task.")]
    process = spawn(
        "-m",
        "--config-dir",
        str(CONF),
        *sized,
        "task=faulty",
        f"task.how=fine,{how}",
        "seed=range(3)",
        "study=faulty",
        "runtime.device=cpu",
    )
    out, err = process.communicate(timeout=180)
    assert process.returncode == 1, (out, err)
    by_status = {status: [r for r in records("faulty") if r.status is status] for status in Status}
    assert len(by_status[Status.finished]) == 3, out
    assert len(by_status[Status.failed]) == 3, out
    assert {r.factors["task.how"] for r in by_status[Status.failed]} == {how}
    kind = {"raise": "RuntimeError", "exit": "ProcessDied", "memory": "RuntimeError"}[how]
    assert {r.error["type"] for r in by_status[Status.failed]} == {kind}
    for record in by_status[Status.failed]:
        assert f"how={how} seed={record.seed}" in out


def test_ctrl_c_leaves_no_process_and_the_same_command_continues_to_the_same_result(spawn, tiny, cli):
    arguments = ["-m", *tiny, *SLOW, "attention=rope,roper", "seed=0", "study=stopped", "runtime.device=cpu"]
    process = spawn(*arguments)
    wait_for(lambda: some_run_has_a_checkpoint("stopped"))
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in out + err
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
    assert {r.status for r in records("stopped")} <= {Status.interrupted, Status.finished}
    assert any(r.status is Status.interrupted for r in records("stopped"))
    assert cli(*arguments).code == 0
    assert {r.status for r in records("stopped")} == {Status.finished}
    assert any(r.resumed for r in records("stopped"))
    assert cli(*[a.replace("stopped", "straight") for a in arguments]).code == 0
    assert [r.metrics for r in records("stopped")] == [r.metrics for r in records("straight")]


def test_a_killed_sweep_continues_where_it_was(spawn, tiny, cli):
    arguments = ["-m", *tiny, *SLOW, "attention=rope,roper", "seed=0", "study=killed", "runtime.device=cpu"]
    process = spawn(*arguments)
    wait_for(lambda: some_run_has_a_checkpoint("killed"))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert cli(*arguments).code == 0
    assert {r.status for r in records("killed")} == {Status.finished}
    assert sum(r.resumed for r in records("killed")) >= 1
    assert {r.steps_done for r in records("killed")} == {3000}


def test_when_the_sweeps_own_process_is_killed_its_workers_save_and_end(spawn, tiny, cli):
    steps = ("training.steps=200000", "training.eval_every=100000", "runtime.checkpoint_every=0")
    process = spawn("-m", *tiny, *steps, "attention=rope,roper", "seed=0", "study=orphans", "runtime.device=cpu")
    wait_for(lambda: len(records("orphans")) >= 1)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert {r.status for r in records("orphans")} == {Status.interrupted}
    assert all(
        folder.checkpoint.exists()
        for folder in StudyFolder(Path("multirun/orphans")).runs()
        if (record := folder.read()) is not None and record.steps_done
    )


def test_two_sweeps_of_one_study_at_once_train_every_run_once(spawn, tiny):
    arguments = ["-m", *tiny, "training.steps=150", "attention=rope,roper", "seed=range(3)", "study=shared"]
    first, second = spawn(*arguments, "runtime.device=cpu"), spawn(*arguments, "runtime.device=cpu")
    for process in (first, second):
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, (out, err)
        assert "verdict" in out
    found = records("shared")
    assert len(found) == 6
    assert {(r.status, r.resumed) for r in found} == {(Status.finished, 0)}
    for folder in StudyFolder(Path("multirun/shared")).runs():
        steps = [(r["split"], r["step"]) for r in folder.read_metrics()]
        lines = folder.metrics.read_text().splitlines()
        assert len(steps) == len(set(steps)) == len(lines)
        assert folder.superseded() == []
        assert folder.log.read_text().count("INFO ablate:") == 1


def test_one_process_per_core_is_the_default(cli):
    out = cli("--cfg", "all", "--package", "hydra.launcher", "--resolve").out
    assert f"n_jobs: {len(os.sched_getaffinity(0))}" in out

"""Sweeps through a real Slurm of one node (`.ci/slurm`): cancelled, warned, requeued, a node put down and up.

Skipped where no Slurm answers. One after the other, whatever else runs: they share the node.
"""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from ablate.records import Status
from tests.sweep.clusters import CONF, LONG, folders, needs_slurm, records, step_of, wait_for

pytestmark = [needs_slurm, pytest.mark.slow, pytest.mark.xdist_group("slurm")]
PACED = ("--config-dir", str(CONF), "task=faulty", "task.how=wait", "task.at=1")
SLURM = ("-m", "hydra/launcher=submitit_slurm", "hydra.launcher.poll_s=0.5", "runtime.device=cpu")


def slurm(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def jobs_of(name: str) -> dict[str, str]:
    """Jobs in the queue by their name, with their state."""
    lines = slurm("squeue", "-h", "-r", f"--name={name}", "-o", "%i %T").splitlines()
    return dict(line.split() for line in lines)


@pytest.fixture
def name(request, in_tmp):
    """A job name of this test alone; what it left in the queue is cancelled."""
    own = f"{request.node.name[5:40]}-{os.getpid()}"
    yield own
    subprocess.run(["scancel", f"--name={own}"], check=False, capture_output=True)
    wait_for(lambda: not jobs_of(own))


@pytest.fixture
def slurm_sweep(spawn, tiny, name):
    """Start a sweep of tiny runs; the sizes of the usual task are left out where another is named."""

    def command(*arguments: str):
        small = [one for one in tiny if "task=faulty" not in arguments or not one.startswith("task.")]
        return spawn(*SLURM, f"hydra.launcher.name={name}", *small, *arguments)

    return command


def ended(process, code: int) -> str:
    out, err = process.communicate(timeout=400)
    assert process.returncode == code, (out, err)
    assert "Traceback" not in out + err
    return out


def running(study: str):
    """Return the one run of a study once it trains."""
    wait_for(lambda: folders(study) and step_of(folders(study)[0]) > 0)
    return folders(study)[0]


def obeyed(job: str, *, outright: bool) -> bool:
    """Requeue a job, outright or by a warning; False while Slurm will not yet (it is still starting the job)."""
    words = ["scontrol", "requeue", job] if outright else ["scancel", "--signal=USR2", job]
    return subprocess.run(words, capture_output=True, timeout=60, check=False).returncode == 0


def at_work(folder, seen: int) -> bool:
    """Whether the run trains and is beyond the step `seen`."""
    record = folder.read()
    return record is not None and record.status is Status.running and step_of(folder) > seen


def preempt(name: str, folder, *, outright: bool) -> None:
    """Requeue the run's job and wait until the run goes on; asked again while nothing comes of it.

    On a busy machine Slurm may lose a warning, or hold a job whose start took too long, as it may for anybody.
    """
    before = folder.read().resumed
    (job,) = jobs_of(name)

    def goes_on(seconds: float) -> bool:
        with contextlib.suppress(AssertionError):
            wait_for(lambda: folder.read().resumed > before, seconds)
            return True
        return False

    for _ in range(5):
        if goes_on(30 if obeyed(job, outright=outright) else 1):
            return
        subprocess.run(["scontrol", "release", job], capture_output=True, timeout=60, check=False)
    told = [slurm("squeue"), slurm("scontrol", "show", "job", job), folder.log.read_text()[-2000:]]
    raise AssertionError("\n".join(["not requeued", str(folder.read()), *told]))


def test_ctrl_c_takes_back_what_waits_and_what_runs_saves(slurm_sweep, name):
    process = slurm_sweep(*LONG, "attention=rope,none", "seed=range(4)", "study=stopped")
    running("stopped")
    wait_for(lambda: list(jobs_of(name).values()).count("PENDING") == 6)
    os.killpg(process.pid, signal.SIGINT)
    out = ended(process, 130)
    assert "the same command continues" in out
    assert jobs_of(name) == {}
    assert {record.status for record in records("stopped")} == {Status.interrupted}
    assert len(records("stopped")) <= 2
    assert all(folder.checkpoint.exists() for folder in folders("stopped") if step_of(folder) > 0)


def test_a_job_cancelled_by_somebody_is_one_failure_and_the_others_finish(slurm_sweep, name):
    process = slurm_sweep("training.steps=6,200000", "training.eval_every=6", "seed=0,1", "study=cancelled")
    wait_for(lambda: any(record.steps_planned == 200000 for record in records("cancelled")))
    wait_for(lambda: sum(record.status is Status.finished for record in records("cancelled")) >= 1)
    slurm("scancel", f"--name={name}")
    out = ended(process, 1)
    by_status = [record.status for record in records("cancelled")]
    assert Status.finished in by_status
    assert "finished" in out
    assert set(by_status) <= {Status.finished, Status.interrupted}


def test_preempted_ten_times_a_run_has_its_steps_once_and_is_one_row(slurm_sweep, name, record_property):
    """Warned by SIGUSR2 as submitit has Slurm do, and requeued outright as an administrator would.

    Steps of 10 ms or more, so that the run is not over before the tenth, however fast the machine.
    """
    often = ("training.log_every=50", "training.eval_every=5000", "runtime.checkpoint_every=100")
    process = slurm_sweep(*PACED, "task.seconds=0.01", "training.steps=10000", *often, "seed=0", "study=preempted")
    folder = running("preempted")
    for turn in range(10):
        seen = step_of(folder)
        wait_for(lambda seen=seen: at_work(folder, seen))
        preempt(name, folder, outright=bool(turn % 2))
    ended(process, 0)
    (record,) = records("preempted")
    assert (record.status, record.steps_done) == (Status.finished, 10000)
    assert record.resumed >= 10
    lines = folder.metrics.read_text().splitlines()
    steps = [(line["split"], line["step"]) for line in folder.read_metrics()]
    assert len(steps) == len(set(steps)) == len(lines)
    assert len(folder.superseded()) == 0
    record_property("preemptions through Slurm, every step once", record.resumed)


def test_a_run_over_its_time_limit_is_requeued_until_it_is_done(slurm_sweep):
    """Steps of .2 s on any machine: 120 s of them, with a limit of 120 s and a warning 30 s or more before it."""
    steps = ("training.steps=600", "training.eval_every=300")
    limit = ("hydra.launcher.timeout_min=2", "hydra.launcher.signal_delay_s=30")
    process = slurm_sweep(*PACED, *steps, *limit, "seed=0", "study=limited")
    ended(process, 0)
    (record,) = records("limited")
    assert (record.status, record.steps_done) == (Status.finished, 600)
    assert record.resumed >= 1


def test_a_node_put_down_and_up_costs_no_run(slurm_sweep, name):
    process = slurm_sweep(*LONG, "training.steps=4000", "training.eval_every=2000", "seed=0", "study=down")
    running("down")
    slurm("scontrol", "update", "NodeName=localhost", "State=DOWN", "Reason=test")
    try:
        wait_for(lambda: "RUNNING" not in jobs_of(name).values())
        assert process.poll() is None
    finally:
        resume = ["scontrol", "update", "NodeName=localhost", "State=RESUME"]
        subprocess.run(resume, check=False, capture_output=True)  # refused where the node came back by itself
    ended(process, 0)
    (record,) = records("down")
    assert (record.status, record.steps_done) == (Status.finished, 4000)


def test_jobs_that_a_killed_sweep_left_in_the_queue_and_those_of_the_next_train_each_run_once(slurm_sweep, name):
    steps = ("training.steps=3000", "training.eval_every=1500", "training.log_every=100", "attention=rope,none")
    first = slurm_sweep(*steps, "seed=0,1", "study=left")
    wait_for(lambda: any(step_of(folder) > 0 for folder in folders("left")))
    first.kill()
    first.communicate()
    assert "PENDING" in jobs_of(name).values()
    again = slurm_sweep(*steps, "seed=0,1", "study=left")
    ended(again, 0)
    wait_for(lambda: not jobs_of(name))
    found = records("left")
    assert [(record.status, record.steps_done, record.resumed) for record in found] == [(Status.finished, 3000, 0)] * 4
    for folder in folders("left"):
        steps_of_log = [(line["split"], line["step"]) for line in folder.read_metrics()]
        assert len(steps_of_log) == len(set(steps_of_log)) == len(folder.metrics.read_text().splitlines())
        assert folder.superseded() == []


def test_a_partition_that_does_not_exist_is_told_in_one_line(slurm_sweep):
    process = slurm_sweep("hydra.launcher.partition=nowhere", "seed=0", "study=nowhere")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "invalid partition" in err
    assert not Path("multirun/nowhere/runs").exists()

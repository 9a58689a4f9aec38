"""Every launcher gives the same records; what goes wrong in one job, worker or address is told and stays there."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from ablate import locks
from ablate.config.errors import ConfigError
from ablate.records import Status
from hydra_plugins.ablate_launchers import needed
from tests.sweep.clusters import CONF, LONG, folders, needs_ray, needs_slurm, needs_submitit, records, step_of, wait_for

LAUNCHERS = [
    "local",
    pytest.param("submitit_local", marks=needs_submitit),
    pytest.param("submitit_slurm", marks=[needs_slurm, pytest.mark.xdist_group("slurm")]),
    pytest.param("ray", marks=needs_ray),
]
LOCALLY = ("-m", "hydra/launcher=submitit_local", "runtime.device=cpu")
RAY = ("-m", "hydra/launcher=ray", "hydra.launcher.n_jobs=2", "runtime.device=cpu")


def told(process, code: int) -> tuple[str, str]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == code, (out, err)
    assert "Traceback" not in out + err
    return out, err


def table(out: str) -> str:
    """The table and its caption, without what the runs cost."""
    return out.partition("trained for")[2].partition("\n")[2].partition("Compute:")[0]


def results(study: str) -> list[tuple]:
    """What two launchers must agree on: the runs, their resolved configs and every metric."""
    found = []
    for folder, record in zip(folders(study), records(study), strict=True):
        config = yaml.safe_load(folder.config.read_text())
        config["runtime"].pop("sweep_id")
        config.pop("study")
        name = (record.cell, record.seed, record.label, record.status, record.steps_done, record.resumed)
        found.append((name, config, record.metrics))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_same_eight_runs_have_the_same_records_and_table_by_every_launcher(
    sweep, spawn, tiny, record_property, launcher
):
    runs = ("attention=rope,none", "seed=range(4)", "runtime.device=cpu")
    expected = sweep(*runs, "study=basic")
    assert expected.code == 0
    out, _ = told(spawn("-m", f"hydra/launcher={launcher}", *tiny, *runs, f"study={launcher}"), 0)
    assert len(results("basic")) == 8
    assert results(launcher) == results("basic")
    assert table(out) == table(expected.out) != ""
    record_property(f"runs by {launcher}, equal to those by basic", len(results(launcher)))


@needs_submitit
@pytest.mark.slow
def test_g3_what_became_of_each_job_is_told_apart_and_the_others_finish(spawn, tiny):
    sized = [value for value in tiny if not value.startswith(("task.", "training."))]
    limit = ("hydra.launcher.timeout_min=1", "hydra.launcher.max_num_timeout=0", "hydra.launcher.n_jobs=3")
    task = ("--config-dir", str(CONF), "task=faulty", "task.how=wait,fine,raise,exit,kill,memory", "training.steps=600")
    out, _ = told(spawn(*LOCALLY, *limit, *sized, *task, "training.eval_every=300", "seed=0", "study=six"), 1)
    found = {record.factors["task.how"]: (record.status, (record.error or {}).get("type")) for record in records("six")}
    assert found == {
        "fine": (Status.finished, None),
        "raise": (Status.failed, "RuntimeError"),
        "exit": (Status.failed, "ProcessDied"),
        "kill": (Status.failed, "ProcessDied"),
        "memory": (Status.failed, "RuntimeError"),
        "wait": (Status.interrupted, None),
    }
    assert all(f"how={how} seed=0" in out for how in found)


@needs_submitit
def test_g7_warned_then_killed_then_run_again_it_is_one_run_with_its_steps_once(spawn, tiny):
    command = (*LOCALLY, *tiny, *LONG, "training.steps=8000", "training.eval_every=4000", "seed=0", "study=again")
    process = spawn(*command)
    wait_for(lambda: folders("again") and step_of(folders("again")[0]) > 0)
    (folder,) = folders("again")
    os.kill(locks.read_owner(folder.lock).pid, signal.SIGUSR2)
    wait_for(lambda: folder.read().resumed == 1 and folder.read().status is Status.running and step_of(folder) > 0)
    os.kill(locks.read_owner(folder.lock).pid, signal.SIGKILL)
    out, _ = told(process, 1)
    assert "ProcessDied" in out
    told(spawn(*command), 0)
    (record,) = records("again")
    assert (record.status, record.steps_done, record.resumed) == (Status.finished, 8000, 2)
    steps = [(line["split"], line["step"]) for line in folder.read_metrics()]
    assert len(steps) == len(set(steps)) == len(folder.metrics.read_text().splitlines())


@needs_submitit
def test_g9_ctrl_c_leaves_no_process_and_begins_nothing_that_waits(spawn, tiny):
    process = spawn(*LOCALLY, "hydra.launcher.n_jobs=1", *tiny, *LONG, "seed=range(3)", "study=stopped")
    wait_for(lambda: folders("stopped") and step_of(folders("stopped")[0]) > 0)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    told(process, 130)
    assert psutil.wait_procs(children, timeout=20)[1] == []
    assert [record.status for record in records("stopped")] == [Status.interrupted]
    assert folders("stopped")[0].checkpoint.exists()


def at_work(study: str) -> list:
    return [folder for folder in folders(study) if step_of(folder) > 6 and locks.is_held(folder.lock)]


@needs_ray
@pytest.mark.slow
def test_a_ray_worker_that_is_killed_takes_its_own_run_only(spawn, tiny):
    process = spawn(*RAY, *tiny, "training.steps=6,200000", "training.eval_every=6", "seed=0,1", "study=killed")
    for killed in range(2):  # both long runs, one after the other or both at once
        wait_for(lambda: [folder for folder in folders("killed") if step_of(folder) > 6 and locks.is_held(folder.lock)])
        at_it = next(f for f in folders("killed") if step_of(f) > 6 and locks.is_held(f.lock))
        os.kill(locks.read_owner(at_it.lock).pid, signal.SIGKILL)
        wait_for(lambda lock=at_it.lock: not locks.is_held(lock))
        assert killed < 2
    told(process, 1)
    found = sorted(
        (record.steps_planned, record.status, (record.error or {}).get("type")) for record in records("killed")
    )
    assert found == [(6, Status.finished, None)] * 2 + [(200000, Status.failed, "ProcessDied")] * 2


@needs_ray
@pytest.mark.slow
def test_a_sweep_on_ray_listens_on_loopback_only_and_saves_what_runs_when_told_to_end(spawn, tiny):
    process = spawn(*RAY, *tiny, *LONG, "seed=0", "study=ended")
    wait_for(lambda: folders("ended") and step_of(folders("ended")[0]) > 0)
    everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    listening = {one.laddr.ip for each in everyone for one in each.net_connections("tcp") if one.status == "LISTEN"}
    assert listening
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    process.terminate()
    out, _ = told(process, 130)
    assert "the same command continues" in out
    assert [record.status for record in records("ended")] == [Status.interrupted]


@pytest.fixture
def ray_head(tmp_path, monkeypatch):
    """The address of a cluster of this machine that somebody else started, on loopback, with two workers."""
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # which has Ray stay on loopback
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = ("--node-ip-address=127.0.0.1", f"--port={port}", "--num-cpus=2", "--include-dashboard=false")
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *where]
    with (tmp_path / "head.log").open("w") as log:
        head = subprocess.Popen(command, stdout=log, stderr=log)
    wait_for(lambda: "Ray runtime started" in (tmp_path / "head.log").read_text())
    yield f"127.0.0.1:{port}"
    everyone = [psutil.Process(head.pid), *psutil.Process(head.pid).children(recursive=True)]
    head.terminate()
    for left in psutil.wait_procs(everyone, timeout=20)[1]:
        left.kill()
    head.wait()


@needs_ray
@pytest.mark.slow
def test_a_ray_cluster_that_is_there_is_joined_and_left_as_it_was(ray_head, spawn, sweep, tiny):
    runs = ("attention=rope,none", "seed=0,1", "runtime.device=cpu")
    there = ("-m", "hydra/launcher=ray", f"hydra.launcher.address={ray_head}", *tiny, *runs)
    assert sweep(*runs, "study=basic").code == 0
    for study in ("first", "second"):
        told(spawn(*there, f"study={study}"), 0)
        assert len(results(study)) == 4
        assert results(study) == results("basic")
    process = spawn(*there, "study=large", "hydra.launcher.gpus_per_run=1")
    wait_for(lambda: list(Path("multirun").glob("large/sweeps/*.json")))
    process.terminate()
    _, err = told(process, 130)
    assert "no node of the cluster has as much now (2 CPUs, 0 GPUs); the runs wait for one" in err
    assert records("large") == []


WAITS = """
import sys
from pathlib import Path

from ablate.sweep import on_ray

on_ray.GRACE = 2.0
on_ray.connect("local", 1)
try:
    for job in on_ray.carry_out(print, [(0, ["seed=0"]), (1, ["seed=1"])], on_ray.Needs(1, 1), Path(sys.argv[1])):
        print(job.status.name)
finally:
    on_ray.disconnect()
"""


@needs_ray
def test_what_waits_on_ray_for_a_gpu_that_never_comes_ends_with_the_sweep(in_tmp):
    (in_tmp / "stop").touch()
    environment = {**os.environ, "PYTHONPATH": str(CONF.parents[1]), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", WAITS, "stop"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "UNKNOWN\nUNKNOWN\n", done.stderr


TOLD_TO_END = """
import os
import signal
import subprocess
import sys

from hydra.core.utils import JobReturn
from hydra_plugins.ablate_launchers import ray_environment

ray_environment("local")
from ablate.sweep import on_ray

seen = []
signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
many = "import os, signal, time\\nwhile os.getppid() == %d:\\n    os.kill(%d, signal.SIGTERM)\\n    time.sleep(0.003)"
sender = subprocess.Popen([sys.executable, "-c", many % (os.getpid(), os.getpid())])
on_ray.connect("local", 1)
try:
    jobs = on_ray.carry_out(lambda job, number: JobReturn(), [(0, ["seed=0"])], on_ray.Needs(1, 0), None)
finally:
    on_ray.disconnect()
sender.kill()
sender.wait()
assert len(seen) > 100
print(len(jobs), "back")
"""


@needs_ray
@pytest.mark.slow
def test_a_signal_to_end_is_the_sweeps_own_while_ray_starts_works_and_ends(in_tmp):
    environment = {**os.environ, "PYTHONPATH": str(CONF.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", TOLD_TO_END], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1 back\n"), done.stderr


@needs_ray
@pytest.mark.slow
def test_n_jobs_says_how_many_run_at_once_on_ray_whatever_they_are_to_need(spawn, tiny):
    process = spawn(*RAY, "hydra.launcher.cpus_per_run=2", *tiny, *LONG, "seed=range(3)", "study=many")
    wait_for(lambda: len(at_work("many")) == 2)
    process.terminate()
    told(process, 130)
    assert len(records("many")) == 2  # the third never began


@needs_ray
@pytest.mark.parametrize(
    ("address", "why"),
    [("127.0.0.1:1", "nothing answers there"), ("ray://127.0.0.1:1", "nothing answers there"), ("here", "HOST:PORT")],
)
def test_g4_a_wrong_ray_address_is_refused_before_anything_is_written(spawn, tiny, address, why):
    out, err = told(spawn(*RAY, f"hydra.launcher.address={address}", *tiny, "seed=0"), 2)
    assert out == ""
    assert err.startswith(f"ablate: hydra.launcher.address={address}: ")
    assert why in err
    assert err.count("\n") == 1
    assert not Path("multirun").exists()


SCRIPT = """
from ablate.run import main
from tests.faulty import Faulty


class Mine(Faulty):
    pass


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("launcher", "code"), [("local", 2), ("basic", 0)])
def test_g1_a_task_of_the_script_itself_is_refused_at_the_start_unless_it_stays_in_its_process(
    in_tmp, tiny, launcher, code
):
    (in_tmp / "mine.py").write_text(SCRIPT)
    (in_tmp / "conf/task").mkdir(parents=True)
    (in_tmp / "conf/task/mine.yaml").write_text("_target_: __main__.Mine\nseq_len: 8\nhow: fine\nat: 3\nseconds: 0.2\n")
    sized = [value for value in tiny if not value.startswith("task.")]
    done = subprocess.run(
        [sys.executable, "mine.py", "-m", f"hydra/launcher={launcher}", "--config-dir=conf", "task=mine", *sized],
        env={**os.environ, "PYTHONPATH": str(CONF.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert ("_target_=__main__.Mine: other processes cannot import" in done.stderr) == (code == 2)
    assert Path("multirun").exists() == (code == 0)


def test_an_extra_that_is_not_installed_is_named_with_the_command():
    with pytest.raises(ConfigError, match=r"no_such_package is not installed: pip install 'ablate\[slurm\]'"):
        needed("no_such_package", "slurm")


@needs_submitit
@pytest.mark.parametrize(("minutes", "delay", "least"), [(2, 90, 3), (1, 0, 2), (3, 120, 4)])
def test_a_limit_whose_warning_may_come_before_the_run_is_refused(cli, minutes, delay, least):
    """Slurm sends it up to a minute early: it would reach a process that does not listen yet, and end it."""
    limit = (f"hydra.launcher.timeout_min={minutes}", f"hydra.launcher.signal_delay_s={delay}")
    result = cli("-m", "hydra/launcher=submitit_slurm", *limit, "attention=rope,none")
    assert result.code == 2
    assert result.err.startswith(f"ablate: hydra.launcher.timeout_min={minutes}: Slurm warns")
    assert result.err.endswith(f"allow at least {least} minutes\n")
    assert not Path("multirun").exists()


@pytest.mark.parametrize(
    ("launcher", "told"),
    [
        ("basic", "at 1 at a time"),
        ("local", "at 3 at a time"),
        pytest.param("submitit_local", "at 3 at a time", marks=needs_submitit),
        pytest.param("ray", "at 3 at a time", marks=needs_ray),
        pytest.param("submitit_slurm", None, marks=needs_submitit),
    ],
)
def test_the_time_that_is_left_is_told_where_it_can_be_known(sweep, cli, tiny, launcher, told):
    sweep("attention=rope", "seed=0", "runtime.device=cpu")
    some = ["hydra.launcher.n_jobs=3"] if told and launcher != "basic" else []
    out = cli("-m", f"hydra/launcher={launcher}", *some, *tiny, "seed=range(9)", "sweep.dry_run=true").out
    assert "1 done, 8 to train" in out
    assert (told in out) if told else "at a time" not in out

"""Jobs submitted to a scheduler that has limits: all get there, in order, however few it takes at a time."""

import logging
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from hydra.core.utils import JobStatus

from ablate.sweep import handover
from hydra_plugins.ablate_launchers import SubmititSlurmLauncher
from tests.sweep.clusters import CONF, needs_submitit, records

cluster = pytest.importorskip("ablate.sweep.cluster", reason="submitit is not installed (extra slurm)")
pytestmark = needs_submitit


class Site:
    """A scheduler that refuses arrays above `array` and more than `queue` jobs at a time; a look ends the first one."""

    def __init__(self, array: int = 1000, queue: int = 10**6, room: int = 10**6) -> None:
        self.array, self.most, self.size = array, queue, room
        self.waits: list[int] = []
        self.taken: list[list[int]] = []
        self.refused = 0

    def room(self, active: int) -> int:
        return self.size - active

    def submit(self, jobs):
        numbers = [number for number, _ in jobs]
        if len(numbers) > self.array or len(self.waits) + len(numbers) > self.most:
            self.refused += 1
            raise cluster.RefusedError("sbatch: error: Batch job submission failed: limit")
        self.taken.append(numbers)
        self.waits += numbers
        lost = SimpleNamespace(read_bytes=lambda: b"")
        return [SimpleNamespace(job_id=f"{n}", paths=SimpleNamespace(result_pickle=lost, stderr="")) for n in numbers]

    def queue(self, jobs) -> Mapping[str, str]:
        self.waits = self.waits[1:]
        return {f"{number}": "RUNNING" for number in self.waits}

    def take_back(self, jobs) -> None:
        """Unused: nothing is stopped."""

    def end(self, jobs) -> None:
        self.waits = []


OPTIONS = {"timeout_min": 5, "signal_delay_s": 30, "max_num_timeout": 1}


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str, first: str = "true") -> None:
    """Put commands on the path that do something first, and then refuse as sbatch does."""
    bin_ = folder / "bin"
    bin_.mkdir()
    for name in names:
        refusal = "echo 'sbatch: error: Invalid job array specification' >&2; exit 1"
        (bin_ / name).write_text(f"#!/bin/sh\n{first}\n{refusal}\n")
        (bin_ / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")


def carried_out(site: Site, jobs: int) -> list:
    return cluster.carry_out(site, [[f"seed={seed}"] for seed in range(jobs)], 5, None, 0.0)


@pytest.mark.parametrize("array", [1, 2, 7, 30, 99, 100])
def test_arrays_become_smaller_until_the_site_takes_them(array):
    site = Site(array=array)
    returned = carried_out(site, 100)
    assert len(returned) == 100
    assert [number for numbers in site.taken for number in numbers] == list(range(5, 105))
    assert max(map(len, site.taken)) <= array
    assert max(map(len, site.taken)) > array / 2


@pytest.mark.parametrize("queue", [1, 3, 40])
def test_jobs_above_a_limit_of_the_queue_are_submitted_as_others_end(queue, caplog):
    site = Site(queue=queue)
    with caplog.at_level(logging.WARNING):
        assert len(carried_out(site, 50)) == 50
    assert [number for numbers in site.taken for number in numbers] == list(range(5, 55))
    assert "are submitted later, the scheduler takes none now: sbatch: error" in caplog.text


def test_a_limit_that_is_named_is_never_met():
    site = Site(queue=8, room=8)
    assert len(carried_out(site, 50)) == 50
    assert site.refused == 0
    assert len(site.taken[0]) == 8


def test_a_scheduler_that_takes_nothing_is_told_after_a_few_tries():
    site = Site(array=0)
    with pytest.raises(cluster.RefusedError, match="Batch job submission failed"):
        carried_out(site, 500)
    assert site.refused == 9  # 500, 250, ..., 1


def test_a_scheduler_that_takes_none_for_a_while_is_asked_again_later(monkeypatch):
    site, now = Site(), [0.0]
    monkeypatch.setattr(cluster.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(cluster.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + 1.0))
    take = site.submit

    def down_for_five_minutes(jobs):
        if site.taken and now[0] < 300:
            raise cluster.RefusedError("Unable to contact slurm controller")
        return take(jobs)

    site.submit, site.array = down_for_five_minutes, 10
    assert len(carried_out(site, 20)) == 20
    assert 300 <= now[0] < 300 + cluster.AGAIN + 20


def test_a_scheduler_that_took_jobs_of_an_earlier_launch_is_asked_again_too(monkeypatch):
    site, now = Site(), [0.0]
    monkeypatch.setattr(cluster.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(cluster.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + 1.0))
    monkeypatch.setattr(cluster, "Slurm", lambda *arguments: site)
    monkeypatch.setattr(handover, "Carrier", lambda *arguments: None)
    launcher = SubmititSlurmLauncher(submitit_folder="", poll_s=0.0)
    launcher.hydra_context = launcher.task_function = launcher.config = None
    site.array = 0
    for _ in range(2):
        with pytest.raises(cluster.RefusedError):
            launcher.launch([["seed=0"]], 0)
    site.array = 10
    assert len(launcher.launch([["seed=0"]], 0)) == 1
    take = site.submit

    def down_for_five_minutes(jobs):
        if now[0] < 300:
            raise cluster.RefusedError("Unable to contact slurm controller")
        return take(jobs)

    site.submit = down_for_five_minutes
    assert len(launcher.launch([["seed=1"], ["seed=2"]], 1)) == 2


def test_a_stop_while_jobs_are_refused_ends_the_wait(tmp_path):
    site, stop = Site(queue=1), tmp_path / "stop"
    take = site.submit

    def stopped_at_the_third(jobs):
        taken = take(jobs)
        if len(site.taken) == 3:
            stop.touch()
        return taken

    site.submit = stopped_at_the_third
    returned = cluster.carry_out(site, [["seed=0"]] * 10, 0, stop, 0.0)
    assert [job.status for job in returned[3:]] == [JobStatus.UNKNOWN] * 7
    assert len(site.taken) == 3


def test_a_refusal_leaves_nothing_in_the_folder(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "sbatch", "srun")
    for jobs in (1, 3):
        slurm = cluster.Slurm(print, str(tmp_path / "jobs"), OPTIONS)
        with pytest.raises(cluster.RefusedError, match="Invalid job array specification"):
            slurm.submit([(number, ["seed=0"]) for number in range(jobs)])
        assert [path.name for path in (tmp_path / "jobs").iterdir()] == [".turn"]


def test_a_refusal_takes_nothing_of_the_jobs_that_run_meanwhile(tmp_path, monkeypatch):
    names = ["7_0_log.out", "7_0_result.pkl", "8_1_log.err", "8_submitted.pkl"]
    install(tmp_path, monkeypatch, "sbatch", "srun", first=f"cd {tmp_path}/jobs; touch {' '.join(names)}")
    slurm = cluster.Slurm(print, str(tmp_path / "jobs"), OPTIONS)
    with pytest.raises(cluster.RefusedError):
        slurm.submit([(0, ["seed=0"])])
    assert sorted(path.name for path in (tmp_path / "jobs").iterdir()) == [".turn", *names]


def test_a_scheduler_that_is_gone_when_jobs_are_cancelled_is_said_only(tmp_path, monkeypatch, caplog):
    install(tmp_path, monkeypatch, "sbatch", "srun")
    slurm = cluster.Slurm(print, str(tmp_path / "jobs"), OPTIONS)
    monkeypatch.setenv("PATH", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        slurm.end([SimpleNamespace(job_id="7_0")])
    assert "scancel does not answer" in caplog.text


class Odd(Exception):
    """Cannot be made again from its pickle, like many an exception with two arguments."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


@pytest.mark.parametrize("content", [b"", pickle.dumps(("success", 1))[:-4], pickle.dumps(("success", Odd("1", "2")))])
def test_a_result_that_cannot_be_read_is_that_jobs_affair_only(tmp_path, content):
    site, result = Site(), tmp_path / "result.pkl"
    result.write_bytes(content)
    take = site.submit

    def written(jobs):
        taken = take(jobs)
        taken[1].paths.result_pickle = result
        return taken

    site.submit = written
    returned = carried_out(site, 3)
    assert [job.status for job in returned] == [JobStatus.FAILED] * 3
    with pytest.raises(RuntimeError, match="its result cannot be read"):
        _ = returned[1].return_value


@pytest.mark.parametrize("devices", ["1,3", "", None])
def test_a_process_of_submitit_sees_the_gpus_that_the_sweep_sees(devices, spawn, tiny, monkeypatch):
    """submitit sets the variable to the GPUs that it was asked for: none here, which would hide them all."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if devices is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    sized = [value for value in tiny if not value.startswith("task.")]
    faulty = ("--config-dir", str(CONF), "task=faulty", "task.how=tell", "runtime.device=cpu")
    process = spawn("-m", "hydra/launcher=submitit_local", *sized, *faulty, "seed=0", "study=seen")
    out, err = process.communicate(timeout=240)
    assert process.returncode == 1, (out, err)
    assert [record.error["message"] for record in records("seen")] == [f"sees {devices!r}"]

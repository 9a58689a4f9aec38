"""A full or read-only disk, too few file descriptors, too little memory: the run says so and costs no other run."""

import contextlib
import os
import resource
import subprocess
from pathlib import Path

import pytest

import ablate.job
from ablate.config.explain import compose_cell
from ablate.config.identity import cell_folder
from ablate.config.register import plain, to_run_config
from ablate.job import Context, perform
from ablate.records import RunFolder, Status, StudyFolder
from ablate.training import checkpoint


def mounted(options: str, path: Path) -> bool:
    path.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    return os.geteuid() == 0 and subprocess.run(mount, check=False, capture_output=True).returncode == 0


def disk(path: Path, size: str):
    if not mounted(f"size={size}", path):
        pytest.skip("needs root and the right to mount")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 200 kB: enough for a few records and checkpoints, or skip where none can be mounted."""
    yield from disk(tmp_path / "disk", "200k")


@pytest.fixture
def roomy_disk(tmp_path):
    """A disk with room for the runs of a search."""
    yield from disk(tmp_path / "disk", "4m")


def fill(path: Path) -> None:
    """Leave no room on a disk."""
    descriptor = os.open(path / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(descriptor, bytes(4096))
    os.close(descriptor)
    assert os.statvfs(path).f_bavail == 0


def run(arguments, folder: RunFolder):
    config = compose_cell([*arguments, "runtime.device=cpu"])
    return perform(to_run_config(config), plain(config), folder, Context(label="x", factors={}, command="test"))


def test_a_disk_that_is_full_at_the_start_is_told_and_leaves_nothing(tiny, small_disk):
    fill(small_disk)
    with pytest.raises(OSError, match=r"the run cannot be recorded: No space left on device.*seed=0"):
        run(tiny, RunFolder(small_disk / "seed=0"))
    assert not [path for path in small_disk.rglob("*") if path.name.endswith(".tmp") or path.name == "lock"]


def test_a_disk_that_fills_up_costs_no_checkpoint_and_the_run_goes_on_when_there_is_room(tiny, small_disk):
    folder = RunFolder(small_disk / "seed=0")
    arguments = [*tiny, "training.steps=40", "runtime.checkpoint_every=1", "training.log_every=1"]
    straight = RunFolder(small_disk.parent / "straight")
    run(arguments, straight)

    def filling(config, values):
        def judge(step, scores):
            if step == 3:
                fill(small_disk)
            return False

        return perform(config, values, folder, Context(label="x", factors={}, command="t", should_prune=judge))

    config = compose_cell([*arguments, "runtime.device=cpu"])
    with contextlib.suppress(OSError):  # there may be no room for the record either
        record = filling(to_run_config(config), plain(config)).record
        assert record.status is Status.failed
        assert "No space left" in record.error["message"]
    assert folder.read().status is not Status.finished
    source = folder.read().checkpoint_source
    assert checkpoint.load(folder, source=source).step >= 1
    (small_disk / "filler").unlink()
    done = run(arguments, folder)
    assert done.record.status is Status.finished
    assert done.record.resumed == 1
    assert done.record.metrics == straight.read().metrics
    assert not list(folder.path.glob(".*.tmp"))


def test_a_full_disk_under_one_run_of_a_sweep_leaves_the_others_and_exits_with_1(sweep, tiny, small_disk):
    """The folder of one cell lies on a full disk of its own."""
    cell = cell_folder(plain(compose_cell([*tiny, "attention=rope"])))
    runs = StudyFolder(Path("multirun/copy_repeat").absolute()).runs_path
    runs.mkdir(parents=True)
    fill(small_disk)
    (runs / cell).symlink_to(small_disk)
    result = sweep("attention=none,rope,alibi", "seed=0", "runtime.device=cpu")
    assert result.code == 1, result.err
    assert "No space left on device" in result.out
    statuses = {folder.path.parent.name: folder.read() for folder in StudyFolder(Path("multirun/copy_repeat")).runs()}
    assert sorted(record.status for name, record in statuses.items() if record) == [Status.finished] * 2
    (small_disk / "filler").unlink()
    assert sweep("attention=none,rope,alibi", "seed=0", "runtime.device=cpu").code == 0


def test_a_full_disk_under_the_plan_is_refused_before_anything_runs(sweep, small_disk):
    study = Path("multirun/copy_repeat")
    study.mkdir(parents=True)
    fill(small_disk)
    (study / "sweeps").symlink_to(small_disk)
    result = sweep("attention=none,rope", "seed=0")
    assert result.code == 2
    assert "the plan cannot be written" in result.err
    assert "No space left on device" in result.err
    assert StudyFolder(study).runs() == []


@pytest.mark.parametrize("after", [0, 2, 3])
def test_a_full_disk_under_a_search_is_told_in_one_line_and_the_search_goes_on(sweep, roomy_disk, monkeypatch, after):
    """Full before the first trial, and when the second run of the second and of the third trial is built."""
    search = ("hydra/sweeper=optuna", "hydra.sweeper.n_trials=6", "optimizer.lr=interval(1e-4,1e-2)", "seed=0,1")
    command = (*search, f"runtime.output_dir={roomy_disk}", "runtime.checkpoint_every=0", "study=s")
    if after == 0:
        fill(roomy_disk)
    began, build = iter(range(100)), ablate.job.build

    def built(config, device):
        if next(began) == 2 * after - 1:
            fill(roomy_disk)
        return build(config, device)

    monkeypatch.setattr(ablate.job, "build", built)
    result = sweep(*command)
    assert result.code == (2 if after == 0 else 1)
    assert "No space left on device" in result.out + result.err
    assert "Traceback" not in result.out + result.err
    if after == 0:
        assert result.err.count("\n") == 1
        assert "search.journal: cannot be written" in result.err
    (roomy_disk / "filler").unlink()
    monkeypatch.setattr(ablate.job, "build", build)
    assert sweep(*command).code == 0, "the same command goes on, and no trial was spent on the full disk"
    statuses = [folder.read().status for folder in StudyFolder(roomy_disk / "s").runs()]
    assert statuses == [Status.finished] * 12


def test_a_look_that_cannot_be_noted_is_told_and_the_results_are_shown(sweep, monkeypatch):
    def refuse(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StudyFolder, "note_look", refuse)
    result = sweep("attention=none,rope", "seed=0")
    assert result.code == 1
    assert "this look at the results could not be noted" in result.out
    assert "verdict" in result.out
    assert [folder.read().status for folder in StudyFolder(Path("multirun/copy_repeat")).runs()] == ["finished"] * 2


def test_a_read_only_folder_is_told_in_one_line(cli, tiny, tmp_path):
    path = tmp_path / "read_only"
    if not mounted("size=200k,ro", path):
        pytest.skip("needs root and the right to mount")
    try:
        result = cli(*tiny, f"runtime.output_dir={path}")
        swept = cli("-m", "hydra/launcher=basic", *tiny, f"runtime.output_dir={path}", "attention=rope,none")
    finally:
        subprocess.run(["umount", str(path)], check=True)
    assert result.code in {1, 2}
    assert "cannot be written" in result.err
    assert swept.code == 2
    assert "cannot be written" in swept.err
    assert "Traceback" not in result.err + swept.err


def limited(job, limit: int, soft: int) -> int:
    """Do the job in a child under a limit of resources; its exit code."""
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(limit, (soft, resource.getrlimit(limit)[1]))
            os._exit(0 if job() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def failing(tiny, folder: RunFolder, fail) -> bool:
    """Whether a run is recorded as failed that calls `fail` at its first evaluation."""

    def judge(step, scores):
        fail()
        return False

    config = compose_cell([*tiny, "runtime.device=cpu", "runtime.checkpoint_every=1"])
    context = Context(label="x", factors={}, command="test", should_prune=judge)
    return perform(to_run_config(config), plain(config), folder, context).record.status is Status.failed


def test_a_run_without_file_descriptors_records_that_and_goes_on_later(tiny, tmp_path):
    folder, kept = RunFolder(tmp_path), []

    def use_up():
        while True:
            kept.append(os.open(os.devnull, os.O_RDONLY))

    assert limited(lambda: failing(tiny, folder, use_up), resource.RLIMIT_NOFILE, 200) == 0
    record = folder.read()
    assert (record.status, record.error["type"], record.steps_done) == (Status.failed, "OSError", 3)
    assert "Too many open files" in record.error["message"]
    assert run([*tiny, "runtime.checkpoint_every=1"], folder).record.status is Status.finished


def test_a_run_without_memory_records_that_and_goes_on_later(tiny, tmp_path):
    folder = RunFolder(tmp_path)

    def use_up():
        import numpy as np

        kept = []
        while True:
            kept.append(np.ones(2**27))

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    assert limited(lambda: failing(tiny, folder, use_up), resource.RLIMIT_AS, used + 2 * 2**30) == 0
    record = folder.read()
    assert record.status is Status.failed
    assert "MemoryError" in record.error["type"]
    assert run([*tiny, "runtime.checkpoint_every=1"], folder).record.status is Status.finished

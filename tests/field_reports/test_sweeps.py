"""Sweeps that were lost or did not stop: more processes than runs, jobs in the background, closed streams."""

import codecs
import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from rich.console import Console

from ablate import capacity, locks, status, stdio
from ablate.config.register import local_workers
from ablate.records import Status, StudyFolder
from ablate.stop import StopRequest, heard
from ablate.sweep.workers import Workers
from tests.conftest import ROOT
from tests.sweep.clusters import wait_for

GIB = 2**30
MEMORY, GROUP, V2 = "proc/meminfo", "proc/self/cgroup", "sys/fs/cgroup/user/job/"


# W19: never more processes than runs are left, nor than memory allows ----------------------------------------------


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine of 96 cores whose files of /proc and /sys are written by the test."""
    monkeypatch.setattr(capacity, "FILES", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(96)), raising=False)

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    write({MEMORY: f"MemTotal: 1 kB\nMemFree: 5 kB\nMemAvailable: {64 * 2**20} kB\n"})
    return write


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 96),
        ({GROUP: "0::/user/job\n"}, 96),
        ({GROUP: "0::/user/job\n", f"{V2}cpu.max": "max 100000\n"}, 96),
        ({GROUP: "0::/user/job\n", f"{V2}cpu.max": "400000 100000\n"}, 4),
        ({GROUP: "0::/user/job\n", f"{V2}cpu.max": "150000 100000\n"}, 2),
        ({GROUP: "0::/user/job\n", "sys/fs/cgroup/user/cpu.max": "50000 100000\n"}, 1),
        ({GROUP: "0::/not/seen/here\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3),
        (
            {
                GROUP: "4:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "700000\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            },
            7,
        ),
        (
            {
                GROUP: "4:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            },
            96,
        ),
    ],
)
def test_w19_cores_are_those_that_the_process_may_use(machine, files, cores):
    machine(files)
    assert capacity.cores() == cores


def test_w19_a_run_with_several_threads_takes_several_cores(machine):
    assert [local_workers("cpu", 1, threads) for threads in (1, 2, 5, 96, 200)] == [96, 48, 19, 1, 1]


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 64 * GIB),
        ({GROUP: "0::/user/job\n", f"{V2}memory.max": "max\n", f"{V2}memory.current": "7\n"}, 64 * GIB),
        (
            {
                GROUP: "0::/user/job\n",
                f"{V2}memory.max": f"{8 * GIB}\n",
                f"{V2}memory.current": f"{3 * GIB}\n",
                f"{V2}memory.stat": f"anon 5\ninactive_file {GIB}\n",
            },
            6 * GIB,
        ),
        (
            {
                GROUP: "7:memory:/job\n1:cpu:/\n",
                "sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{4 * GIB}\n",
                "sys/fs/cgroup/memory/job/memory.usage_in_bytes": f"{GIB}\n",
                "sys/fs/cgroup/memory/job/memory.stat": f"total_inactive_file {GIB // 2}\n",
            },
            3.5 * GIB,
        ),
        (
            {
                GROUP: "0::/\n",
                "sys/fs/cgroup/memory.max": f"{GIB}\n",
                "sys/fs/cgroup/memory.current": f"{2 * GIB}\n",
            },
            0,
        ),
    ],
)
def test_w19_free_memory_is_what_machine_and_cgroup_leave(machine, files, free):
    machine(files)
    assert capacity.free_memory() == free


def test_w19_where_the_system_does_not_say_memory_sets_no_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(capacity, "FILES", tmp_path)
    assert capacity.free_memory() is None
    assert capacity.fitting(None, [GIB]) is None


def test_w19_so_many_runs_fit_as_nine_tenths_of_the_memory_hold(machine):
    assert capacity.fitting(10 * GIB, [GIB // 4, GIB]) == 9
    assert capacity.fitting(10 * GIB, []) == 26  # 9 * 1024 MiB / 350 MiB = 26.3
    assert capacity.fitting(0, [GIB]) == 1


def pool(n_jobs: int, *given: str) -> SimpleNamespace:
    config = SimpleNamespace(hydra=SimpleNamespace(overrides=SimpleNamespace(hydra=list(given))))
    return SimpleNamespace(joblib={"n_jobs": n_jobs}, config=config)


@pytest.mark.parametrize(
    ("n_jobs", "memory", "runs", "expected"),
    [
        ("n_jobs=1000", (64, []), 4, (4, "hydra.launcher.n_jobs=1000: 4 at a time, since 4 runs are left to train")),
        ("n_jobs=1000", (64, []), 1, (1, "hydra.launcher.n_jobs=1000: 1 at a time, since 1 run is left to train")),
        ("96 by default", (64, []), 4, (4, None)),
        ("-1 by default", (64, []), 200, (96, None)),
        ("n_jobs=3", (64, []), 4, (3, None)),
        ("n_jobs=1", (64, []), 4, (1, None)),
        (
            "96 by default",
            (10, [2 * GIB, GIB]),
            200,
            (4, "4 at a time, since 10.0 GiB of memory are free and a run takes up to 2.00 GiB"),
        ),
        (
            "n_jobs=1000",
            (1, []),
            2000,
            (
                2,
                "hydra.launcher.n_jobs=1000: 2 at a time, since 1.0 GiB of memory are free and a run is taken to need "
                "up to 0.34 GiB",
            ),
        ),
    ],
)
def test_w19_never_more_processes_than_runs_left_or_than_memory_holds(machine, n_jobs, memory, runs, expected):
    gib, peaks = memory
    machine({MEMORY: f"MemAvailable: {gib * 2**20} kB\n"})
    said: list[str] = []
    number = int(n_jobs.removeprefix("n_jobs=").split()[0])
    launcher = pool(number, *([f"hydra.launcher.{n_jobs}"] if "=" in n_jobs else []))
    workers = Workers(launcher, 1, said.append)
    workers.fit(runs, peaks)
    workers.fit(runs, peaks)
    assert (launcher.joblib["n_jobs"], said) == (expected[0], [expected[1]] if expected[1] else [])


def test_w19_a_pool_does_not_shrink_between_rounds_and_its_own_memory_is_not_counted_against_it(machine):
    launcher = pool(8)
    workers = Workers(launcher, 1, lambda line: None)
    sizes = []
    for runs in (2, 8, 3):
        workers.fit(runs, [])
        sizes.append(launcher.joblib["n_jobs"])
        machine({MEMORY: "MemAvailable: 5 kB\n"})  # what idle workers hold
    workers.broke()
    workers.fit(3, [])
    assert [*sizes, launcher.joblib["n_jobs"]] == [2, 8, 8, 1]


def workers_of(process) -> list[psutil.Process]:
    children = psutil.Process(process.pid).children()
    alive = [one for one in children if one.status() != psutil.STATUS_ZOMBIE]
    return [one for one in alive if "popen_loky" in " ".join(one.cmdline())]


def test_w19_a_thousand_workers_for_two_runs_are_two_and_one_that_is_killed_is_told(spawn, tiny):
    process = spawn(
        "-m", *tiny, "training.steps=100000", "seed=0,1", "runtime.device=cpu", "hydra.launcher.n_jobs=1000"
    )
    runs = StudyFolder(Path("multirun/copy_repeat"))
    wait_for(lambda: sum(run.last_metrics() != {} for run in runs.runs()) == 2)
    found = workers_of(process)
    assert len(found) == 2
    found[0].kill()
    for _ in range(2):  # each run is tried again, in a process of its own
        before = [one.pid for one in found]
        wait_for(
            lambda before=before: (
                [1 for run in runs.runs() if locks.is_held(run.lock)] == [1]
                and len(found := workers_of(process)) == 1
                and found[0].pid not in before
            )
        )
        found = workers_of(process)
        found[0].kill()
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert out.count("hydra.launcher.n_jobs=1000: 2 at a time, since 2 runs are left to train") == 1
    killed = "was killed (SIGKILL), as the kernel does when memory runs out; "
    assert (
        f"a worker process {killed}the 2 runs in progress are tried again, one at a time (hydra.launcher.n_jobs=1 "
        "trains fewer at a time, in less memory)" in out
    )
    alone = f"ProcessDied: the process {killed}it was the only one at the time, so it needs more memory than there is"
    assert [line.partition("  ")[2] for line in out.splitlines() if line.startswith("failed ")] == [alone, alone]


# W20: a sweep in the background of a script, for which SIGINT is ignored, takes the other signals ------------------


def in_the_background() -> None:
    """What a script does to its `&` jobs, and nohup to its command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


@pytest.mark.parametrize("launcher", ["basic", "local"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2])
def test_w20_in_the_background_a_signal_saves_stops_and_is_told(spawn, tiny, launcher, number):
    steps = ("training.steps=100000", "training.eval_every=100000", "runtime.checkpoint_every=0")
    command = ["-m", f"hydra/launcher={launcher}", *tiny, *steps, "seed=0,1", "runtime.device=cpu"]
    one_at_a_time = ["hydra.launcher.n_jobs=1"] if launcher == "local" else []
    process = spawn(*command, *one_at_a_time, preexec_fn=in_the_background)
    study = StudyFolder(Path("multirun/copy_repeat"))
    wait_for(lambda: any(run.last_metrics() for run in study.runs()))
    children = psutil.Process(process.pid).children(recursive=True)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        process.send_signal(ignored)
    before = sum(run.last_metrics().get("step", 0) for run in study.runs())
    wait_for(lambda: sum(run.last_metrics().get("step", 0) for run in study.runs()) > before)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, "")
    assert out.count("stopping: the runs in progress save a checkpoint; the same command continues") == 1
    assert "interrupted: " in out
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
    begun = [run for run in study.runs() if (record := run.read()) and record.steps_done]
    assert {run.read().status for run in begun} == {Status.interrupted}
    assert all(run.checkpoint.exists() and not locks.is_held(run.lock) for run in begun)
    assert len(begun) == 1  # nothing was begun after the signal


def test_w20_one_signal_ignored_leaves_the_others_heard():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert set(heard()) == {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
        with StopRequest().listening():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


# W21: standard streams that are closed, full, left by their reader, or in a narrow encoding ------------------------

CLOSED = 'exec "$@" >&- 2>&- <&-'


def text(characters: str, encoding: str) -> str:
    """What is written of these characters in an encoding."""
    codecs.register_error("ablate.plain", stdio._plain)
    return characters.encode(encoding, "ablate.plain").decode(encoding)


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("ascii", "-0.5 +/- 0.1, Delta alpha [-inf, inf] <= 10^2 cafe ?"),
        ("latin-1", "-0.5 ± 0.1, Delta alpha [-inf, inf] <= 10² café ?"),
        ("cp1252", "-0.5 ± 0.1, Delta alpha [-inf, inf] <= 10² café ?"),
        ("utf-8", "−0.5 ± 0.1, Δ α [−∞, ∞] ≤ 10² café 語"),
    ],
)
def test_w21_signs_that_an_encoding_lacks_are_written_plainly(encoding, expected):
    assert text("−0.5 ± 0.1, Δ α [−∞, ∞] ≤ 10² café 語", encoding) == expected


def test_w21_a_byte_of_a_files_name_comes_out_as_that_byte():
    codecs.register_error("ablate.plain", stdio._plain)
    assert b"a\xff\xe9".decode("utf-8", "surrogateescape").encode("utf-8", "ablate.plain") == b"a\xff\xe9"


def output(descriptor: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(stdio.Output(descriptor, "stdout"), encoding="ascii", errors="ablate.plain")


def test_w21_a_reader_that_left_is_no_error_and_a_full_disk_is_told_once(capsys):
    reading, writing = os.pipe()
    pipe = output(writing)
    print("one", file=pipe, flush=True)
    assert os.read(reading, 10) == b"one\n"
    os.close(reading)
    print("two", file=pipe, flush=True)
    os.close(writing)
    assert (pipe.buffer.left, pipe.buffer.lost, capsys.readouterr().err) == (True, None, "")
    with open("/dev/full", "wb") as file:  # noqa: PTH123
        full = output(file.fileno())
        for _ in range(2):
            print("three", file=full, flush=True)
    assert isinstance(full.buffer.lost, OSError)
    assert capsys.readouterr().err == "ablate: standard output cannot be written: No space left on device\n"


def test_w21_a_full_pipe_that_does_not_wait_is_waited_for():
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    pipe, lines = output(writing), "x" * 300_000
    thread = threading.Thread(target=lambda: print(lines, file=pipe, flush=True))
    thread.start()
    seen = b""
    while len(seen) <= len(lines):
        seen += os.read(reading, 65536)
    thread.join()
    os.close(reading)
    os.close(writing)
    assert seen.decode() == lines + "\n"


def in_shell(script: str, *command: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **environment},
        capture_output=True,
        timeout=240,
        check=False,
    )


def test_w21_a_sweep_trains_all_and_ends_with_its_own_code_whatever_its_streams(in_tmp, tiny):
    """Closed ones with a pool of two, whose processes inherit them; a full disk; a pipe that is left in the middle."""
    sweep = ["-m", "ablate.run", "-m", *tiny, "runtime.device=cpu", "attention=rope,none"]
    basic = [*sweep, "hydra/launcher=basic"]
    assert in_shell(CLOSED, *sweep, "seed=0", "hydra.launcher.n_jobs=2").returncode == 0
    left = in_shell('{ "$@"; echo "$?" >code; } | head -1', *basic, "seed=0,1", "sweep.metric=eval/accuracy")
    assert (left.stdout.count(b"\n"), left.stderr, Path("code").read_text()) == (1, b"", "0\n")
    assert [run.read().status for run in StudyFolder(Path("multirun/copy_repeat")).runs()] == [Status.finished] * 4
    full = in_shell('exec "$@" >/dev/full', *basic, "seed=0", "optimizer.lr=1e30")
    assert full.returncode == 1  # they diverge
    assert full.stderr.decode() == "ablate: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["-m", "ablate.status", "STUDY"], 0),
        (["-m", "analysis.compare", "STUDY", "none", "rope"], 14),
        (["-m", "ablate.clean", "STUDY"], 0),
    ],
)
def test_w21_reports_end_with_their_own_code_whatever_their_streams(sweep, command, code):
    sweep("attention=rope,none", "seed=0,1")
    command = ["multirun/copy_repeat" if word == "STUDY" else word for word in command]
    assert in_shell(CLOSED, *command).returncode == code
    left = in_shell('{ "$@"; echo "$?" >code; } | true', *command)
    assert (left.stderr, Path("code").read_text()) == (b"", f"{code}\n")
    plain = in_shell('exec "$@"', *command, PYTHONIOENCODING="ascii")
    assert (plain.returncode, plain.stderr) == (code, b"")
    assert plain.stdout.isascii()


def test_w21_watching_a_study_ends_when_nobody_reads_on(sweep, monkeypatch):
    sweep("attention=none", "seed=0")
    monkeypatch.setattr(status, "is_at_work", lambda study: True)  # it would watch for ever
    monkeypatch.setattr(stdio, "is_left", lambda: True)
    states = status.watch(StudyFolder(Path("multirun/copy_repeat")), Console(file=io.StringIO()))
    assert [state.status for state in states] == ["finished"]


def test_w21_json_that_could_not_be_written_is_not_passed_over(sweep):
    sweep("attention=rope,none", "seed=0")
    ended = in_shell('exec "$@" >/dev/full', "-m", "ablate.status", "multirun/copy_repeat", "--json")
    assert (ended.returncode, ended.stderr.decode()) == (
        2,
        "ablate: standard output cannot be written: No space left on device\n",
    )


# W22: a search without a best config does not end as one that found it ----------------------------------------------

SEARCH = ("hydra/sweeper=optuna", "optimizer.lr=tag(log,interval(1e-4,1e-2))", "hydra.sweeper.n_trials=2")
PRUNING = ("training.eval_every=1", "hydra/sweeper/pruner=threshold", "hydra.sweeper.pruner.upper=0.1")


def test_w22_a_search_whose_trials_were_all_pruned_ends_with_1_and_its_advice_works(sweep):
    result = sweep(*SEARCH, *PRUNING)
    assert result.code == 1
    assert (
        "all 2 trials were pruned, so there is no best config; the same command with hydra/sweeper/pruner=none and a "
        "new hydra.sweeper.study_name trains them to their ends" in result.out
    )
    assert sweep(*SEARCH, *PRUNING).code == 1  # nothing is left to do, and there is no best config still
    advised = ("hydra/sweeper/pruner=none", "hydra.sweeper.study_name=new")
    again = sweep(*SEARCH, PRUNING[0], *advised)
    assert again.code == 0
    assert "2 finished" in again.out
    assert "best: trial" in again.out


def test_w22_no_trial_that_keeps_the_constraints_is_no_best_config_either(sweep):
    result = sweep(*SEARCH, "hydra.sweeper.constraints=['parameters<=1']")
    assert result.code == 1
    assert "no trial finished and kept hydra.sweeper.constraints, so there is no best config" in result.out

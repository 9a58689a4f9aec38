"""One run, from its lock to its record: killed at any moment, it ends as if nothing had happened."""

import json
import os
import random
import signal
import threading
import time

import pytest

from ablate import locks
from ablate.config.explain import compose_cell
from ablate.config.register import plain, to_run_config
from ablate.job import Context, perform
from ablate.records import RunFolder, Status

CONTEXT = Context(label="roper", factors={"attention": "roper"}, command="test")


def run(tiny: list[str], folder: RunFolder, *overrides: str, context: Context = CONTEXT):
    config = compose_cell([*tiny, "attention=roper", "runtime.device=cpu", *overrides])
    return perform(to_run_config(config), plain(config), folder, context)


def without_seconds(folder: RunFolder) -> list[dict]:
    records = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def test_killed_at_20_random_moments_the_run_ends_as_if_undisturbed(tiny, tmp_path):
    """Each time a forked process trains and is killed: at its start, in steps, evaluations, saves or at its end."""
    long = ["training.steps=400", "training.eval_every=70", "runtime.checkpoint_every=15", "model.dropout=0.1"]
    undisturbed, folder = RunFolder(tmp_path / "undisturbed"), RunFolder(tmp_path / "killed")
    began = time.monotonic()
    assert run(tiny, undisturbed, *long).record.status is Status.finished
    duration, dice = time.monotonic() - began, random.Random(7)
    kills = 0
    while kills < 20:
        child = os.fork()
        if child == 0:
            run(tiny, folder, *long)
            os._exit(0)
        time.sleep(dice.uniform(0, duration / 5))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
        if (record := folder.read()) and record.status is Status.finished:
            assert record.metrics == undisturbed.read().metrics
            folder = RunFolder(tmp_path / f"killed{kills}")
    done = run(tiny, folder, *long)
    assert done.record.status is Status.finished
    assert done.record.metrics == undisturbed.read().metrics
    assert without_seconds(folder) == without_seconds(undisturbed)
    assert done.record.steps_done == 400
    assert {file.name for file in folder.path.iterdir()} == {file.name for file in undisturbed.path.iterdir()}


def test_a_run_that_another_process_trains_is_left_alone(tiny, tmp_path):
    folder = RunFolder(tmp_path)
    with locks.hold(folder.lock):
        done = run(tiny, folder)
    assert done == (None, False)
    assert folder.read() is None


def test_a_stopped_sweep_starts_no_more_runs_and_leaves_no_empty_folder(tiny, tmp_path):
    stop = tmp_path / "x.stop"
    stop.touch()
    (tmp_path / "run").mkdir()
    done = run(tiny, RunFolder(tmp_path / "run"), context=Context(label="", factors={}, command="", stop_file=stop))
    assert done == (None, False)
    assert not (tmp_path / "run").exists()


def test_a_signal_saves_and_the_run_continues_from_there(tiny, tmp_path):
    folder = RunFolder(tmp_path / "run")
    long = ["training.steps=4000", "runtime.checkpoint_every=0"]
    child = os.fork()
    if child == 0:
        done = run(tiny, folder, *long)
        os._exit(0 if done.record.status is Status.interrupted else 1)
    while not folder.last_metrics():
        time.sleep(0.02)
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    record = folder.read()
    assert record.status is Status.interrupted
    assert 0 < record.steps_done < 4000
    assert not folder.lock.exists()
    done = run(tiny, folder, *long)
    assert (done.record.status, done.record.resumed, done.record.steps_done) == (Status.finished, 1, 4000)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_memory_are_the_runs_own(tiny, tmp_path, threads):
    import torch

    seen, before = [], torch.get_num_threads()
    context = Context(
        label="", factors={}, command="", should_prune=lambda *_: bool(seen.append(torch.get_num_threads()))
    )
    record = run(tiny, RunFolder(tmp_path), f"runtime.threads={threads}", context=context).record
    assert seen == [threads]
    assert torch.get_num_threads() == before  # put back: they are the run's own
    assert 50 * 2**20 < record.peak_memory_bytes < 2**31


def test_the_record_says_what_the_parameters_came_to(tiny, tmp_path):
    record = run(tiny, RunFolder(tmp_path), "rope_percentage=0.75").record
    assert record.effective.items() >= {"rotary_width": 2, "value_rotary_width": 2}.items()
    assert record.device == "cpu"
    assert record.parameters > 0
    assert set(record.versions) >= {"python", "torch", "ablate"}
    assert len(record.source) == 16


def test_a_run_that_another_machine_took_over_writes_nothing_more(tiny, tmp_path, monkeypatch):
    """As after a machine was suspended: the other's record, checkpoint and lock stay as they are."""
    monkeypatch.setattr(locks, "HEARTBEAT", 0.02)
    folder, other = RunFolder(tmp_path), json.dumps({"host": "elsewhere", "pid": 7, "started": 0})

    def taken_over(step, scores):
        folder.lock.write_text(other)
        end = time.monotonic() + 30
        while any(thread.name == "lock heartbeat" for thread in threading.enumerate()):
            assert time.monotonic() < end
            time.sleep(0.005)
        folder.record.write_text("the other's")
        return False

    context = Context(label="", factors={}, command="", should_prune=taken_over)
    assert run(tiny, folder, "training.steps=40", context=context) == (None, False)
    assert folder.record.read_text() == "the other's"
    assert folder.lock.read_text() == other
    assert not folder.checkpoint.exists()

"""A run that is told to stop, whatever it is doing, saves, says so and ends; the next one goes on from there."""

import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from ablate import locks
from ablate.config.explain import compose_cell
from ablate.config.register import plain, to_run_config
from ablate.job import Context, perform
from ablate.records import RunFolder, Status, StudyFolder
from ablate.stop import SIGNALS, StopRequest
from tests.sweep.clusters import needs_ray, needs_submitit

LONG = ("training.steps=4000", "runtime.checkpoint_every=0", "training.log_every=1")
TO_EVALUATE = ("training.eval_every=5", "evaluation.sequences=60000", "evaluation.curve_sequences=60000")
TO_GENERATE = (
    "task=addition",
    "training.eval_every=5",
    "evaluation.problems=4",
    "evaluation.curve_problems=4",
)
END_WITHIN = 5.0
"""Seconds from a signal to the end of the process, as promised; machines of tests are shared, so they wait longer."""


def run(arguments, folder: RunFolder):
    config = compose_cell([*arguments, "runtime.device=cpu"])
    return perform(to_run_config(config), plain(config), folder, Context(label="x", factors={}, command="test"))


def forked(job) -> int:
    """The id of a child that does the job; 0 when it ended as interrupted."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if job().record.status is Status.interrupted else 1)
        finally:
            os._exit(2)
    return child


def wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def lines(folder: RunFolder) -> list[dict]:
    records = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


@pytest.mark.parametrize("number", SIGNALS)
def test_every_signal_saves_twice_in_a_row_and_the_run_goes_on_from_the_same_step(tiny, tmp_path, number):
    folder, steps = RunFolder(tmp_path / "run"), [0]
    for _ in range(2):
        child = forked(lambda: run([*tiny, *LONG], folder))
        wait_for(lambda: folder.last_metrics().get("step", 0) > steps[-1])
        os.kill(child, number)
        os.kill(child, number if number != signal.SIGINT else signal.SIGTERM)
        assert code(child) == 0
        record = folder.read()
        assert record.status is Status.interrupted
        assert record.steps_done > steps[-1]
        steps.append(record.steps_done)
        assert "x, seed 0, on cpu" in folder.log.read_text()
    assert folder.read().resumed == 1
    steps_logged = [line["step"] for line in lines(folder) if line["split"] == "train"]
    assert steps_logged == list(range(1, steps[-1] + 1))


def test_a_stop_during_an_evaluation_saves_and_the_evaluation_is_made_again(tiny, tmp_path, monkeypatch):
    """Stopped in each batch of each evaluation in turn, and while the sets are drawn, it ends as if left alone."""
    arguments = [*tiny, "training.steps=12", "training.eval_every=2", "evaluation.batch_size=4", "model.dropout=0.1"]
    straight, stopped = RunFolder(tmp_path / "straight"), RunFolder(tmp_path / "stopped")
    assert run(arguments, straight).record.status is Status.finished
    asked, limit = iter(range(10**9)), [0]
    monkeypatch.setattr(StopRequest, "__call__", lambda self: next(asked) >= limit[0] > 0)
    interrupted = 0
    for one in [*range(1, 9)] * 5:
        asked, limit[0] = iter(range(10**9)), one
        status = run(arguments, stopped).record.status
        interrupted += status is Status.interrupted
        if status is Status.finished:
            break
    assert interrupted >= 8
    assert stopped.read().metrics == straight.read().metrics
    assert lines(stopped) == lines(straight)


@pytest.mark.parametrize("where", ["evaluation", "generation"])
def test_a_long_evaluation_ends_within_seconds_of_the_signal(tiny, tmp_path, where):
    folder = RunFolder(tmp_path)
    own = TO_EVALUATE if where == "evaluation" else TO_GENERATE
    kept = [value for value in tiny if where == "evaluation" or not value.startswith("task.")]
    prolong = where == "generation"

    def job():
        if prolong:
            from ablate.training import scoring

            generate = scoring.generate
            scoring.generate = lambda *given, **named: [generate(*given, **named) for _ in range(10**6)]
        return run([*kept, *own, "training.log_every=5", "runtime.checkpoint_every=0"], folder)

    child = forked(job)
    wait_for(lambda: folder.last_metrics().get("step") == 5)
    time.sleep(0.3)
    os.kill(child, signal.SIGTERM)
    began = time.monotonic()
    assert code(child) == 0
    assert time.monotonic() - began < 6 * END_WITHIN
    assert (folder.read().status, folder.read().steps_done) == (Status.interrupted, 5)


def test_a_signal_while_the_data_are_set_up_ends_at_once_and_is_recorded(tiny, tmp_path):
    folder, reached = RunFolder(tmp_path / "run"), tmp_path / "reached"

    def job():
        import ablate.job

        def build(config, device):
            reached.touch()
            time.sleep(600)

        ablate.job.build = build
        return run(tiny, folder)

    child = forked(job)
    wait_for(reached.exists)
    os.kill(child, signal.SIGUSR1)
    assert code(child) == 0
    assert (folder.read().status, folder.read().steps_done) == (Status.interrupted, 0)
    assert run(tiny, folder).record.status is Status.finished


def test_a_signal_just_before_the_data_are_set_up_does_not_wait_for_them():
    stop = StopRequest()
    stop.on_signal(signal.SIGTERM, None)
    with pytest.raises(KeyboardInterrupt), stop.at_once():
        raise AssertionError("set up all the same")


def test_a_second_ctrl_c_ends_at_once_and_other_signals_wait_for_the_save():
    stop = StopRequest()
    stop.on_signal(signal.SIGTERM, None)
    stop.on_signal(signal.SIGUSR1, None)
    stop.on_signal(signal.SIGTERM, None)
    assert stop()
    with pytest.raises(KeyboardInterrupt):
        stop.on_signal(signal.SIGINT, None)


def test_who_listened_for_a_warning_before_hears_it_after_the_run_is_saved():
    heard = []
    before = signal.signal(signal.SIGUSR2, lambda number, frame: heard.append(number))
    try:
        stop = StopRequest()
        with stop.listening():
            os.kill(os.getpid(), signal.SIGUSR2)
            assert stop()
            assert not heard
        assert heard == [signal.SIGUSR2]
    finally:
        signal.signal(signal.SIGUSR2, before)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    "launcher",
    [
        "basic",
        "local",
        pytest.param("submitit_local", marks=needs_submitit),
        pytest.param("ray", marks=[needs_ray, pytest.mark.slow]),
    ],
)
def test_g9_ctrl_c_once_or_twice_leaves_no_process_and_no_lock_and_the_rerun_resumes(spawn, tiny, launcher, times):
    steps = ["training.steps=1200", "training.eval_every=1000", "runtime.checkpoint_every=10"]
    command = ["-m", f"hydra/launcher={launcher}", *tiny, *steps, "attention=rope,none", "seed=0", "runtime.device=cpu"]
    process, study = spawn(*command), StudyFolder(Path("multirun/copy_repeat"))
    wait_for(lambda: any(folder.checkpoint.exists() for folder in study.runs()), 180)
    children = psutil.Process(process.pid).children(recursive=True)
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)
    process.communicate(timeout=120)
    assert process.returncode != 0
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
    assert not any(locks.is_held(folder.lock) for folder in study.runs())
    again = spawn(*command)
    out, err = again.communicate(timeout=240)
    assert again.returncode == 0, (out, err)
    assert {folder.read().status for folder in study.runs()} == {Status.finished}
    assert any(folder.read().resumed for folder in study.runs())

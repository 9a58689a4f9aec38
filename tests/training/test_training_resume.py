"""A run that was stopped, killed or damaged and goes on is the run that was left alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from training_stub import TASK, TinyModel, config_of, records, run, weights

from ablate.records import RunFolder, Status
from ablate.training import seeds
from ablate.training.trainer import Parts

CONF = Path(__file__).parents[2] / "conf"
KILLER = Path(__file__).with_name("killed_runs.py")


@settings(max_examples=25, deadline=None)
@given(stops=st.lists(st.integers(0, 12), max_size=3), every=st.tuples(*[st.integers(1, 9)] * 3))
def test_an_interrupted_run_goes_on_bit_for_bit(tmp_path_factory, stops, every):
    folder, config = tmp_path_factory.mktemp("run"), config_of(23, *every)
    run(folder / "straight", config)
    done = 0
    for stop in stops:
        outcome = run(folder / "stopped", config, stop_after=stop)
        reached, done = done + stop <= 23, min(23, done + stop)
        assert outcome.steps_done == done
        assert outcome.status is (Status.interrupted if reached else Status.finished)
    assert run(folder / "stopped", config).resumed_from == (done if stops else None)
    assert records(folder / "straight") == records(folder / "stopped")
    assert weights(folder / "straight") == weights(folder / "stopped")


@pytest.mark.parametrize("lost", range(24))
def test_a_crash_at_any_step_loses_nothing_but_time(tmp_path, lost):
    class Crash(Exception):
        pass

    def crash(record):
        if record["step"] >= lost:
            raise Crash

    config = config_of(23, log_every=1, eval_every=4, checkpoint_every=5)
    run(tmp_path / "straight", config)
    with pytest.raises(Crash):
        run(tmp_path / "crashed", config, on_log=crash)
    run(tmp_path / "crashed", config)
    assert records(tmp_path / "straight") == records(tmp_path / "crashed")
    assert weights(tmp_path / "straight") == weights(tmp_path / "crashed")


def named(group, name):
    config = OmegaConf.load(CONF / group / f"{name}.yaml")
    root = OmegaConf.create({"training": {"steps": 23}, group: config})
    return instantiate(root[group], _convert_="all")


@pytest.mark.parametrize("schedule", sorted(path.stem for path in (CONF / "schedule").glob("*.yaml")))
@pytest.mark.parametrize("optimizer", sorted(path.stem for path in (CONF / "optimizer").glob("*.yaml")))
def test_every_optimizer_and_schedule_goes_on_bit_for_bit(tmp_path, optimizer, schedule):
    def parts():
        model = TinyModel()
        seeds.initialise(model, 0)
        built = named("optimizer", optimizer)(model.parameters())
        return Parts(model=model, task=TASK, optimizer=built, schedule=named("schedule", schedule)(built))

    run(tmp_path / "straight", parts=parts())
    run(tmp_path / "stopped", parts=parts(), stop_after=7)
    run(tmp_path / "stopped", parts=parts())
    assert records(tmp_path / "straight") == records(tmp_path / "stopped")
    assert weights(tmp_path / "straight") == weights(tmp_path / "stopped")


def test_seconds_add_up_over_resumes(tmp_path):
    first = run(tmp_path, stop_after=12)
    second = run(tmp_path)
    assert second.seconds > first.seconds
    assert second.data_seconds > first.data_seconds
    assert second.evaluation_seconds > first.evaluation_seconds
    seconds = [record["seconds"] for record in RunFolder(tmp_path).read_metrics()]
    assert seconds == sorted(seconds)


def test_a_run_told_to_stop_at_once_does_no_step(tmp_path):
    outcome = run(tmp_path, stop_after=0)
    assert (outcome.status, outcome.steps_done, outcome.resumed_from) == (Status.interrupted, 0, None)
    assert run(tmp_path).resumed_from == 0


def test_a_finished_run_is_neither_trained_nor_evaluated_again(tmp_path):
    finished = run(tmp_path)
    logged = []
    again = run(tmp_path, on_log=logged.append)
    assert not logged
    assert (again.status, again.metrics, again.resumed_from) == (Status.finished, finished.metrics, 23)


def test_a_finished_run_whose_final_metrics_are_missing_is_only_evaluated_again(tmp_path):
    finished = run(tmp_path)
    folder = RunFolder(tmp_path)
    lines = folder.metrics.read_text().splitlines(keepends=True)
    folder.metrics.write_text("".join(lines[:-1]) + lines[-1][:20])
    logged = []
    again = run(tmp_path, on_log=logged.append)
    assert [(record["split"], record["step"]) for record in logged] == [("eval", 23)]
    assert again.metrics == finished.metrics
    assert [line.split('"seconds"')[0] for line in lines] == [
        line.split('"seconds"')[0] for line in folder.metrics.read_text().splitlines(keepends=True)
    ]


def test_a_run_of_other_code_starts_afresh(tmp_path, caplog):
    run(tmp_path / "old", source="old", stop_after=12)
    outcome = run(tmp_path / "old", source="new")
    assert "checkpoint.pt: written by another version of the code" in caplog.text
    assert outcome.resumed_from is None
    run(tmp_path / "new", source="new")
    assert records(tmp_path / "old") == records(tmp_path / "new")
    assert weights(tmp_path / "old") == weights(tmp_path / "new")


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, caplog, keep):
    run(tmp_path / "straight")
    run(tmp_path / "damaged", stop_after=14)
    saved = RunFolder(tmp_path / "damaged").checkpoint
    content = saved.read_bytes()
    saved.write_bytes(content[: int(keep * len(content))])
    outcome = run(tmp_path / "damaged")
    assert outcome.resumed_from == 12
    assert f"{saved}: damaged" in caplog.text
    assert records(tmp_path / "straight") == records(tmp_path / "damaged")
    assert weights(tmp_path / "straight") == weights(tmp_path / "damaged")


def test_with_both_generations_damaged_the_run_starts_afresh(tmp_path, caplog):
    run(tmp_path / "straight")
    run(tmp_path / "damaged", stop_after=14)
    folder = RunFolder(tmp_path / "damaged")
    for saved in (folder.checkpoint, folder.previous_checkpoint):
        saved.write_bytes(b"")
    assert run(tmp_path / "damaged").resumed_from is None
    assert caplog.text.count("damaged and passed over") == 2
    assert records(tmp_path / "straight") == records(tmp_path / "damaged")


def test_runs_killed_at_random_moments_end_as_if_left_alone(tmp_path):
    run(tmp_path / "straight", config_of(120, 3, 7, 5))
    environment = os.environ | {"PYTHONPATH": str(KILLER.parent), "OMP_NUM_THREADS": "1"}
    for job in ("training", "saving"):
        subprocess.run([sys.executable, KILLER, job, tmp_path / job], check=True, timeout=120, env=environment)
    assert int((tmp_path / "training" / "kills").read_text()) >= 3
    assert records(tmp_path / "straight") == records(tmp_path / "training")
    assert weights(tmp_path / "straight") == weights(tmp_path / "training")
    assert not list((tmp_path / "training").glob(".*.tmp"))
    assert (tmp_path / "saving" / "verdicts").read_text().split() == ["loadable"] * 50


def test_a_checkpoint_holds_tensors_and_plain_containers_only(tmp_path):
    run(tmp_path, stop_after=10)
    content = torch.load(RunFolder(tmp_path).checkpoint)

    def kinds(value):
        if isinstance(value, dict | list | tuple):
            parts = list(value.values()) if isinstance(value, dict) else value
            return {type(value)}.union(*map(kinds, parts))
        return {type(value)}

    assert kinds(content) <= {dict, list, tuple, torch.Tensor, int, float, str, bool, type(None)}

"""Odd but legitimate command lines do what they say, and wrong ones are refused before anything is written."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

import ablate.job
from ablate.records import Status, StudyFolder

STUDY = Path("multirun/copy_repeat")


def records(study: Path = STUDY):
    return [record for folder in StudyFolder(study).runs() if (record := folder.read())]


def wait_for(condition, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def refused(result, *words: str) -> None:
    assert result.code == 2, result
    assert "Traceback" not in result.err
    for word in words:
        assert word in result.err
    assert not list(Path().rglob("run.json"))


def test_a_folder_named_by_hand_holds_one_run_only(cli, tiny):
    assert cli(*tiny, "hydra.run.dir=x", "attention=rope").code == 0
    again = cli(*tiny, "hydra.run.dir=x", "attention=none")
    assert again.code == 2
    assert "x: holds another run (" in again.err
    assert json.loads(Path("x/run.json").read_text())["factors"]["attention"] == "rope"


def test_added_and_forced_keys_are_swept_and_named_like_others(sweep):
    assert sweep("++seed=1,2", "++model.layers=1,2").code == 0
    assert {(r.label, r.seed) for r in records()} == {(f"layers={n}", s) for n in (1, 2) for s in (1, 2)}
    assert sweep("+optimizer.maximize=true,false", "study=added").code == 0
    assert {r.factors["optimizer.maximize"] for r in records(Path("multirun/added"))} == {True, False}


def test_a_level_that_is_null_is_a_level_and_not_a_dash(sweep):
    result = sweep("training.grad_clip=1.0,null")
    assert "grad_clip=null" in result.out
    assert {r.label for r in records()} == {"grad_clip=1", "grad_clip=null"}


@pytest.mark.parametrize("launcher", [["hydra/launcher=basic"], ["hydra.launcher.n_jobs=1"]])
def test_ctrl_c_stops_a_sweep_that_runs_one_by_one(spawn, tiny, launcher):
    process = spawn("-m", *tiny, *launcher, "training.steps=100000", "seed=range(3)", "runtime.checkpoint_every=0")
    wait_for(lambda: list(Path().rglob("metrics.jsonl")))
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, (out, err)
    assert [r.status for r in records()] == [Status.interrupted]
    assert "the same command continues" in out


def test_a_run_whose_other_owner_dies_is_trained_by_the_sweep_that_waits_for_it(spawn, tiny):
    slow = [*tiny, "training.steps=1500", "runtime.checkpoint_every=100"]
    other = spawn(*slow, "seed=1")
    wait_for(lambda: list(Path().rglob("checkpoint.pt")))
    os.kill(other.pid, signal.SIGSTOP)  # alive and at it, as far as anybody can tell
    waiting = spawn("-m", *slow, "seed=0,1", "hydra.launcher.n_jobs=1")
    wait_for(lambda: any(r.seed == 0 and r.status is Status.finished for r in records()))
    time.sleep(1)
    assert waiting.poll() is None
    os.kill(other.pid, signal.SIGKILL)
    out, err = waiting.communicate(timeout=120)
    assert waiting.returncode == 0, (out, err)
    assert [(r.seed, r.status, r.resumed) for r in records()] == [(0, Status.finished, 0), (1, Status.finished, 1)]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["++optimizer.foreach=true"], "optimizer: "),
        (["optimizer.betas=[0.9]"], "optimizer: "),
        (["optimizer._target_=torch.pi"], "is no class or function"),
        (["optimizer.lr=null"], "optimizer.lr=None: must be a number"),
        (["attention=null"], "attention=null: a group needs an option"),
        (["ablation=null"], "ablation=baseline"),
        (["study=" + "x" * 300], "cannot be written"),
        (["runtime.sweep_id=foo"], "runtime.sweep_id=foo: is set by a sweep"),
        (["-cn", "nosuch"], "nosuch: no such config"),
        (["ablation=[tied_head,no_grad_clip]"], "one arm at a time"),
    ],
)
def test_a_run_and_a_sweep_refuse_in_one_line(cli, tiny, arguments, word):
    refused(cli(*tiny, *arguments), word)
    if "-cn" not in arguments:
        refused(cli("-m", *tiny, *arguments, "seed=0,1"), word)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["hydra/sweeper=basic"], "hydra/sweeper=basic: checks and records nothing"),
        (["hydra.sweep.subdir=foo"], "hydra.sweep.subdir: is made from the run's identity"),
        (["seeds.data=${seed}"], "seed: another key refers to it"),
        (["ablation=null,tied_head"], "ablation=baseline"),
        (["runtime.output_dir=a,b"], "a/copy_repeat, b/copy_repeat"),
    ],
)
def test_a_sweep_refuses_in_one_line(cli, tiny, arguments, word):
    refused(cli("-m", *tiny, *arguments, "seed=0,1"), word)


def test_annotations_that_cannot_be_read_are_refused(cli, tiny, in_tmp, monkeypatch):
    (in_tmp / "mine.py").write_text(
        "from __future__ import annotations\nclass Task:\n    def __init__(self, *, size: Missing) -> None: ...\n"
    )
    monkeypatch.syspath_prepend(in_tmp)
    conf = in_tmp / "conf" / "task"
    conf.mkdir(parents=True)
    (conf / "mine.yaml").write_text("_target_: mine.Task\nsize: 3\n")
    values = [value for value in tiny if not value.startswith("task.")]
    refused(cli("--config-dir", "conf", *values, "task=mine"), "annotations of Task cannot be read")


def test_a_users_own_arms_and_groups_are_found_everywhere(cli, tiny, in_tmp):
    conf = in_tmp / "conf"
    for group, name, text in [
        ("attention", "mine", "# @package model.attention\ndefaults: [rope]\nbase: 500.0\n"),
        ("ablation", "nothing", "# @package _global_\nmodel:\n  tied: false\n"),
        ("ablation", "wide", "# @package _global_\nmodel:\n  width: ${task.seq_len}\n"),
    ]:
        (conf / group).mkdir(parents=True, exist_ok=True)
        (conf / group / f"{name}.yaml").write_text(text)
    refused(
        cli("--config-dir", "conf", *tiny, "attention=mine", "ablation=nothing"), "ablation=nothing: changes nothing"
    )
    (conf / "sampler").mkdir()
    (conf / "sampler" / "x.yaml").write_text("a: 1\n")
    refused(cli("--config-dir", "conf", *tiny, "samplre=x"), "samplre=x: no such key; did you mean sampler?")
    without_width = [value for value in tiny if not value.startswith("model.width")]
    for command in ([], ["-m"]):
        result = cli(*command, "--config-dir", "conf", *without_width, "attention=mine", "ablation=wide")
        assert result.code == 0, result.err
    assert [r.parameters > 0 for r in records()] == [True]


def test_a_dry_run_of_a_single_run_trains_nothing(cli, tiny):
    result = cli(*tiny, "sweep.dry_run=true")
    assert result.code == 0
    assert "would train multirun/copy_repeat/runs/gpt-rope-" in result.out
    assert not Path("multirun").exists()


def test_fail_fast_stops_for_a_diverged_run_too(sweep):
    sweep("optimizer.lr=1e30", "training.grad_clip=null", "seed=range(3)", "sweep.fail_fast=true")
    assert [r.status for r in records()] == [Status.diverged]


@pytest.mark.parametrize("error", [RuntimeError("late"), SystemExit(3)])
def test_a_failed_run_records_how_far_it_came(sweep, monkeypatch, error):
    train = ablate.job.train

    def late(*arguments, **named):
        train(*arguments, **named)
        raise error

    monkeypatch.setattr(ablate.job, "train", late)
    assert sweep("seed=0,1").code == 1
    for record in records():
        assert (record.status, record.steps_done, record.tokens) == (Status.failed, 6, 6 * 4 * 24)
        assert record.seconds > 0
        assert record.error["type"] == type(error).__name__


def test_a_second_run_of_a_locked_run_is_no_success(cli, tiny, in_tmp):
    from ablate import locks

    cli(*tiny)
    (folder,) = StudyFolder(STUDY).runs()
    with locks.hold(folder.lock):
        result = cli(*tiny)
    assert result.code == 1
    assert "another process trains this run now" in result.out


def test_the_recorded_command_is_the_one_that_was_given(sweep):
    sweep("model/attention=rope,none", "seed=0")
    assert {"model/attention=rope,none" in r.command for r in records()} == {True}
    assert not any("choice(" in r.command for r in records())


@pytest.mark.parametrize("info", [["--info"], ["--info", "defaults"]])
def test_info_works_behind_overrides(spawn, info):
    process = spawn("attention=roper", *info)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "attention/roper" in out


def test_several_options_without_m_get_the_corrected_command(cli):
    result = cli("attention=rope,none")
    assert result.code == 2
    assert "python -m ablate.run -m attention=rope,none" in result.err


def test_a_working_folder_with_odd_characters_is_fine(sweep, in_tmp, monkeypatch):
    odd = in_tmp / "a $b 'c' é"
    odd.mkdir()
    monkeypatch.chdir(odd)
    assert sweep("seed=0").code == 0
    assert [r.status for r in records()] == [Status.finished]

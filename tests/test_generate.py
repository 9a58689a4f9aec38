"""`python -m ablate.generate`: a run that was trained continues a text, or it is said in one line why it cannot."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from ablate import generate as command
from ablate import job
from ablate.config.explain import compose_cell
from ablate.config.identity import cell_folder
from ablate.config.register import plain, to_run_config
from ablate.records import RunFolder, Status, StudyFolder
from tests.conftest import TINY


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A study with two finished runs, trained once for all tests of this file."""
    folder = tmp_path_factory.mktemp("generate")
    for scheme in ("learned", "roper"):
        composed = compose_cell([*TINY, f"attention={scheme}", "runtime.device=cpu"])
        values = plain(composed)
        run = StudyFolder(folder).run(cell_folder(values), 0)
        job.perform(to_run_config(composed), values, run, job.Context(label=scheme, factors={}, command=""))
    return folder


@pytest.fixture
def run(trained, tmp_path) -> RunFolder:
    """A copy of one of the runs, to be spoilt."""
    return copy_of(trained, tmp_path, "roper")


def copy_of(study, tmp_path, scheme) -> RunFolder:
    (found,) = [run for run in StudyFolder(study).runs() if f"-{scheme}-" in run.path.parent.name]
    return RunFolder(shutil.copytree(found.path, tmp_path / "runs" / found.path.parent.name / found.path.name))


@pytest.fixture
def generate(capsys):
    def call(run, *arguments):
        code = 0
        capsys.readouterr()
        try:
            command.main([str(getattr(run, "path", run)), *arguments, "--device=cpu"])
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def refused(result) -> str:
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("scheme", ["learned", "roper"])
def test_a_finished_run_continues_a_prompt(trained, tmp_path, generate, scheme):
    run = copy_of(trained, tmp_path, scheme)
    code, out, err = generate(run, "--prompt", "acg>t", "--tokens", "60")
    assert (code, err) == (0, "")
    assert out.startswith("acg>t")
    assert len(out) == 5 + 60 + 1
    assert set(out[:-1]) <= set("acgt>")
    assert generate(run, "--prompt", "acg>t", "--tokens", "60") == (0, out, "")
    assert generate(run, "--prompt", "acg>t", "--tokens", "60", "--seed", "1")[1] != out


def test_the_weights_are_those_of_the_checkpoint(run):
    model = command.load(run, torch.device("cpu")).model
    saved = torch.load(run.checkpoint, weights_only=True)["model"]
    assert saved.keys() == model.state_dict().keys()
    assert all(torch.equal(saved[name], value) for name, value in model.state_dict().items())


def test_greedy_text_needs_no_seed_and_is_read_as_long_as_trained(run, generate):
    given = ("--prompt", "acgt", "--tokens", "40", "--greedy")
    _, text, _ = generate(run, *given)
    assert generate(run, *given) == (0, text, "")
    assert generate(run, *given, "--context", "24") == (0, text, "")
    model, task = command.load(run, torch.device("cpu"))
    tokens = command.tokens_of("acgt", task.alphabet, name="")
    with torch.no_grad():
        for _ in range(20):
            tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
    assert "".join(task.alphabet[token] for token in tokens) == text[:24]


def test_several_prompts_come_as_lines_or_as_json(run, generate):
    prompts = ("--prompt", "ac", "--prompt", "gattaca", "--tokens", "9", "--top-k", "3", "--temperature", "0.8")
    lines = generate(run, *prompts)[1].splitlines()
    found = json.loads(generate(run, *prompts, "--json")[1])
    assert [text["prompt"] for text in found] == ["ac", "gattaca"]
    assert [text["prompt"] + text["continuation"] for text in found] == lines
    assert [len(line) for line in lines] == [11, 16]


def test_a_text_ends_after_the_stop_character(run, generate):
    out = generate(run, "--prompt", "a", "--tokens", "500", "--stop", ">", "--temperature", "5")[1]
    assert out.index(">") == len(out) - 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", "acgu"], "--prompt='acgu': the alphabet has no 'u': it is 'acgt>'"),
        (["--prompt", ""], "prompt='': is empty"),
        ([], "the following arguments are required: --prompt"),
        (["--prompt", "a", "--tokens", "0"], "tokens=0: must be at least 1"),
        (["--prompt", "a", "--tokens", "many"], "--tokens: invalid int value: 'many'"),
        (["--prompt", "a", "--temperature", "0"], "temperature=0.0: must be above 0"),
        (["--prompt", "a", "--temperature", "-1"], "temperature=-1.0: must be above 0"),
        (["--prompt", "a", "--top-k", "0"], "top_k=0: must be at least 1"),
        (["--prompt", "a", "--context", "0"], "context=0: must be at least 1"),
        (["--prompt", "a", "--greedy", "--top-k", "2"], "--greedy: draws nothing, so it goes without top_k"),
        (["--prompt", "a", "--stop", "xy"], "--stop='xy': must be one character"),
        (["--prompt", "a", "--stop", "x"], "--stop='x': the alphabet has no 'x'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(run, generate, arguments, message):
    assert message in refused(generate(run, *arguments))


def test_a_context_beyond_the_positions_of_the_model_is_refused(trained, tmp_path, generate):
    run = copy_of(trained, tmp_path, "learned")
    message = "context=25: the model has 24 positions; use context=24"
    assert message in refused(generate(run, "--prompt", "a", "--context", "25"))


def test_a_folder_that_is_no_run_is_refused_with_the_runs_below_or_beside_it(run, tmp_path, generate):
    assert f"a run's folder is needed: {run.path}" in refused(generate(tmp_path, "--prompt", "a"))
    err = refused(generate(run.path.parent / "seed=1", "--prompt", "a"))
    assert "no such run" in err
    assert "did you mean seed=0?" in err


@pytest.mark.parametrize("status", [Status.running, Status.failed, Status.diverged, Status.interrupted])
def test_a_run_that_is_not_finished_is_refused(run, generate, status):
    record = run.read()
    record.status = status
    run.write(record)
    assert f"the run is {status}, not finished" in refused(generate(run, "--prompt", "a"))


def test_a_run_without_checkpoint_is_refused_though_an_older_one_is_there(run, generate):
    run.checkpoint.rename(run.previous_checkpoint)
    assert "checkpoint.pt: no such checkpoint" in refused(generate(run, "--prompt", "a"))


def test_a_damaged_checkpoint_or_record_is_refused(run, generate):
    run.checkpoint.write_bytes(run.checkpoint.read_bytes()[:100])
    assert "checkpoint.pt: damaged" in refused(generate(run, "--prompt", "a"))
    run.record.write_text("{")
    assert "run.json" in refused(generate(run, "--prompt", "a"))


def test_the_checkpoint_of_another_run_is_refused(trained, tmp_path, run, generate):
    shutil.copy(copy_of(trained, tmp_path, "learned").checkpoint, run.checkpoint)
    assert "belongs to another run or config" in refused(generate(run, "--prompt", "a"))


@pytest.mark.parametrize(("old", "new"), [("width: 8", "width: 12"), ("seed: 0", "seed: 1")])
def test_a_config_that_was_changed_after_training_is_refused(run, generate, old, new):
    text = run.config.read_text()
    assert old in text
    run.config.write_text(text.replace(old, new))
    assert "not the config this run was trained with" in refused(generate(run, "--prompt", "a"))


@pytest.mark.parametrize("content", [None, "a: [", "- 1", ""])
def test_a_config_that_cannot_be_read_is_refused(run, generate, content):
    run.config.unlink()
    if content is not None:
        run.config.write_text(content)
    assert "config.yaml: cannot be read" in refused(generate(run, "--prompt", "a"))


SHAKESPEARE = ("model.width=8", "model.heads=2", "model.layers=1", "training.steps=2", "evaluation.sequences=8")


@pytest.fixture
def reader(tmp_path, cli):
    """A finished run on a text of our own, and a way to write another text in its place."""
    path = tmp_path / "text.txt"

    def write(characters):
        path.write_text("".join(characters[i % 7] + characters[i * i % 11] for i in range(4000)))

    write("abcdefghijk")
    small = (*SHAKESPEARE, "evaluation.curve_sequences=8", "runtime.device=cpu")
    command = ("task=shakespeare", "task.seq_len=16", f"task.path={path}", *small)
    assert cli(*command).code == 0
    (folder,) = StudyFolder(tmp_path / "multirun" / "shakespeare").runs()
    return folder, write, lambda: cli(*command)


def test_a_text_with_other_characters_than_the_run_was_trained_on_is_refused(reader, generate):
    folder, write, _ = reader
    assert generate(folder, "--prompt", "abc", "--tokens", "3")[0] == 0
    write("lmnopqrstuv")
    assert "characters are not those that the run was trained on" in refused(generate(folder, "--prompt", "lmn"))


def test_a_run_is_not_continued_on_a_text_with_other_characters_and_nothing_is_lost(reader):
    folder, write, again = reader
    record = folder.read()
    record.status, checkpoint = Status.interrupted, folder.checkpoint.read_bytes()
    folder.write(record)
    write("lmnopqrstuv")
    for _ in range(2):
        again()
        failed = folder.read()
        assert failed.status is Status.failed
        assert "characters are not those that this run began with" in failed.error["message"]
        assert folder.checkpoint.read_bytes() == checkpoint
    write("abcdefghijk")
    again()
    assert folder.read().status is Status.finished

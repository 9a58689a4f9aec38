"""Each file of a study damaged in turn: what is read is right or missing, never wrong, and the same command mends it.

The table of docs/reliability.md is held to FILES here.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from ablate.config.explain import compose_cell
from ablate.config.identity import cell_folder
from ablate.config.register import plain, to_run_config
from ablate.job import Context, perform
from ablate.records import RunFolder, Status, StudyFolder
from analysis.load import load_study
from analysis.study import StudyError
from tests.conftest import TINY

ARGUMENTS = (*TINY, "training.log_every=1", "runtime.checkpoint_every=1", "runtime.device=cpu")
STUDY = Path("multirun/copy_repeat")
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda content: content[: len(content) // 2],
    "zero": lambda content: b"",
    "random": lambda content: random.Random(3).randbytes(len(content)),
    "patch": lambda content: content[: len(content) // 3] + b"\xff\x00\xfe" * 7 + content[len(content) // 3 + 21 :],
}


class File(NamedTuple):
    """A file of a study: where it is; what the analysis says of it; what is kept of the interrupted run."""

    place: Callable[[RunFolder, StudyFolder], Path]
    told: str
    resumed: bool | None


FILES = {
    "run.json": File(lambda run, study: run.record, "not valid JSON", False),
    "config.yaml": File(lambda run, study: run.config, "", True),
    "metrics.jsonl": File(lambda run, study: run.metrics, "", None),
    "checkpoint.pt": File(lambda run, study: run.checkpoint, "", True),
    "checkpoint.previous.pt": File(lambda run, study: run.previous_checkpoint, "", True),
    "log.txt": File(lambda run, study: run.log, "", True),
    ".hydra/config.yaml": File(lambda run, study: run.hydra_config, "", True),
    ".hydra/overrides.yaml": File(lambda run, study: run.hydra_overrides, "", True),
    "lock": File(lambda run, study: run.lock, "", True),
    "sweeps/ID.json": File(lambda run, study: study.sweep_file(study.sweep_ids()[-1]), "not valid JSON", True),
    "sweeps/ID.looks.jsonl": File(lambda run, study: study.looks_file(study.sweep_ids()[-1]), "", True),
}


def rope(study: StudyFolder) -> RunFolder:
    return study.run(cell_folder(plain(compose_cell([*ARGUMENTS, "attention=rope"]))), 0)


def interrupted(folder: RunFolder) -> None:
    """The same run, stopped at step 3 of 6, in the place of the finished one."""
    shutil.rmtree(folder.path)

    def stop(step, scores):
        raise KeyboardInterrupt

    config = compose_cell([*ARGUMENTS, "attention=rope"])
    context = Context(label="rope", factors={"attention": "rope"}, command="test", should_prune=stop)
    done = perform(to_run_config(config), plain(config), folder, context)
    assert (done.record.status, folder.previous_checkpoint.exists()) == (Status.interrupted, True)
    folder.hydra.mkdir(exist_ok=True)
    for path in (folder.hydra_config, folder.hydra_overrides, folder.lock):
        path.write_text("{}" if path == folder.lock else "a: 1\nb: [1, 2]\n")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished study, its metrics, and a copy of it in which one run was interrupted."""
    place, patch = tmp_path_factory.mktemp("study"), pytest.MonkeyPatch()
    patch.chdir(place)
    command(patch)
    truth = {run.path.parent.name: run.read().metrics for run in StudyFolder(STUDY).runs()}
    shutil.copytree(STUDY, place / "finished")
    interrupted(rope(StudyFolder(STUDY)))
    shutil.copytree(STUDY, place / "interrupted")
    patch.undo()
    return place, truth


def command(patch: pytest.MonkeyPatch) -> int:
    """The sweep's command, in this process; its exit code."""
    from hydra.core.global_hydra import GlobalHydra

    from ablate.run import main

    patch.setattr("sys.argv", ["ablate.run", "-m", "hydra/launcher=basic", *ARGUMENTS, "attention=rope,none", "seed=0"])
    GlobalHydra.instance().clear()
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        GlobalHydra.instance().clear()
    return 0


def never_wrong(study: Path, truth: dict[str, dict[str, float]]) -> tuple[str, ...]:
    """Check that every value that the analysis reads is the true one; what it says of the study."""
    try:
        read = load_study(study)
    except StudyError as error:
        return (str(error),)
    for run in read.loaded:
        if run.record is not None and run.record.metrics:
            assert run.record.metrics == truth[run.folder.path.parent.name]
    return read.problems


@pytest.mark.usefixtures("in_tmp")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_gives_no_wrong_number_and_the_run_ends_as_if_undisturbed(
    made, caplog, record_property, name, damage
):
    place, truth = made
    shutil.copytree(place / "interrupted", STUDY)
    study, what = StudyFolder(STUDY), FILES[name]
    run = rope(study)
    path = what.place(run, study)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    problems = never_wrong(STUDY, truth)
    assert any(what.told in problem for problem in problems) or not what.told, problems
    config = compose_cell([*ARGUMENTS, "attention=rope"])
    done = perform(
        to_run_config(config), plain(config), run, Context(label="rope", factors={"attention": "rope"}, command="test")
    )
    assert done.record.status is Status.finished
    assert done.record.metrics == truth[run.path.parent.name]
    assert what.resumed is None or (done.record.resumed > 0) is what.resumed
    if name == "checkpoint.pt":
        assert "damaged and passed over" in caplog.text
    steps = [(record["split"], record["step"]) for record in run.read_metrics()]
    assert sorted(steps) == sorted([*(("train", n) for n in range(1, 7)), ("eval", 3), ("eval", 6)])
    never_wrong(STUDY, truth)
    record_property("files damaged in turn, without a wrong number", 1)


@pytest.mark.parametrize(
    "name", ["run.json", "config.yaml", "metrics.jsonl", "sweeps/ID.json", "sweeps/ID.looks.jsonl"]
)
def test_the_same_command_mends_a_finished_study(made, in_tmp, monkeypatch, name):
    place, truth = made
    shutil.copytree(place / "finished", STUDY)
    study = StudyFolder(STUDY)
    path = FILES[name].place(rope(study), study)
    path.write_bytes(DAMAGES["half"](path.read_bytes()))
    never_wrong(STUDY, truth)
    assert command(monkeypatch) == 0
    assert {run.path.parent.name: run.read().metrics for run in study.runs()} == truth
    never_wrong(STUDY, truth)


def test_every_file_is_in_the_document():
    text = (Path(__file__).parents[1] / "docs" / "reliability.md").read_text()
    for name in FILES:
        assert f"| `{name}` |" in text, name

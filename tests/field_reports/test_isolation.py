"""What a run sets for its whole process does not reach the next run."""

import logging
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from ablate import isolation
from ablate.config import signature
from ablate.config.explain import compose_cell
from ablate.config.register import plain, to_run_config
from ablate.job import Context, perform
from ablate.records import RunFolder, Status, StudyFolder
from tests import meddling
from tests.conftest import ROOT, TINY
from tests.sweep.clusters import needs_ray

SETTINGS = {setting.name: setting for setting in isolation.settings()}
NOT_TO_BE_CHANGED_BACK = ("inference mode", "autograd profiler", "interop threads", "files of the standard streams")
NOT_HERE = {"CPU affinity", "float16 reductions on the CPU", "linear algebra library", "BLAS library"}
"""Settings that a machine with one CPU, or without a GPU, may not let anybody change."""
QUIET = {name for name, setting in SETTINGS.items() if not setting.is_noted} | {"current GPU"}
CONF = f"--config-dir={ROOT / 'tests' / 'faulty_conf'}"
STUDY = Path("multirun/copy_repeat")


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch):
    """Have what a test leaves on purpose count for that test only."""
    monkeypatch.setattr(isolation, "leftovers", [])


def differs(setting, before) -> bool:
    return setting.differs(before) if setting.differs else bool(before != setting.read())


# each setting ---------------------------------------------------------------------------------------------------------


def test_there_is_a_way_to_change_each_setting():
    assert {*meddling.WAYS, *NOT_TO_BE_CHANGED_BACK, "current GPU"} == {*SETTINGS}


@pytest.mark.parametrize("name", meddling.WAYS)
def test_w9_a_setting_is_as_before_after_the_run_and_is_named(name):
    setting = SETTINGS[name]
    before = setting.read()
    with isolation.kept() as found:
        meddling.WAYS[name]()
        was_another = differs(setting, before)
    assert was_another or name in NOT_HERE
    assert not differs(setting, before)
    assert found.left == []
    assert (name in found.changed) == (was_another and name not in QUIET)


def test_w9_a_run_that_sets_nothing_has_no_line_even_as_the_first_of_its_process(tmp_path):
    code = f"""
from pathlib import Path
from ablate.config.explain import compose_cell
from ablate.config.register import plain, to_run_config
from ablate.job import Context, perform
from ablate.records import RunFolder
config = compose_cell([*{TINY!r}, "attention=rope", "runtime.device=cpu"])
context = Context(label="", factors={{}}, command="")
perform(to_run_config(config), plain(config), RunFolder(Path({str(tmp_path)!r})), context)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    assert "put back" not in RunFolder(tmp_path).log.read_text()


def test_w9_nothing_is_named_where_nothing_was_set():
    with isolation.kept() as found:
        torch.rand(3)
    assert (found.changed, found.left) == ([], [])


def test_w9_all_at_once_are_put_back_after_a_failure():
    before, found = {name: setting.read() for name, setting in SETTINGS.items()}, isolation.Kept()

    def fail():
        nonlocal found
        with isolation.kept() as found:
            for name in meddling.ALL:
                meddling.WAYS[name]()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert found.left == []
    assert [name for name, value in before.items() if differs(SETTINGS[name], value)] == []


def test_w9_a_thread_that_runs_on_and_a_mode_that_is_not_left_are_detected():
    end = threading.Event()
    guard = torch.inference_mode()
    with isolation.kept() as found:
        guard.__enter__()
        threading.Thread(target=end.wait, name="busy").start()
        threading.Thread(target=time.sleep, args=(0.01,)).start()  # ends by itself
    end.set()
    guard.__exit__(None, None, None)
    assert found.left == ["inference mode", "the thread 'busy', which runs on"]


def test_w9_a_run_off_the_main_thread_changes_nothing_for_the_others():
    found = []

    def inside():
        with isolation.kept() as kept:
            found.append(kept)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert found == [isolation.Kept()]


def test_w9_what_a_module_sets_when_it_is_imported_is_put_back_and_told(tmp_path, monkeypatch):
    (tmp_path / "sets_dtype.py").write_text(
        "import torch\ntorch.set_default_dtype(torch.float64)\nschedule = torch.optim.lr_scheduler.ConstantLR\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert signature.locate("schedule", "sets_dtype.schedule") is torch.optim.lr_scheduler.ConstantLR
    assert torch.get_default_dtype() is torch.float32
    assert isolation.set_by_import.pop("sets_dtype") == ["default dtype"]


# runs -----------------------------------------------------------------------------------------------------------------


def solo(tiny, folder: Path, *overrides: str, **context):
    config = compose_cell([*tiny, "attention=rope", "runtime.device=cpu", "model.dropout=0.1", *overrides])
    values = plain(config)
    context = Context(label="rope", factors={"attention": "rope"}, command="test", **context)
    return perform(to_run_config(config), values, RunFolder(folder), context)


def meddled(tiny, folder: Path, how: str):
    config = compose_cell([*tiny, "attention=rope", "runtime.device=cpu"])
    config.schedule = {"_target_": "tests.meddling.Meddling", "_partial_": True, "how": how}
    context = Context(label=f"meddling {how}", factors={}, command="test")
    return perform(to_run_config(config), plain(config), RunFolder(folder), context)


def weights(folder: RunFolder) -> dict[str, torch.Tensor]:
    saved = torch.load(folder.checkpoint)
    return {**saved["model"], **{str(key): value["exp_avg"] for key, value in saved["optimizer"]["state"].items()}}


def same(one: RunFolder, other: RunFolder) -> bool:
    """Whether two runs are equal to the bit: metrics, log (seconds aside), weights and the optimiser's averages."""
    logs = [[{**line, "seconds": 0} for line in folder.read_metrics()] for folder in (one, other)]
    first, second = weights(one), weights(other)
    return (
        one.read().metrics == other.read().metrics != {}
        and logs[0] == logs[1]
        and first.keys() == second.keys()
        and all(torch.equal(value, second[key]) for key, value in first.items())
    )


@pytest.mark.parametrize("how", ["all", "mild"])
def test_w9_a_run_between_two_halves_of_another_and_before_it_changes_neither(tiny, tmp_path, how, caplog):
    """Begun, interrupted, gone on with in the same process, the other run in between."""
    solo(tiny, tmp_path / "alone")
    ended = meddled(tiny, tmp_path / "first", how).record.status
    assert ended is (Status.failed if how == "all" else Status.finished)
    assert "set by the run for its whole process, and put back: " in caplog.text

    def stop(step, scores):
        raise KeyboardInterrupt

    assert solo(tiny, tmp_path / "run", "runtime.checkpoint_every=1", should_prune=stop).record.status == "interrupted"
    meddled(tiny, tmp_path / "second", how)
    done = solo(tiny, tmp_path / "run", "runtime.checkpoint_every=1")
    assert (done.record.status, done.record.resumed) == (Status.finished, 1)
    assert same(RunFolder(tmp_path / "alone"), RunFolder(tmp_path / "run"))
    assert isolation.leftovers == []
    if how == "mild":
        assert same(RunFolder(tmp_path / "first"), RunFolder(tmp_path / "second"))
        assert not same(RunFolder(tmp_path / "alone"), RunFolder(tmp_path / "first"))


@pytest.mark.parametrize(
    ("launcher", "how"), [(["basic"], "mild"), (["basic"], "all"), (["local", "hydra.launcher.n_jobs=1"], "all")]
)
def test_w9_an_arm_that_sets_everything_leaves_the_clean_arm_as_it_is_alone(cli, tiny, tmp_path, launcher, how):
    arms = ("runtime.device=cpu", "model.dropout=0.1", "seed=range(2)")
    for seed in (0, 1):
        solo(tiny, tmp_path / f"alone{seed}", f"seed={seed}")
    launch = ("-m", f"hydra/launcher={launcher[0]}", *launcher[1:])
    result = cli(*launch, CONF, *tiny, *arms, "attention=rope", f"schedule={how}_meddling,constant")
    assert result.code == (1 if how == "all" else 0), result.err
    runs = [folder for folder in StudyFolder(STUDY).runs() if folder.read().factors["schedule"] == "constant"]
    assert len(runs) == 2
    for folder in runs:
        assert same(folder, RunFolder(tmp_path / f"alone{folder.read().seed}"))


def test_w9_a_process_with_a_thread_of_another_run_is_replaced_in_the_local_pool(spawn, tiny):
    """Four runs, one worker at a time; each of one arm leaves a thread, and no other run may be in its process."""
    arms = ("runtime.device=cpu", "attention=rope", "schedule=thread_meddling,constant", "seed=range(2)")
    sweep = spawn("-m", "hydra/launcher=local", "hydra.launcher.n_jobs=1", CONF, *tiny, *arms)
    _, err = sweep.communicate(timeout=120)
    assert sweep.returncode == 0, err
    records = {folder: folder.read() for folder in StudyFolder(STUDY).runs()}
    assert [record.status for record in records.values()] == [Status.finished] * 4
    logs = [folder.log.read_text() for folder, record in records.items() if record.factors["schedule"] != "constant"]
    assert len({re.search(r"process (\d+)", log)[1] for log in logs}) == 2
    assert all("not to be put back: the thread 'meddling', which runs on" in log for log in logs)
    assert "A worker stopped" not in err


@needs_ray
def test_w9_a_process_with_a_thread_of_another_run_is_left_alone_on_ray(spawn, tiny):
    arms = ("runtime.device=cpu", "attention=rope", "schedule=thread_meddling,constant", "seed=0")
    sweep = spawn("-m", "hydra/launcher=ray", "hydra.launcher.n_jobs=1", CONF, *tiny, *arms)
    _, err = sweep.communicate(timeout=240)
    assert sweep.returncode == 0, err
    assert [folder.read().status for folder in StudyFolder(STUDY).runs()] == [Status.finished] * 2
    lines = [folder.log.read_text() for folder in StudyFolder(STUDY).runs()]
    assert sum("not to be put back: the thread 'meddling', which runs on" in line for line in lines) == 1


def test_w9_a_sweep_in_its_own_process_begins_no_run_beside_a_thread_of_another_and_the_same_command_goes_on(
    cli, tiny, monkeypatch
):
    command = ("-m", "hydra/launcher=basic", CONF, *tiny, "runtime.device=cpu", "attention=rope", "seed=0")
    first = cli(*command, "schedule=thread_meddling,constant")
    assert first.code == 1
    assert first.err == (
        "ablate: no other run begins in this process: thread_meddling seed=0 left the thread 'meddling', which runs "
        "on; the same command goes on, and hydra/launcher=local replaces such a process\n"
    )
    assert "sweep.fail_fast" not in first.out
    assert [folder.read().status for folder in StudyFolder(STUDY).runs()] == [Status.finished]
    monkeypatch.setattr(isolation, "leftovers", [])  # as in a new process
    again = cli(*command, "schedule=thread_meddling,constant")
    assert again.code == 0, again.err
    assert [folder.read().status for folder in StudyFolder(STUDY).runs()] == [Status.finished] * 2


@pytest.mark.parametrize(
    "option", ["backend=threading", "backend=multiprocessing", "prefer=threads", "require=sharedmem"]
)
def test_w9_runs_in_threads_of_one_process_are_refused(cli, tiny, option):
    result = cli("-m", "hydra/launcher=local", *tiny, "attention=rope,none", f"hydra.launcher.{option}")
    assert result.code == 2
    assert re.fullmatch(
        rf"ablate: hydra\.launcher\.{option}: .*(processes of their own|processes, or null)\n", result.err
    )
    assert not Path("multirun").exists()


# checkpoints of another run -------------------------------------------------------------------------------------------


def interrupted(tiny, folder: Path, *overrides: str) -> RunFolder:
    """A run that saves at steps 1, 2 and 3 and is interrupted there."""

    def stop(step, scores):
        raise KeyboardInterrupt

    solo(tiny, folder, "runtime.checkpoint_every=1", *overrides, should_prune=stop)
    return RunFolder(folder)


def rewrite(change):
    """A checkpoint that says it is this run's, with something else in it."""

    def way(run: RunFolder, other: Path, tiny) -> None:
        content = torch.load(run.checkpoint)
        change(content)
        torch.save(content, run.checkpoint)

    return way


def copied(*overrides: str):
    """The checkpoint of another run, copied over the newest by hand."""

    def way(run: RunFolder, other: Path, tiny) -> None:
        run.checkpoint.write_bytes(interrupted(tiny, other, *overrides).checkpoint.read_bytes())

    return way


def first_weight(content):
    return next(iter(content["model"]))


OTHERS = {
    "of seed 1 (this run has seed 0)": copied("seed=1"),
    r"of another config (cell \w{8}, this run is of \w{8})": copied("model.width=16"),
    r"of another config (cell \w{8}, this run is of \w{8}), of seed 3 (this run has seed 0)": copied(
        "training.steps=60", "seed=3"
    ),
    "written by another version of the code": rewrite(
        lambda content: content.update(source="0" * 16 + content["source"][16:])
    ),
    "written by another version of the code (format 2, not 1)": rewrite(lambda content: content.update(format=2)),
    "saved at step 60, this run has 6 steps": rewrite(lambda content: content.update(step=60)),
    r"its \S+ is torch.float32 of shape [7], the model's is torch.float32 of shape [5, 8]": rewrite(
        lambda content: content["model"].update({first_weight(content): torch.zeros(7)})
    ),
    r"its \S+ is torch.float64 of shape [5, 8], the model's is torch.float32 of shape [5, 8]": rewrite(
        lambda content: content["model"].update({first_weight(content): torch.zeros(5, 8, dtype=torch.float64)})
    ),
    "its parameters are others (extra is only in it)": rewrite(
        lambda content: content["model"].update(extra=torch.zeros(1))
    ),
    "a part of it is missing": rewrite(lambda content: content.pop("optimizer")),
    "damaged and passed over (the file is empty)": lambda run, other, tiny: run.checkpoint.write_bytes(b""),
    "damaged and passed over (BadZipFile: File is not a zip file)": lambda run, other, tiny: run.checkpoint.write_bytes(
        run.checkpoint.read_bytes()[:700]
    ),
    "written by another version of the code (format None, not 1)": lambda run, other, tiny: torch.save(
        {"weight": torch.zeros(3)}, run.checkpoint
    ),
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    solo([*TINY], folder, "runtime.checkpoint_every=1")
    return RunFolder(folder)


@pytest.mark.parametrize("reason", OTHERS)
def test_w22_a_checkpoint_of_something_else_is_named_for_what_it_is_and_the_older_one_is_taken(
    tiny, tmp_path, caplog, undisturbed, reason
):
    run = interrupted(tiny, tmp_path / "run")
    OTHERS[reason](run, tmp_path / "other", tiny)
    caplog.clear()
    done = solo(tiny, run.path, "runtime.checkpoint_every=1")
    words = "".join(
        part if part.startswith("\\") else re.escape(part) for part in re.split(r"(\\[wS](?:\{8\}|\+))", reason)
    )
    (told,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert re.fullmatch(rf"{re.escape(str(run.checkpoint))}: {words}(; not continued)?", told)
    assert (done.record.status, done.record.resumed, done.record.steps_done) == (Status.finished, 1, 6)
    assert same(run, undisturbed)


def test_w22_with_both_generations_of_another_seed_the_run_starts_afresh(tiny, tmp_path, caplog, undisturbed):
    run, other = interrupted(tiny, tmp_path / "run"), interrupted(tiny, tmp_path / "other", "seed=1")
    for theirs, ours in ((other.checkpoint, run.checkpoint), (other.previous_checkpoint, run.previous_checkpoint)):
        ours.write_bytes(theirs.read_bytes())
    caplog.clear()
    assert solo(tiny, run.path, "runtime.checkpoint_every=1").record.status is Status.finished
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        f"{run.checkpoint}: of seed 1 (this run has seed 0); not continued",
        f"{run.previous_checkpoint}: of seed 1 (this run has seed 0); not continued",
        f"{run.path}: there is no checkpoint to continue from; the run starts afresh",
    ]
    assert same(run, undisturbed)

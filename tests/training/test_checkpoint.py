"""What is on disk before, during and after a save that works or does not."""

import errno
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from training_stub import records, run

from ablate.records import RunFolder, Status
from ablate.training import checkpoint
from ablate.training.checkpoint import Checkpoint, load, save


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def content(step):
    return Checkpoint(
        step=step, seconds=1.5, model={"weight": torch.full((3, 5), float(step))}, window={"losses": [0.1]}
    )


def files(folder):
    return sorted(path.name for path in folder.path.iterdir())


@contextmanager
def full_disk(limit=2000):
    """No file may grow over `limit` bytes: writing on fails as it does on a full disk, with an OSError."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_was_saved_is_loaded(folder):
    assert save(folder, content(7), source="s")
    found = load(folder, source="s")
    assert torch.equal(found.model.pop("weight"), torch.full((3, 5), 7.0))
    assert found == Checkpoint(step=7, seconds=1.5, window={"losses": [0.1]})


def test_two_generations_are_kept(folder):
    for step in (1, 2, 3):
        save(folder, content(step), source="s")
    assert torch.load(folder.checkpoint)["step"] == 3
    assert torch.load(folder.previous_checkpoint)["step"] == 2
    assert files(folder) == ["checkpoint.previous.pt", "checkpoint.pt"]


def test_an_empty_folder_has_no_checkpoint(folder, caplog):
    assert load(folder, source="s") is None
    assert not caplog.text


@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b"\0" * len(b), lambda b: b[:-1]]
)
def test_a_damaged_file_is_named_and_the_previous_one_taken(folder, caplog, damage):
    save(folder, content(1), source="s")
    save(folder, content(2), source="s")
    folder.checkpoint.write_bytes(damage(folder.checkpoint.read_bytes()))
    assert load(folder, source="s").step == 1
    assert f"{folder.checkpoint}: damaged and passed over" in caplog.text


def test_between_the_two_renames_the_previous_one_is_taken(folder):
    save(folder, content(1), source="s")
    folder.checkpoint.replace(folder.previous_checkpoint)
    assert load(folder, source="s").step == 1


def test_a_file_that_holds_objects_is_not_loaded(folder, caplog):
    torch.save({"format": 1, "source": "s", "model": Path("x")}, folder.checkpoint)
    assert load(folder, source="s") is None
    assert "damaged and passed over" in caplog.text


def test_wrong_bytes_among_the_weights_are_noticed(folder, caplog):
    """torch reads such a file without a word."""
    for step in (1, 2):
        save(folder, Checkpoint(step=step, model={"weight": torch.full((5000,), 1.5)}), source="s")
    content = folder.checkpoint.read_bytes()
    place = content.index(torch.full((5000,), 1.5).numpy().tobytes())
    folder.checkpoint.write_bytes(content[: place + 400] + b"\x7f" * 8 + content[place + 408 :])
    assert not torch.equal(torch.load(folder.checkpoint)["model"]["weight"], torch.full((5000,), 1.5))
    assert load(folder, source="s").step == 1
    assert "the checksum of" in caplog.text
    with pytest.raises(ValueError, match=r"damaged .*checksum"):
        checkpoint.final_model(folder, source="s")


def test_a_crafted_pickle_is_not_carried_out(folder, tmp_path, caplog):
    """A real one, in torch's own format: unpickled without care it runs a command."""
    made = tmp_path / "made"

    class Command:
        def __reduce__(self):
            return (os.system, (f"touch {made}",))

    torch.save({"format": 1, "source": "s", "model": Command()}, folder.checkpoint)
    assert load(folder, source="s") is None
    assert "damaged and passed over" in caplog.text
    with pytest.raises(ValueError, match="damaged"):
        checkpoint.final_model(folder, source="s")
    assert not made.exists()
    torch.load(folder.checkpoint, weights_only=False)
    assert made.exists()


@pytest.mark.parametrize("change", [{"source": "other"}, {"format": 0}])
def test_a_file_of_other_code_is_not_continued(folder, caplog, change):
    save(folder, content(1), source="s")
    torch.save(torch.load(folder.checkpoint) | change, folder.checkpoint)
    assert load(folder, source="s") is None
    assert f"{folder.checkpoint}: written by another version of the code" in caplog.text


def test_what_a_dead_process_left_is_removed_and_nothing_else(folder):
    save(folder, content(1), source="s")
    for name in ("checkpoint.pt", "metrics.jsonl", "run.json", "config.yaml"):
        (folder.path / f".{name}.4711.tmp").write_bytes(b"half")
    folder.remove_temporaries()
    assert files(folder) == ["checkpoint.pt"]


def test_a_full_disk_costs_the_checkpoint_only(folder, caplog):
    save(folder, content(1), source="s")
    big = Checkpoint(step=2, model={"weight": torch.zeros(5000)})
    with full_disk():
        assert not save(folder, big, source="s")
    assert "not saved at step 2" in caplog.text
    assert load(folder, source="s").step == 1
    assert files(folder) == ["checkpoint.pt"]
    assert save(folder, big, source="s")
    assert load(folder, source="s").step == 2


def test_a_run_on_a_full_disk_ends_with_its_metrics(tmp_path, caplog):
    run(tmp_path / "straight")
    (tmp_path / "full").mkdir()
    with full_disk(limit=4000):
        outcome = run(tmp_path / "full")
    assert outcome.status is Status.finished
    assert "not saved at step 23" in caplog.text
    assert files(RunFolder(tmp_path / "full")) == ["metrics.jsonl"]
    assert records(tmp_path / "straight") == records(tmp_path / "full")


def test_a_read_only_folder_costs_the_checkpoint_only(folder, caplog, monkeypatch):
    save(folder, content(1), source="s")

    def refuse(*args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "open", refuse)
    assert not save(folder, content(2), source="s")
    monkeypatch.undo()
    assert "Read-only file system" in caplog.text
    assert load(folder, source="s").step == 1


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_save_that_breaks_off_leaves_a_generation_and_no_temporary_file(folder, monkeypatch, step):
    save(folder, content(1), source="s")
    save(folder, content(2), source="s")

    def refuse(*args, **kwargs):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(*{"fsync": (checkpoint.os, "fsync"), "replace": (Path, "replace")}[step], refuse)
    assert not save(folder, content(3), source="s")
    monkeypatch.undo()
    assert load(folder, source="s").step == 2
    assert not list(folder.path.glob(".*"))

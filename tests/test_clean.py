"""What `python -m ablate.clean` takes away, and all that it leaves."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ablate import clean, locks, provenance
from ablate.records import RunFolder, RunRecord, Status, StudyFolder

DEAD = json.dumps({"host": locks.Owner.me().host, "pid": 2**22 + 1, "started": 1})
CONFIG = {"model": {"_target_": "ablate.models.gpt.GPT"}}


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    study = StudyFolder(tmp_path / "copy_repeat")
    study.runs_path.mkdir(parents=True)
    return study


@pytest.fixture
def add(study: StudyFolder) -> Callable[..., RunFolder]:
    """Add a run with that status and source; without a status its folder has a config only."""

    def run(seed: int, status: str | None = "finished", source: str | None = None) -> RunFolder:
        folder = study.run("gpt-a", seed)
        folder.hydra.mkdir(parents=True, exist_ok=True)
        folder.config.write_text(yaml.safe_dump(CONFIG))
        if status is not None:
            made_by = provenance.source_fingerprint(CONFIG) if source is None else source
            folder.write(
                RunRecord(
                    status=Status(status), study="s", cell="a" * 64, label="a", factors={}, seed=seed, source=made_by
                )
            )
        return folder

    return run


def run_clean(study: StudyFolder, *arguments: str, answer: bool = False) -> int:
    try:
        clean.main([str(study.path), *arguments], ask=lambda question: answer)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def everything(study: StudyFolder) -> set[str]:
    return {path.relative_to(study.path).as_posix() for path in study.path.rglob("*")}


@pytest.mark.parametrize("target", ["nowhere.schemes.Mine", "theirlab.gone.Mine", "theirlab.schemes.Mine"])
def test_old_code_never_takes_runs_whose_own_modules_are_not_here_and_imports_nothing(
    study, add, monkeypatch, capsys, target
):
    own = study.path.parent / "theirlab"
    own.mkdir()
    (own / "__init__.py").write_text("raise SystemExit('executed')\n")
    (own / "schemes.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(own.parent)
    config = {"model": {"_target_": target}}
    here = target == "theirlab.schemes.Mine"
    made_by = provenance.fingerprint_on_disk(config) if here else "another"
    add(0, source=made_by).config.write_text(yaml.safe_dump(config))
    assert run_clean(study, "--old-code", "--yes") == 0
    assert "nothing to remove" in capsys.readouterr().out


def test_a_study_in_order_has_nothing_to_remove(study, add, capsys):
    for seed, status in enumerate(["finished", "interrupted", "failed", "diverged", "pruned"]):
        add(seed, status)
    before = everything(study)
    assert run_clean(study, "--old-code", "--yes") == 0
    assert "nothing to remove" in capsys.readouterr().out
    assert everything(study) == before


def test_it_lists_with_sizes_and_removes_nothing_unasked(study, add, capsys):
    add(0).lock.write_text(DEAD)
    (add(1).path / ".run.json.1.tmp").write_bytes(b"x" * 1500)
    add(2, None)
    before = everything(study)
    assert run_clean(study) == 0
    out = capsys.readouterr().out
    assert everything(study) == before
    assert "stale lock" in out
    assert "1.5 kB  runs/gpt-a/seed=1/.run.json.1.tmp" in out
    assert "never began" in out
    assert "3 to remove" in out
    assert "Nothing was removed" in out


@pytest.mark.parametrize("how", [{"answer": True}, {}])
def test_asked_or_told_it_removes_just_what_it_listed(study, add, how):
    stale, torn = add(0), add(1, "interrupted")
    before = everything(study)
    stale.lock.write_text(DEAD)
    (torn.hydra / ".config.yaml.77.tmp").write_text("x")
    add(2, None)
    assert run_clean(study, *([] if how else ["--yes"]), **how) == 0
    assert everything(study) == before


def test_runs_of_old_code_go_only_when_named_and_those_of_this_code_never(study, add):
    kept, old, unknown = add(0), add(1, source="0" * 16), add(2, source="")
    run_clean(study, "--yes")
    assert old.record.exists()
    run_clean(study, "--yes", "--old-code")
    assert not old.path.exists()
    assert kept.record.exists()
    assert unknown.record.exists()


def test_interrupted_and_killed_runs_go_only_when_named_and_results_never(study, add, capsys):
    begun = [add(0, "interrupted"), add(1, "running")]
    for folder in begun:
        folder.checkpoint.write_bytes(b"x" * 2000)
    ended = [add(seed, status) for seed, status in enumerate(["finished", "failed", "diverged", "pruned"], start=2)]
    run_clean(study, "--yes")
    assert all(folder.checkpoint.exists() for folder in begun)
    run_clean(study, "--yes", "--interrupted")
    assert "interrupted" in capsys.readouterr().out
    assert not any(folder.path.exists() for folder in begun)
    assert all(folder.record.exists() for folder in ended)


def test_an_interrupted_run_that_ended_since_the_listing_stays(study, add):
    folder = add(0, "interrupted")
    (item,) = clean.leftovers(study, ["interrupted"])
    add(0, "finished")
    assert not clean.remove(item)
    assert folder.record.exists()


def test_nothing_of_a_live_owner_is_touched(study, add, capsys):
    old, new, begun = add(0, source="0" * 16), add(1, None), add(3, "running")
    elsewhere = add(2, None)
    elsewhere.lock.write_text(json.dumps({"host": "another", "pid": 1, "started": 1}))
    with locks.hold(old.lock), locks.hold(new.lock), locks.hold(begun.lock):
        before = everything(study)
        assert run_clean(study, "--yes", "--old-code", "--interrupted") == 0
        assert everything(study) == before
    assert "nothing to remove" in capsys.readouterr().out


def test_the_lock_of_another_machine_is_stale_once_it_stops_beating(study, add):
    folder = add(0)
    folder.lock.write_text(json.dumps({"host": "another", "pid": 1, "started": 1}))
    long_ago = time.time() - locks.TAKE_OVER - 5
    os.utime(folder.lock, (long_ago, long_ago))
    assert run_clean(study, "--yes") == 0
    assert not folder.lock.exists()
    assert folder.record.exists()


def test_a_run_that_was_taken_up_since_the_listing_stays(study, add, capsys):
    folder = add(0, None)
    (item,) = clean.leftovers(study)
    with locks.hold(folder.lock):
        assert not clean.remove(item)
    folder.metrics.write_text("{}\n")
    assert not clean.remove(item)
    assert folder.metrics.exists()


def test_a_folder_with_a_file_of_the_users_own_stays(study, add):
    folder = add(0, None)
    (folder.path / "notes.md").write_text("mine")
    assert clean.leftovers(study) == []


def test_symbolic_links_are_neither_followed_nor_removed(study, add, tmp_path):
    outside = tmp_path / "outside" / "seed=0"
    outside.mkdir(parents=True)
    (outside / "config.yaml").write_text("{}")
    (study.runs_path / "linked").symlink_to(outside.parent, target_is_directory=True)
    (study.path / "sweeps").symlink_to(outside, target_is_directory=True)
    (outside / ".a.tmp").write_text("x")
    os.utime(outside / ".a.tmp", (0, 0))
    old = add(0, source="0" * 16)
    (old.path / "data").symlink_to(outside, target_is_directory=True)
    current = add(1)
    current.hydra.rmdir()
    current.hydra.symlink_to(outside, target_is_directory=True)
    assert run_clean(study, "--yes", "--old-code") == 0
    assert not old.path.exists()
    assert sorted(path.name for path in outside.iterdir()) == [".a.tmp", "config.yaml"]
    assert (study.runs_path / "linked").is_symlink()


def test_temporary_files_of_sweeps_go_once_they_are_old(study):
    study.sweeps_path.mkdir()
    young, old = study.sweeps_path / ".a.json.1.tmp", study.sweeps_path / ".b.json.1.tmp"
    young.write_text("x")
    old.write_text("x")
    os.utime(old, (0, 0))
    run_clean(study, "--yes")
    assert young.exists()
    assert not old.exists()


def test_a_temporary_file_that_gets_its_name_meanwhile_is_left_out(study, monkeypatch):
    (study.path / "tuning").mkdir(parents=True)
    there = study.path / "tuning" / ".a.json.1.tmp"
    there.touch()
    os.utime(there, (0, 0))
    assert [leftover.path for leftover in clean.leftovers(study)] == [there]
    is_file = Path.is_file

    def moved_after(path: Path) -> bool:
        found = is_file(path)
        there.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_file", moved_after)
    assert clean.leftovers(study) == []
    assert clean.size_of(there) == 0


def test_the_lock_of_a_tuning_whose_process_is_gone_is_listed(study):
    lock = study.path / "tuning" / "tune.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps(vars(locks.Owner.me()) | {"pid": 2**22 + 1}))
    assert [(leftover.path, leftover.why) for leftover in clean.leftovers(study)] == [(lock, "stale lock")]
    with locks.hold(lock):
        assert clean.leftovers(study) == []


def test_a_path_that_is_no_study_is_refused_in_one_line(tmp_path, capsys):
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(SystemExit) as end:
            clean.main([str(path), "--yes"])
        assert end.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1

"""A study whose source code is edited while it grows, on a copy of the source tree."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ablate.records import StudyFolder

ROOT = Path(__file__).resolve().parents[2]


def sources() -> list[str]:
    """The fingerprint of each run, in the order of their seeds."""
    records = [folder.read() for folder in StudyFolder(Path("multirun/edited")).runs()]
    return [record.source for record in sorted(records, key=lambda record: record.seed)]


def copied(tree: Path) -> Path:
    """A copy of the source tree; returns the file of a scheme in it."""
    for part in ("ablate", "analysis", "conf", "hydra_plugins"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tree / "ablate" / "models" / "attention" / "rope.py"


def environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "160"}


def edit(scheme: Path) -> None:
    with scheme.open("a") as file:
        file.write("\n# edited\n")


def test_code_edited_between_two_runs_is_told_and_retrained_when_asked(in_tmp, tiny):
    scheme = copied(in_tmp / "tree")

    def command(*arguments: str) -> str:
        started = [sys.executable, "-m", "ablate.run", "-m", "hydra/launcher=basic", *tiny, "study=edited", *arguments]
        done = subprocess.run(
            started,
            env=environment(in_tmp / "tree"),
            cwd=in_tmp,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    assert "MIXED CODE" not in command("seed=0")
    edit(scheme)
    told = command("seed=range(2)")
    first, second = sources()
    assert first != second
    assert "mixed code" in told.lower(), told
    assert "mixed code" not in command("seed=range(2)", "sweep.rerun=stale").lower()
    assert sources() == [second, second]


def test_g8_code_edited_while_jobs_wait_is_told_in_the_table_of_that_sweep(in_tmp, tiny):
    pytest.importorskip("submitit")
    scheme = copied(in_tmp / "tree")
    waiting = ["hydra/launcher=submitit_local", "hydra.launcher.n_jobs=1", "seed=range(4)", "study=edited"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ablate.run", "-m", *tiny, *waiting],
        env=environment(in_tmp / "tree"),
        cwd=in_tmp,
        stdout=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 120
    while not list(Path("multirun/edited").glob("runs/*/seed=0/run.json")) and time.monotonic() < until:
        time.sleep(0.01)
    edit(scheme)
    told, _ = process.communicate(timeout=240)
    assert process.returncode == 0, told
    assert len(sources()) == 4
    assert len(set(sources())) == 2
    assert "mixed code" in told.lower(), told


@pytest.mark.parametrize("launcher", ["basic", "local"])
def test_what_a_process_has_begun_with_it_keeps(in_tmp, tiny, launcher):
    """A scheme that the first run does not use is edited before the second uses it, in the same process."""
    scheme = copied(in_tmp / "tree").with_name("alibi.py")
    arguments = [*tiny, "attention=rope,alibi", "study=edited", f"hydra/launcher={launcher}"]
    arguments += ["hydra.launcher.n_jobs=1"] if launcher == "local" else []
    process = subprocess.Popen(
        [sys.executable, "-m", "ablate.run", "-m", *arguments],
        env=environment(in_tmp / "tree"),
        cwd=in_tmp,
        stdout=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 120
    while not list(Path("multirun/edited").glob("runs/*/seed=0/run.json")) and time.monotonic() < until:
        time.sleep(0.01)
    scheme.write_text("1 / 0\n")
    told, _ = process.communicate(timeout=240)
    assert process.returncode == 0, told
    assert len(set(sources())) == 1
    assert "mixed code" not in told.lower()


def test_changes_since_the_commit_lie_beside_the_run(in_tmp, tiny):
    tree = in_tmp / "tree"
    scheme = copied(tree)
    name = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], [*name, "commit", "-q", "-m", "as it was"]):
        subprocess.run(["git", *words], cwd=tree, check=True)
    arguments = [sys.executable, "-m", "ablate.run", *tiny, "study=edited"]
    for seed, edited in ((0, False), (1, True)):
        if edited:
            edit(scheme)
        subprocess.run([*arguments, f"seed={seed}"], env=environment(tree), cwd=in_tmp, check=True, timeout=240)
    clean, dirty = sorted(Path("multirun/edited").glob("runs/*/seed=*"))
    assert not (clean / "code.diff").exists()
    diff = (dirty / "code.diff").read_text()
    assert "+# edited" in diff
    recorded = json.loads((dirty / "run.json").read_text())["git"]["dirty"]
    assert recorded == hashlib.sha256(diff.encode()).hexdigest()[:16]

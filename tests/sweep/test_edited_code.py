"""A study whose source code is edited while it grows, on a copy of the source tree."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ablate.records import StudyFolder

ROOT = Path(__file__).resolve().parents[2]


def sources() -> list[str]:
    """The fingerprint of each run, in the order of their seeds."""
    records = [folder.read() for folder in StudyFolder(Path("multirun/edited")).runs()]
    return [record.source for record in sorted(records, key=lambda record: record.seed)]


def test_code_edited_between_two_runs_is_told_and_retrained_when_asked(in_tmp, tiny):
    tree = in_tmp / "tree"
    for part in ("ablate", "analysis", "conf", "hydra_plugins"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))

    def command(*arguments: str) -> str:
        started = [sys.executable, "-m", "ablate.run", "-m", "hydra/launcher=basic", *tiny, "study=edited", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "160"}
        done = subprocess.run(
            started, env=environment, cwd=in_tmp, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    assert "MIXED CODE" not in command("seed=0")
    with (tree / "ablate" / "models" / "attention" / "rope.py").open("a") as scheme:
        scheme.write("\n# edited\n")
    told = command("seed=range(2)")
    first, second = sources()
    assert first != second
    assert "mixed code" in told.lower(), told
    assert "mixed code" not in command("seed=range(2)", "sweep.rerun=stale").lower()
    assert sources() == [second, second]

"""What all tests share: the command line in this process, and a run small enough to train in a fraction of a second."""

import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hydra.core.global_hydra import GlobalHydra
from hypothesis import settings

# A shell that starts the tests in the background has them ignore Ctrl-C, and every process that they start too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says nothing on a shared machine.
settings.register_profile("ablate", deadline=None)
settings.load_profile("ablate")

TINY = (
    "training.steps=6",
    "training.eval_every=3",
    "training.log_every=2",
    "training.batch_size=4",
    "evaluation.sequences=16",
    "evaluation.curve_sequences=8",
    "task.seq_len=24",
    "task.substr_len=3",
    "task.rnd_len=3",
    "model.width=8",
    "model.heads=2",
    "model.layers=1",
)
ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


class Result(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


def pytest_terminal_summary(terminalreporter) -> None:
    """Print what tests counted (`record_property`), the same name of several tests added up."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        counts.update(dict(report.user_properties))
    if counts:
        terminalreporter.section("counts")
    for name, number in sorted(counts.items()):
        terminalreporter.write_line(f"{number:>5}  {name}")


@pytest.fixture
def tiny() -> list[str]:
    return list(TINY)


@pytest.fixture(scope="session")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text without repeats for tasks that read one (`task.path`): tests do without the network."""
    path = tmp_path_factory.mktemp("text") / "numbers.txt"
    path.write_text(" ".join(map(str, range(80_000))), encoding="utf-8")
    return path


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder; the checkout stays importable for worker processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


@pytest.fixture
def cli(in_tmp: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable]:
    """Run `python -m ablate.run` in this process, in an empty folder."""
    from ablate.config.arguments import given
    from ablate.run import main

    def command(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["ablate.run", *arguments])
        GlobalHydra.instance().clear()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    yield command
    GlobalHydra.instance().clear()
    given.clear()  # a --config-dir of this test, which later ones would look for


@pytest.fixture
def sweep(cli: Callable, tiny: list[str]) -> Callable:
    """Run a tiny sweep in this process, one job after the other."""

    def command(*arguments: str) -> Result:
        return cli("-m", "hydra/launcher=basic", *tiny, *arguments)

    return command


@pytest.fixture
def spawn(in_tmp: Path, tiny: list[str]) -> Iterator[Callable]:
    """Start `python -m ablate.run` as a process of its own; whatever is left at the end of the test is killed."""
    started: list[subprocess.Popen] = []

    def command(*arguments: str, **options: Any) -> subprocess.Popen:
        usual = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "env": {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"},
            "start_new_session": True,
        }
        process = subprocess.Popen([sys.executable, "-m", "ablate.run", *arguments], **usual | options)
        started.append(process)
        return process

    yield command
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

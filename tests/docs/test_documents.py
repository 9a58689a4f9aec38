"""Commands and links in the documents work as they stand."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ablate.config.register import config_dir

ROOT = Path(__file__).resolve().parents[2]
READMES = [ROOT / "benchmarks" / "README.md", ROOT / "multirun" / "README.md"]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), *READMES]
LINES = [(document.name, line.strip()) for document in DOCUMENTS for line in document.read_text().splitlines()]


def commands(prefix: str) -> list[str]:
    """Every distinct command in the documents that starts with `prefix`, without its prompt and comment."""
    found = {}
    for _, line in LINES:
        for text in re.findall(rf"(?:^|\$ |`)({re.escape(prefix)}[^`]*)", line):
            found[text.split("   #")[0].split("  #")[0].strip().rstrip(".")] = None
    return [command for command in found if "..." not in command and "[" not in command.replace("'.[", "")]


RUNS = [command for command in commands("python -m ablate.run") if "key=" not in command]


def test_there_are_commands_to_test():
    assert len(RUNS) >= 8


@pytest.mark.parametrize("command", RUNS)
def test_run_commands_are_accepted(cli, command, in_tmp, text_file):
    """Sweeps and runs as dry runs of one step; `--cfg` and `--help` as they are."""
    (in_tmp / "tinyshakespeare.txt").symlink_to(text_file)
    arguments = shlex.split(command)[3:]
    if "-m" in arguments:
        arguments += ["sweep.dry_run=true"]
    elif not any(a in ("--cfg", "--help", "--hydra-help", "-sc") for a in arguments):
        arguments += ["training.steps=1", "evaluation.sequences=8"]
    result = cli(*arguments)
    assert result.code == 0, result.err


@pytest.mark.parametrize("command", commands("python -m "))
def test_every_module_named_in_a_command_answers_help(command):
    module = shlex.split(command)[2]
    if module in ("venv", "pip", "pytest"):
        return
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = {name for _, line in LINES for name in re.findall(r"(?:^|`)make ([a-z]+)", line)}
    assert named
    assert named <= targets


def test_links_and_images_point_to_files():
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_paths_named_in_the_trees_exist():
    names = re.findall(
        r"^\s*([a-z_]+(?:\.py|\.yaml|/))", (ROOT / "README.md").read_text().split("## The tree")[1], re.M
    )
    assert len(names) > 15
    for name in names:
        assert list(ROOT.rglob(name.rstrip("/"))), name


def test_every_test_file_named_in_the_architecture_exists():
    for name in re.findall(r"`(tests/[\w/]+\.py)`", (ROOT / "ARCHITECTURE.md").read_text()):
        assert (ROOT / name).exists(), name


def test_every_option_of_conf_is_in_help(cli):
    out = cli("--help").out
    for group in ("attention", "task", "optimizer", "schedule", "ablation", "experiment"):
        for file in (config_dir() / group).glob("*.yaml"):
            assert re.search(rf"^{group}: .*\b{file.stem}\b", out, re.MULTILINE), file


def test_no_document_holds_an_unfilled_place():
    for document in DOCUMENTS:
        assert not re.search(r"\b[A-Z]+_(OUTPUT|TABLE)\b|RESULTS:|TODO|\bRUNTIME\b", document.read_text()), (
            document.name
        )


def test_completion_offers_options(monkeypatch, cli):
    monkeypatch.setenv("COMP_LINE", "ablate attention=ro")
    assert "attention=roper" in cli("-sc", "query=bash").out
    monkeypatch.setenv("COMP_LINE", "ablate training.st")
    assert "training.steps=" in cli("-sc", "query=bash").out


def test_every_test_named_for_a_field_report_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "tests/field_reports/README.md").read_text())
    assert len(named) > 50
    for file, name in named:
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"

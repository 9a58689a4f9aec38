"""Every experiment names its study and its command, which is accepted; a small one asks what its full one asks.

That each composes and passes the checks is tested with all of conf/ in test_conf.
"""

import re
import shlex

import pytest

from ablate.config.explain import compose_cell
from ablate.config.register import config_dir, plain

FILES = {file.stem: file for file in sorted((config_dir() / "experiment").glob("*.yaml"))}
PAIRS = [(name, f"{name}_small") for name in FILES if f"{name}_small" in FILES]


def commands(name: str) -> list[str]:
    """The commands in the comments of an experiment's file."""
    return re.findall(r"^#   (python -m ablate\.run .*)$", FILES[name].read_text(encoding="utf-8"), re.MULTILINE)


def variants(name: str) -> list[str]:
    """What an experiment's command sweeps over, its own name and the seeds aside."""
    arguments = shlex.split(commands(name)[0])[4:]
    return [argument for argument in arguments if not argument.startswith(("experiment=", "seed="))]


def test_every_small_experiment_has_a_full_one():
    small = {name for name in FILES if name.endswith("_small")}
    assert len(small) >= 10
    assert small == {name for _, name in PAIRS}


@pytest.mark.parametrize("name", FILES)
def test_an_experiment_names_its_own_study_and_a_metric(name):
    config = plain(compose_cell([f"experiment={name}"]))
    assert config["study"] == name
    assert config["sweep"]["metric"].startswith("eval/")


@pytest.mark.parametrize("name", FILES)
def test_an_experiments_command_is_accepted(name, cli, text_file):
    assert len(commands(name)) == 1
    arguments = shlex.split(commands(name)[0])[3:]
    assert arguments[:2] == ["-m", f"experiment={name}"]
    if "path" in plain(compose_cell([f"experiment={name}"]))["task"]:
        arguments.append(f"task.path={text_file}")
    result = cli(*arguments, "sweep.dry_run=true")
    assert result.code == 0, result.err
    assert result.out.startswith(f"multirun/{name}: ")


@pytest.mark.parametrize(("full", "small"), PAIRS)
def test_a_small_experiment_has_the_variants_task_and_metric_of_its_full_one(full, small):
    # A narrow head cannot be rotated by a tenth: an eighth is the nearest.
    assert [text.replace("0.125", "0.1") for text in variants(small)] == variants(full)
    configs = [plain(compose_cell([f"experiment={name}"])) for name in (full, small)]
    for key in ("task", "model", "optimizer"):
        assert configs[0][key]["_target_"] == configs[1][key]["_target_"]
    assert re.sub(r"@\d+", "@", configs[0]["sweep"]["metric"]) == re.sub(r"@\d+", "@", configs[1]["sweep"]["metric"])

"""The wheel carries everything a run needs, and works far from the checkout."""

import itertools
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"))


def test_the_wheel_has_conf_the_plugin_the_template_and_no_tests(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    conf = {f"ablate/conf/{file.relative_to(ROOT / 'conf').as_posix()}" for file in (ROOT / "conf").rglob("*.yaml")}
    assert len(conf) > 15
    assert conf <= names
    assert {
        "hydra_plugins/ablate_sweepers/__init__.py",
        *(f"analysis/templates/{name}" for name in ("report.html.j2", "section.html.j2", "page.css", "page.js")),
        "ablate/py.typed",
    } <= names
    assert "hydra_plugins/__init__.py" not in names
    assert not any(name.startswith(("tests/", "benchmarks/", "multirun/")) for name in names)


def test_the_wheel_runs_a_sweep_and_a_report_outside_the_checkout(wheel, tmp_path, tiny):
    target = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(target)
    environment = {**os.environ, "PYTHONPATH": str(target)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("ablate.run", "-m", *tiny, "attention=rope,roper", "seed=range(3)")
    run("analysis.report", "multirun/copy_repeat")
    assert (tmp_path / "multirun/copy_repeat/report/report.html").exists()
    config = run("ablate.run", "--cfg", "hydra")
    assert str(target / "ablate" / "conf") in config


def test_torch_is_pinned_for_the_setup_and_a_range_for_users():
    constraints = (ROOT / "constraints.txt").read_text().splitlines()
    assert "torch==2.13.0" in constraints
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "torch>=2.6" in project["dependencies"]
    assert set(project["optional-dependencies"]) >= {"dev", "slurm", "ray", "peers"}


def test_every_direct_dependency_has_an_exact_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    names = {re.split(r"[<>=\[ ]", requirement)[0].lower().replace("_", "-") for requirement in wanted}
    assert names - {"ablate"} <= pinned

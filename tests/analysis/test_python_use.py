"""What docs/analysis.md shows works as it stands, and a single figure can be had by its name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fake_study import noise, write_study

import analysis
from analysis.compare import EXIT_CODES
from analysis.comparison import compare
from analysis.plots.base import all_plots, figure
from analysis.report import main as report_main
from analysis.statistics.verdict import Verdict
from analysis.study import StudyError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def write(path):
    base = noise(0, 6)
    write_study(path, {"rope": base, "roper": [b - 0.05 + 0.002 * i for i, b in enumerate(base)]}, curves=True)


def test_the_examples_run_one_after_the_other(tmp_path, monkeypatch):
    write(tmp_path / "multirun" / "copy_repeat")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert len(BLOCKS) == 5
    (tmp_path / "notebook.py").write_text("\n".join(BLOCKS), encoding="utf-8")
    done = subprocess.run([sys.executable, "-W", "error", "notebook.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "roper better -0.0" in done.stdout
    assert "| **roper** |" in done.stdout
    assert r"\begin{tabular}" in done.stdout
    assert (tmp_path / "paired_difference.pdf").read_bytes().startswith(b"%PDF")


def test_the_page_names_every_option_and_every_verdict(capsys):
    with pytest.raises(SystemExit):
        report_main(["--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert options <= set(re.findall(r"--[a-z-]+", PAGE))
    table = dict(re.findall(r"^\| (\w+) \|.*\| (\d+) \|$", PAGE, flags=re.MULTILINE))
    assert table == {str(verdict): str(EXIT_CODES[verdict]) for verdict in Verdict}


@pytest.mark.parametrize("name", [plot.name for plot in all_plots()])
def test_a_figure_is_given_by_name_or_says_that_it_has_nothing_to_show(tmp_path, name):
    write(tmp_path / "s")
    comparison = compare(tmp_path / "s")
    plot = next(plot for plot in all_plots() if plot.name == name)
    if plot.prepare(comparison).empty:
        with pytest.raises(StudyError, match=f"figure {name} has nothing to show"):
            figure(comparison, name)
    else:
        assert figure(comparison, name).axes


def test_an_unknown_figure_names_those_there_are(tmp_path):
    write(tmp_path / "s")
    with pytest.raises(StudyError, match=r"no figure 'pie'; there are: .*, heat_map, .*, success"):
        figure(compare(tmp_path / "s"), "pie")


def test_the_package_offers_what_it_lists():
    assert all(callable(analysis.__getattr__(name)) for name in analysis.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = analysis.nothing

"""The commands: what they write, what they return, and that the same study gives the same bytes."""

import io
import json
import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_study import FIRST_SWEEP, damage, ending, never_started, noise, write_study
from rich.console import Console

from ablate.records import Status
from analysis import report
from analysis.compare import main as compare_main
from analysis.summary import print_summary

ROOT = Path(__file__).parents[2]
KEYS = {"metric", "direction", "baseline", "planned_seeds", "looks", "variants"}
VARIANT_KEYS = {
    *re.findall(
        r"\w+",
        "label factors n_planned n_ok n_failed n_diverged mean sd ci median delta delta_ci p p_holm wins pairs rho mde "
        "seeds_needed paired verdict flags",
    )
}
BASE = noise(2, 6)
BETTER = [b - 0.05 + 0.003 * (-1) ** i for i, b in enumerate(BASE)]


def small(path, **more):
    return write_study(path, {"rope": BASE, "roper": BETTER, "_x$|": noise(3, 6)}, curves=True, **more)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    study = tmp_path_factory.mktemp("studies") / "copy_repeat"
    small(study, changes={("_x$|", 2): ending(Status.diverged)}, looks=[18])
    assert report.main([str(study), "--margin", "0.01"]) == 1
    return study / "report"


def test_every_promised_file_is_written(written):
    found = {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()}
    assert {"report.html", "report.md", "comparison.json", "runs.csv"} <= found
    assert {f"tables/comparison.{e}" for e in ("md", "csv", "tex")} <= found
    for name in ("paired_difference", "learning_curves"):
        assert {f"figures/{name}.{e}" for e in ("png", "svg", "pdf", "csv")} <= found


def test_comparison_json_has_the_names_that_scripts_rely_on(written):
    data = json.loads((written / "comparison.json").read_text(), parse_constant=pytest.fail)
    assert data.keys() >= KEYS
    assert (data["metric"], data["direction"], data["baseline"]) == ("eval/loss", "lower", "rope")
    assert (data["planned_seeds"], data["looks"]) == (6, [6])
    assert [v["label"] for v in data["variants"]] == ["rope", "roper", "_x$|"]
    assert all(v.keys() >= VARIANT_KEYS for v in data["variants"])
    assert len({tuple(v) for v in data["variants"]}) == 1
    assert [v["verdict"] for v in data["variants"]] == [None, "better", "inconclusive"]
    assert [v["n_diverged"] for v in data["variants"]] == [0, 0, 1]


def test_runs_csv_reads_back_with_one_row_per_planned_run(written):
    frame = pd.read_csv(written / "runs.csv")
    assert len(frame) == 18
    assert frame.loc[frame["label"] == "roper", "eval/loss"].tolist() == pytest.approx(BETTER, rel=0, abs=0)


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.sources, self.images = [], 0

    def handle_starttag(self, tag, attrs):
        self.images += tag == "img"
        self.sources += [value for name, value in attrs if name in ("src", "href")]


def test_the_page_holds_everything_and_asks_nothing_of_the_network(written):
    text = (written / "report.html").read_text()
    page = Links()
    page.feed(text)
    assert page.images == 2
    assert all(source.startswith(("data:image/svg+xml;base64,", "#", "../runs/")) for source in page.sources)
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert "better than rope by a meaningful margin" in text
    assert "python -m analysis.report multirun/copy_repeat --margin 0.01" in text


def test_the_markdown_report_links_the_figures(written):
    text = (written / "report.md").read_text()
    for target in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (written / target).is_file()
    assert "P(better) 1.00 \\[0.54, 1.00\\], d\\_z" in text
    assert r"\_x\$\|" in text
    assert "**Experiments compute resources.** Devices: cpu" in text
    assert "## Cost\n\n| variant | runs |" in text


def test_the_same_study_gives_the_same_bytes_in_another_folder_and_time_zone(written, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Chatham")
    time.tzset()
    study = tmp_path / "elsewhere" / "renamed"
    small(study, changes={("_x$|", 2): ending(Status.diverged)}, looks=[18])
    report.main([str(study), "--margin", "0.01"])
    monkeypatch.undo()
    time.tzset()
    again = study / "report"
    files = sorted(path.relative_to(written) for path in written.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    for file in files:
        assert (written / file).read_bytes() == (again / file).read_bytes(), file


def test_a_report_elsewhere_is_the_same_but_for_links_to_the_folders_of_runs(written, tmp_path):
    study = tmp_path / "s"
    small(study, changes={("_x$|", 2): ending(Status.diverged)}, looks=[18])
    report.main([str(study), "--margin", "0.01", "--out", str(tmp_path / "out")])
    for file in ("report.md", "comparison.json", "tables/cost.csv", "figures/learning_curves.svg"):
        assert (written / file).read_bytes() == (tmp_path / "out" / file).read_bytes(), file
    here, elsewhere = ((folder / "report.html").read_text() for folder in (written, tmp_path / "out"))
    assert re.sub(r'<a href="\.\./runs/[^"]*">([^<]*)</a>', r"\1", here) == elsewhere
    assert "../runs/" not in elsewhere


def test_a_complete_study_ends_with_0_and_prints_the_table_and_the_folder(tmp_path, capsys):
    small(tmp_path / "s")
    assert report.main([str(tmp_path / "s"), "--sweep", FIRST_SWEEP, "--baseline", "roper"]) == 0
    out = capsys.readouterr().out
    assert "verdict" in out
    assert f"report: {tmp_path / 's' / 'report'}" in out


def test_a_study_of_one_run_can_be_reported(tmp_path):
    write_study(tmp_path / "s", {"rope": [0.4]})
    assert report.main([str(tmp_path / "s")]) == 0
    (variant,) = json.loads((tmp_path / "s" / "report" / "comparison.json").read_text())["variants"]
    assert variant.keys() >= VARIANT_KEYS


@pytest.mark.parametrize(("value", "factor"), [(".inf", "inf"), ("2026-01-01", "2026-01-01"), ("!!binary aGk=", "hi")])
def test_a_value_of_the_config_that_json_lacks_is_text_in_the_report(tmp_path, value, factor):
    folder = write_study(tmp_path / "s", {"rope": BASE, "roper": BETTER})
    for run in folder.runs():
        shown = value if run.read().label == "roper" else "1.0"
        run.config.write_text(f"{run.config.read_text()}horizon: {shown}\n")
    assert report.main([str(tmp_path / "s"), "--sweep", "all"]) == 0
    data = json.loads((tmp_path / "s" / "report" / "comparison.json").read_text(), parse_constant=pytest.fail)
    assert [v["factors"]["horizon"] for v in data["variants"]] == [1.0, factor]


def test_a_ratio_too_large_for_a_float_is_null(tmp_path):
    arms = {"low": [1e-300 * (1 + 0.1 * i) for i in range(5)], "high": [9e99 * (1 + 0.01 * i) for i in range(5)]}
    write_study(tmp_path / "s", arms)
    assert report.main([str(tmp_path / "s"), "--transform", "log"]) == 0
    low, high = json.loads((tmp_path / "s" / "report" / "comparison.json").read_text())["variants"]
    assert (high["ratio"], high["ratio_ci"], high["verdict"]) == (None, None, "worse")
    assert high["delta"] == pytest.approx(sum(np.log(arms["high"]) - np.log(arms["low"])) / 5)
    assert low["geometric_mean"] == pytest.approx(np.exp(np.mean(np.log(arms["low"]))))


def test_a_damaged_file_is_named_in_the_report(tmp_path, capsys):
    folder = small(tmp_path / "s")
    damage(folder, "rope", 3)
    assert report.main([str(tmp_path / "s")]) == 1
    assert "run.json: not valid JSON" in capsys.readouterr().out.replace("\n", " ")
    assert "not valid JSON" in (tmp_path / "s" / "report" / "report.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metric", "eval/los"], "did you mean eval/loss"),
        (["--baseline", "alibi"], "the variants are: rope, roper, _x$|"),
        (["--sweep", "x"], f"there are: {FIRST_SWEEP}"),
        (["--margin", "-3"], "not a positive number"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, capsys, options, message):
    small(tmp_path / "s")
    assert report.main([str(tmp_path / "s"), *options]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "s" / "report").exists()


def test_a_folder_that_cannot_be_written_is_one_line_and_exit_code_2(tmp_path, capsys):
    small(tmp_path / "s")
    (tmp_path / "file").touch()
    assert report.main([str(tmp_path / "s"), "--out", str(tmp_path / "file")]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("a", "b", "code"), [("roper", "rope", 0), ("rope", "roper", 12), ("rope", "again", 11), ("rope", "few", 14)]
)
def test_compare_tells_the_verdict_by_its_exit_code(tmp_path, a, b, code):
    arms = {"rope": BASE, "roper": BETTER, "again": [x + 0.02 * (-1) ** i for i, x in enumerate(BASE)], "few": BASE[:2]}
    write_study(tmp_path / "s", arms)
    assert compare_main([str(tmp_path / "s"), a, b]) == code


def test_compare_knows_equivalent_and_unstable(tmp_path):
    near = [x + 0.001 * (-1) ** i for i, x in enumerate(BASE)]
    changes = {("lost", s): ending(Status.failed) for s in (0, 1)}
    write_study(tmp_path / "s", {"rope": BASE, "near": near, "lost": near}, changes=changes)
    assert compare_main([str(tmp_path / "s"), "near", "rope", "--margin", "0.01"]) == 10
    assert compare_main([str(tmp_path / "s"), "lost", "rope"]) == 13
    assert compare_main([str(tmp_path / "s"), "rope", "rope"]) == 2
    assert compare_main([str(tmp_path / "nowhere"), "a", "b"]) == 2


def test_compare_prints_strict_json(tmp_path, capsys):
    small(tmp_path / "s", looks=[6, 18])
    compare_main([str(tmp_path / "s"), "attention=roper", "rope", "--json"])
    data = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (data["label"], data["baseline"], data["verdict"]) == ("roper", "rope", "better")
    assert data["looks"] == [2, 6]


def print_of(study, sweep="latest"):
    console = Console(width=100, record=True, file=io.StringIO())
    print_summary(study, sweep, console)
    return console.export_text()


def test_the_summary_shows_the_table_and_leaves_failures_to_the_sweep(tmp_path):
    small(tmp_path / "s", changes={("roper", 1): ending(Status.failed, "boom"), ("rope", 0): never_started})
    text = print_of(tmp_path / "s")
    assert "verdict" in text
    assert "1 failed" in text
    assert "RuntimeError: boom" not in text


def test_the_summary_of_a_sweep_without_a_finished_run_says_so(tmp_path):
    write_study(tmp_path / "s", {"rope": BASE[:1]}, changes={("rope", 0): ending(Status.failed, "boom")})
    text = print_of(tmp_path / "s", FIRST_SWEEP)
    assert "no comparison: study copy_repeat has no finished run" in text
    assert "no comparison" in print_of(tmp_path / "nowhere")


def test_the_commands_import_neither_torch_nor_for_the_summary_matplotlib(tmp_path):
    write_study(tmp_path / "s", {"rope": BASE})
    code = (
        "import sys, pathlib, rich.console, analysis.summary\n"
        "assert 'pandas' not in sys.modules\n"
        "analysis.summary.print_summary(pathlib.Path(sys.argv[1]), 'latest', rich.console.Console())\n"
        "assert not {'torch', 'matplotlib', 'jinja2'} & set(sys.modules)\n"
        "import analysis\n"
        "assert analysis.load_study(sys.argv[1]).name == 'copy_repeat'\n"
        "assert callable(analysis.compare) and callable(analysis.figures)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], check=True, env=environment, capture_output=True)


def test_the_command_compare_gives_the_row_of_the_report(tmp_path, capsys):
    arms = {"base": noise(0, 8), **{f"v{i}": [v - 0.015 for v in noise(i, 8)] for i in range(1, 7)}}
    write_study(tmp_path / "s", arms)
    report.main([str(tmp_path / "s")])
    rows = {
        row["label"]: row for row in json.loads((tmp_path / "s" / "report" / "comparison.json").read_text())["variants"]
    }
    capsys.readouterr()
    for label in ("v1", "v4"):
        compare_main([str(tmp_path / "s"), label, "base", "--json"])
        shown = json.loads(capsys.readouterr().out)
        for key in ("p", "p_holm", "verdict", "delta_ci", "wins", "sentence", "flags"):
            assert shown[key] == rows[label][key]

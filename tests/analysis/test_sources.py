"""The commands on studies of other programs and on tables: what is written, where, with which exit code."""

import json
import shutil
from pathlib import Path

import pytest
from fake_study import noise, write_study
from foreign_runs import LAYOUTS, run_folders, table, touch, write_grid, write_hydra

from analysis import report
from analysis.compare import main as compare_main

GOLDENS = [
    Path(__file__).parents[1] / "golden" / "labml_copy_repeat.csv",
    Path(__file__).parents[3] / "shared" / "golden" / "labml_copy_repeat.csv",
]
TABLE = "variant,seed,loss,note\n" + "".join(
    f"{name},{seed},{0.5 + 0.01 * (seed * 7 % 5) - (0.1 + 0.01 * seed) * (name == 'b')},x\n"
    for name in "ab"
    for seed in range(6)
)


def written(folder):
    return json.loads((folder / "comparison.json").read_text())


def command_of(folder):
    return (folder / "report.md").read_text().rstrip().splitlines()[-1].strip()


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_report_on_other_runs_has_verdict_figures_and_the_command_that_writes_it_again(
    tmp_path, layout, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_grid(tmp_path / "multirun", layout)
    metrics = LAYOUTS[layout][1]
    assert report.main(["multirun", "--metrics", metrics, "--margin", "0.01"]) == 0
    folder = tmp_path / "multirun" / "report"
    data = written(folder)
    assert (data["metric"], data["study"], data["variants"][1]["verdict"]) == ("val_loss", "multirun", "better")
    assert (folder / "figures" / "learning_curves.csv").is_file()
    assert "<img" in (folder / "report.html").read_text()
    quoted = f"'{metrics}'" if "*" in metrics else metrics
    command = f"python -m analysis.report multirun --metrics {quoted} --margin 0.01"
    assert command_of(folder) == command
    assert str(tmp_path) not in (folder / "report.html").read_text()


def test_a_study_elsewhere_is_named_without_its_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_grid(tmp_path / "a")
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "b")
    report.main([str(tmp_path / "a"), "--metrics", "metrics.csv:val_loss", "--seed-key", "trainer.seed"])
    said = "python -m analysis.report a --metrics metrics.csv:val_loss --seed-key trainer.seed"
    assert command_of(tmp_path / "a" / "report") == said


def test_the_same_runs_give_the_same_bytes_with_the_cache_without_it_and_elsewhere(tmp_path):
    options = ["--metrics", "metrics.csv:val_loss"]
    for name in ("x", "y"):
        root = write_grid(tmp_path / name / "m")
        report.main([str(root), *options])
    first = files(tmp_path / "x" / "m" / "report")
    assert files(tmp_path / "y" / "m" / "report") == first
    report.main([str(tmp_path / "x" / "m"), *options])
    assert files(tmp_path / "x" / "m" / "report") == first
    shutil.rmtree(tmp_path / "x" / "m" / ".analysis_cache")
    report.main([str(tmp_path / "x" / "m"), *options])
    assert files(tmp_path / "x" / "m" / "report") == first


def test_a_changed_run_is_read_again_and_a_removed_one_is_gone(tmp_path):
    root = write_grid(tmp_path / "m")
    options = [str(root), "--metrics", "metrics.csv:val_loss"]
    report.main(options)
    first, second, *_ = run_folders(root)
    touch(table(first, [(10, 0.9), (20, 0.6), (30, 0.11)]), 60)
    shutil.rmtree(second)
    report.main(options)
    gpt, mamba = written(root / "report")["variants"]
    assert (gpt["min"], gpt["n_planned"], mamba["n_planned"]) == (0.11, 5, 4)


def test_a_run_without_a_value_ends_with_1_and_is_listed_with_its_place(tmp_path):
    root = write_grid(tmp_path / "m")
    (run_folders(root)[0] / "metrics.csv").unlink()
    assert report.main([str(root), "--metrics", "metrics.csv:val_loss"]) == 1
    listed = (root / "report" / "tables" / "failures.csv").read_text()
    assert "no file matches metrics.csv,2026-01-01/10-00-00/5" in listed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metrics", "metrics.csv:val_los"], "did you mean val_loss"),
        (["--metrics", "metric.csv:val_loss"], "no file matches"),
        (["--metrics", "metrics.csv"], "is not FILE:COLUMN"),
        (["--metrics", "metrics.csv:val_loss", "--seed-key", "sed"], "is a key of no run"),
        (["--metrics", "metrics.csv:val_loss", "--sweep", "all"], "has no sweeps"),
        (["--metrics", "metrics.csv:val_loss", "--metric", "acc"], "the metric is the column that --metrics"),
        (["--metrics", "metrics.csv:val_loss", "--baseline", "rwkv"], "the variants are: model=gpt, model=mamba"),
        ([], "holds runs of another program: say where their metrics are, --metrics FILE:COLUMN"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, capsys, options, message):
    root = write_grid(tmp_path / "m")
    assert report.main([str(root), *options]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (root / "report").exists()


def test_compare_knows_other_runs_and_tables_too(tmp_path, capsys):
    root = write_grid(tmp_path / "m")
    assert compare_main([str(root), "mamba", "gpt", "--metrics", "metrics.csv:val_loss", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == "model=mamba"
    (tmp_path / "t.csv").write_text(TABLE)
    assert compare_main([str(tmp_path / "t.csv"), "b", "a", "--metric", "loss"]) == 0
    assert compare_main([str(root), "mamba", "gpt", "--metrics", "metrics.csv:nope"]) == 2


def test_a_table_is_reported_beside_itself(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE)
    assert report.main(["t.csv", "--metric", "loss", "--baseline", "b"]) == 0
    data = written(tmp_path / "t_report")
    assert [v["verdict"] for v in data["variants"]] == ["worse", None]
    assert data["variants"][0]["paired"]
    assert command_of(tmp_path / "t_report") == "python -m analysis.report t.csv --baseline b --metric loss"


def test_the_published_study_is_inconclusive_from_the_command_line(tmp_path):
    path = next((path for path in GOLDENS if path.is_file()), None)
    if path is None:
        pytest.skip("the golden table is not here")
    out = tmp_path / "out"
    assert report.main([str(path), "--baseline", "rope", "--metric", "loss", "--out", str(out)]) == 0
    roper = written(out)["variants"][1]
    assert (roper["verdict"], roper["paired"]) == ("inconclusive", False)
    assert roper["delta"] == pytest.approx(-0.0116, abs=2e-4)
    assert roper["p"] == pytest.approx(0.068, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TABLE, ["--metric", "los"], "no column 'los'; there are: variant, seed, loss, note (did you mean loss?)"),
        ("variant,loss\n", [], "the table has no rows"),
        ("", [], "the file is empty"),
        ("name,loss\na,1\n", [], "no column 'variant'"),
        ("variant,loss\na,low\n", [], "row 1 has loss 'low', not a number"),
        ("variant,seed,loss\na,0,1\na,x,1\n", [], "row 2 has seed 'x', not a whole number"),
        ("variant,loss\n,1\n", [], "row 1 has no variant"),
        ("variant,seed,loss\na,0,1\nb,0,2,3\n", [], "row 2 (line 3) has 4 cells, the header 3 columns"),
        ("variant,variant,loss\na,b,1\n", [], "several are named 'variant'; rename all but one"),
        ('variant,seed,loss\n"a,0,1\n', [], "not a table in CSV (unexpected end of data)"),
        (",,\na,0,1\n", [], "the table has no rows"),
        (TABLE, ["--sweep", "all"], "has no sweeps"),
        (TABLE, ["--seed-key", "run"], "no column 'run'"),
        (None, [], "No such file"),
    ],
)
def test_a_table_that_does_not_fit_is_one_line_and_exit_code_2(tmp_path, capsys, text, options, message):
    if text is not None:
        (tmp_path / "t.csv").write_text(text)
    assert report.main([str(tmp_path / "t.csv"), "--metric", "loss", *options]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_seed_key_means_nothing_to_a_study_of_this_project(tmp_path, capsys):
    write_study(tmp_path / "s", {"rope": noise(0, 3)})
    assert report.main([str(tmp_path / "s"), "--seed-key", "seed"]) == 2
    assert "--seed-key seed: for a table, or together with --metrics" in capsys.readouterr().err


def test_runs_of_this_project_can_be_read_as_other_runs_are(tmp_path):
    folder = write_study(tmp_path / "s", {"rope": [0.5, 0.4, 0.3], "roper": [0.3, 0.2, 0.1]}, curves=True)
    for run in folder.runs():
        record = run.read()
        write_hydra(run.path, [f"attention={record.label}", f"seed={record.seed}"])
    assert report.main([str(folder.path), "--metrics", "metrics.jsonl:loss", "--baseline", "rope"]) == 0
    assert {v["label"]: v["n_ok"] for v in written(folder.report)["variants"]} == {
        "attention=rope": 3,
        "attention=roper": 3,
    }


def test_a_variant_key_is_the_one_setting_that_tells_other_runs_apart(tmp_path, capsys):
    for name in ("gpt", "mamba"):
        for seed in range(3):
            run = tmp_path / "m" / f"{name}{seed}"
            write_hydra(run, [f"model={name}", f"seed={seed}", f"note={name}{seed}"])
            table(run, [(1, 0.5 + seed)])
    options = [str(tmp_path / "m"), "--metrics", "metrics.csv:val_loss", "--variant-key"]
    assert report.main([*options, "model"]) == 0
    assert {v["label"]: v["n_ok"] for v in written(tmp_path / "m" / "report")["variants"]} == {
        "model=gpt": 3,
        "model=mamba": 3,
    }
    assert "--variant-key model" in command_of(tmp_path / "m" / "report")
    assert report.main([*options, "modle"]) == 2
    assert "--variant-key 'modle' is a key of no run; did you mean model?" in capsys.readouterr().err


def test_a_column_may_be_named_as_the_variant_of_a_table(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE.replace("variant", "Name"))
    assert compare_main([str(tmp_path / "t.csv"), "b", "a", "--metric", "loss", "--variant-key", "Name"]) == 0

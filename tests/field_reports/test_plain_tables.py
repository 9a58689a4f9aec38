"""Plain tables as people have them: other formats, encodings and names, rows of folds and epochs, and rows twice."""

import bz2
import csv
import gzip
import importlib.util
import io
import json
import lzma
import shlex

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis import reading, report
from analysis.compare import main as compare
from analysis.plain_csv import load_csv
from analysis.study import StudyError
from analysis.tasks import by_task

SEEDS = range(6)
BASE = [0.512, 0.498, 0.473, 0.531, 0.486, 0.509]
BETTER = [0.507, 0.489, 0.468, 0.519, 0.483, 0.5]
ROWS = [
    (name, seed, value)
    for name, values in (("a", BASE), ("b", BETTER))
    for seed, value in zip(SEEDS, values, strict=True)
]
EXPECTED = stats.ttest_rel(BETTER, BASE)


def text_of(rows, header=("variant", "seed", "loss"), delimiter=","):
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return written.getvalue()


def file_of(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def numbers(capsys, path, *options):
    """What compare says of b against a."""
    code = compare([str(path), "b", "a", "--metric", "loss", "--json", *options])
    out, err = capsys.readouterr()
    assert code != 2, err
    return json.loads(out)


def refusal(capsys, path, *options):
    """The one line with which compare refuses, before anything is written."""
    before = sorted(path.parent.iterdir())
    assert compare([str(path), "b", "a", "--metric", "loss", *options]) == 2
    assert sorted(path.parent.iterdir()) == before
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err.removeprefix(f"error: {path}: ").rstrip("\n")


def advised(line, option):
    """The value that a refusal says to give an option."""
    words = shlex.split(line.replace(", or keep", " "))
    return words[words.index(option) + 1].rstrip(",")


TEXT = text_of(ROWS)
DECIMAL_COMMAS = [(name, seed, str(value).replace(".", ",")) for name, seed, value in ROWS]
ENTRIES = [dict(zip(("variant", "seed", "loss"), row, strict=True)) for row in ROWS]
FORMATS = {
    "semicolons": text_of(ROWS, delimiter=";").encode(),
    "tabs": text_of(ROWS, delimiter="\t").encode(),
    "semicolons and decimal commas": text_of(DECIMAL_COMMAS, delimiter=";").encode(),
    "tabs and decimal commas": text_of(DECIMAL_COMMAS, delimiter="\t").encode("utf-16"),
    "Excel's first line": ("sep=;\r\n" + text_of(DECIMAL_COMMAS, delimiter=";")).encode("utf-8-sig"),
    "UTF-16": TEXT.encode("utf-16"),
    "gzip": gzip.compress(TEXT.encode()),
    "bzip2": bz2.compress(TEXT.encode()),
    "xz": lzma.compress(TEXT.encode()),
    "indented JSON": json.dumps(ENTRIES, indent=2).encode(),
    "JSON in one object": json.dumps({"when": "today", "results": ENTRIES}, indent=2).encode(),
    "JSON lines": "\n".join(map(json.dumps, ENTRIES)).encode(),
    "JSON by column": json.dumps({k: {str(i): e[k] for i, e in enumerate(ENTRIES)} for k in ENTRIES[0]}).encode(),
}


@pytest.mark.parametrize("form", FORMATS)
def test_w25_a_table_in_any_format_gives_the_numbers_of_scipy(tmp_path, capsys, form):
    found = numbers(capsys, file_of(tmp_path, FORMATS[form]))
    assert found["delta"] == pytest.approx(np.mean(BETTER) - np.mean(BASE), rel=1e-12)
    assert found["p"] == pytest.approx(EXPECTED.pvalue, rel=1e-9)
    assert found["delta_ci"] == pytest.approx(list(EXPECTED.confidence_interval()), rel=1e-9)
    assert (found["pairs"], found["verdict"]) == (6, "better")


BROKEN = {
    "semicolons": (TEXT.replace(",", ";") + "b;7;1;2\n", "row 13 (line 14) has 4 cells, the header 3 columns"),
    "tabs": (TEXT.replace(",", "\t").replace("0.512", "0.5I2"), "row 1 has loss '0.5I2', not a number"),
    "two decimal marks": (
        text_of([*DECIMAL_COMMAS, ("b", 7, 0.5)], delimiter=";"),
        "column loss: 0,512 and 0.5 have different decimal marks; write one of them throughout",
    ),
    "thousands": (
        "variant\tseed\tloss\na\t0\t1,234\nb\t0\t2,345\n",
        "column loss: 1,234 may mean 1234 or 1.234; write the one that it is",
    ),
    "another encoding": (TEXT.replace("b,", "ß,").encode("cp1252"), "line 8 is not UTF-8"),
    "half of UTF-16": (TEXT.encode("utf-16")[:-1], "is not UTF-16 (truncated data, byte"),
    "gzip": (gzip.compress(TEXT.encode())[:-20], "a compressed file that is damaged"),
    "indented JSON": (json.dumps(ENTRIES, indent=2)[:-3], "JSON that cannot be read, line"),
    "Excel": (b"PK\x03\x04" + bytes(80), "this is a zip archive that is damaged"),
    "one column": (TEXT.replace(",", "|"), "only one column, 'variant|seed|loss'; separate columns by commas"),
    "percent": (TEXT.replace("0.512", "51.2%"), "row 1 has loss '51.2%', not a number; write it without %"),
    "a line before the header": (
        "# by hand\n" + TEXT,
        "the header is one column, '# by hand', but line 2 has 3 cells; the first line must name the columns",
    ),
    "quoted decimal commas": (text_of(DECIMAL_COMMAS), "row 1 has loss '0,512', not a number; write decimals with a"),
    "numbers of Python": (TEXT.replace("0.512", "1_000"), "row 1 has loss '1_000', not a number"),
    "seeds of Python": (TEXT.replace("a,1,", "a,1_0,"), "row 2 has seed '1_0', not a whole number"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_w25_a_broken_table_is_one_line_that_says_what_is_wrong(tmp_path, capsys, what):
    content, message = BROKEN[what]
    line = refusal(capsys, file_of(tmp_path, content))
    assert message in line
    assert "no columns" not in line


def test_w25_parquet_is_read_where_a_package_for_it_is_there(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    import pandas as pd

    pd.DataFrame(ENTRIES).to_parquet(tmp_path / "t.parquet")
    assert numbers(capsys, tmp_path / "t.parquet")["p"] == pytest.approx(EXPECTED.pvalue, rel=1e-9)
    cut = file_of(tmp_path, (tmp_path / "t.parquet").read_bytes()[:-9], "cut.parquet")
    assert "Parquet that cannot be read" in refusal(capsys, cut)


def test_w25_parquet_without_such_a_package_names_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reading.importlib.util, "find_spec", lambda _: None)
    assert importlib.util.find_spec("pyarrow") is None
    path = file_of(tmp_path, b"PAR1\x15\x04\x15\x20", "t.parquet")
    assert refusal(capsys, path) == "this is Parquet, which needs a package: pip install pyarrow; or write it as CSV"


@pytest.mark.parametrize(
    "header",
    [
        ("Variant", " seed", "loss"),
        ("VARIANT ", "Seed", " Loss"),
        ("\ufeffvariant", "SEED", "loss"),
        ("variant", "random_seed", "loss"),
        ("variant", "Random Seed", "loss"),
        ("variant", "trainer.seed", "loss"),
        ("variant", "rngSeed", "loss"),
    ],
)
def test_w5_blanks_and_case_of_the_header_make_no_difference(tmp_path, capsys, header):
    found = numbers(capsys, file_of(tmp_path, text_of(ROWS, header)))
    assert found["paired"]
    assert found["p"] == pytest.approx(EXPECTED.pvalue, rel=1e-9)


def test_w5_values_inside_objects_are_columns_too(tmp_path, capsys):
    entries = [{"variant": v, "config": {"seed": s}, "metrics": {"loss": x}} for v, s, x in ROWS]
    path = file_of(tmp_path, json.dumps(entries), "t.json")
    assert "no column 'loss'; there are: variant, config.seed, metrics.loss (did you mean metrics.loss?)" in refusal(
        capsys, path
    )
    assert compare([str(path), "b", "a", "--metric", "metrics.loss", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["p"] == pytest.approx(EXPECTED.pvalue, rel=1e-9)


@pytest.mark.parametrize("second", ["Seed", " seed", "SEED "])
def test_w5_two_columns_that_become_the_same_name_are_refused(tmp_path, capsys, second):
    path = file_of(tmp_path, text_of([(*row, row[1]) for row in ROWS], ("variant", "seed", "loss", second)))
    assert "4 columns, of which several are named 'seed'; rename all but one" in refusal(capsys, path)


@pytest.mark.parametrize(("name", "advice"), [("trial", True), ("seeds", True), ("Run ID", False), ("sed", False)])
def test_w5_a_column_that_is_not_used_as_the_seed_is_named(tmp_path, capsys, name, advice):
    path = file_of(tmp_path, text_of(ROWS, ("variant", name, "loss")))
    study = load_csv(path, metric="loss")
    said = f"runs are not paired: no column seed; there are: variant, {name}, loss"
    assert study.remarks == (f"{said}; to pair runs by {name}, give --seed-key {name}" if advice else said,)
    assert numbers(capsys, path)["p"] == pytest.approx(stats.ttest_ind(BETTER, BASE, equal_var=False).pvalue, rel=1e-9)
    assert numbers(capsys, path, "--seed-key", name)["p"] == pytest.approx(EXPECTED.pvalue, rel=1e-9)


def test_w5_two_columns_named_like_seeds_are_asked_about(tmp_path, capsys):
    path = file_of(
        tmp_path, text_of([(*row, row[1] + 9) for row in ROWS], ("variant", "init_seed", "loss", "data seed"))
    )
    line = refusal(capsys, path)
    assert line == "2 columns look like the seed: init_seed, data seed; name the one it is: --seed-key init_seed"
    assert numbers(capsys, path, "--seed-key", advised(line, "--seed-key"))["pairs"] == 6


def test_w5_the_variant_may_be_another_column(tmp_path, capsys):
    path = file_of(tmp_path, text_of([("x", *row) for row in ROWS], ("State", "Name", "Seed", "loss")))
    line = refusal(capsys, path)
    assert line.startswith("no column 'variant'; there are: State, Name, Seed, loss; say which column is the variant: ")
    key = advised(line, "--variant-key")
    assert numbers(capsys, path, "--variant-key", key)["p"] == pytest.approx(EXPECTED.pvalue, rel=1e-9)
    assert "cannot be two of variant, seed" in refusal(capsys, path, "--variant-key", "Name", "--seed-key", " name")


FOLDS = [
    (name, seed, fold, value + fold / 8 + (name == "b") * fold * seed % 3 / 100)
    for name, seed, value in ROWS
    for fold in range(3)
]


@pytest.mark.parametrize("column", ["fold", "dataset", "Task", "cv_fold", "subject id", "alpha"])
def test_w4_rows_of_folds_are_refused_and_each_fold_is_a_task(tmp_path, capsys, column):
    path = file_of(tmp_path, text_of(FOLDS, ("variant", "seed", column, "loss")))
    line = refusal(capsys, path)
    assert f"24 of 36 rows repeat the variant and seed of another, but {column} tells rows apart" in line
    key = advised(line, "--task-key")
    assert key == column
    values = [{name: [v for n, _, f, v in FOLDS if (n, f) == (name, fold)] for name in "ab"} for fold in range(3)]
    expected = [stats.ttest_rel(one["b"], one["a"]).pvalue for one in values]
    found = [numbers(capsys, path, "--task-key", key, "--task", f"{column}={fold}") for fold in range(3)]
    assert [one["p"] for one in found] == pytest.approx(expected, rel=1e-6)
    holm = multipletests(expected, method="holm")[1]
    assert [one["p_holm"] for one in found] == pytest.approx(list(holm), rel=1e-6)


def test_w4_names_of_data_sets_are_the_tasks_and_variants_keep_their_names(tmp_path):
    rows = [(name, seed, data, value) for name, seed, value in ROWS for data in ("a", "wiki text")]
    rows = [("wiki text" if name == "b" else name, *rest) for name, *rest in rows]
    path = file_of(tmp_path, text_of(rows, ("variant", "seed", "dataset", "loss")))
    parts = by_task(load_csv(path, metric="loss", task_column="dataset"))
    assert {task: [variant.label for variant in part.variants] for task, part in parts.items()} == {
        "a": ["a", "wiki text"],
        "wiki text": ["a", "wiki text"],
    }


def test_w4_two_columns_that_are_needed_are_both_named(tmp_path, capsys):
    rows = [(name, seed, data, fold, v) for name, seed, fold, v in FOLDS for data in ("x", "y")]
    path = file_of(tmp_path, text_of(rows, ("variant", "seed", "dataset", "fold", "loss")))
    line = refusal(capsys, path)
    assert "60 of 72 rows repeat the variant and seed of another, but fold and dataset tell rows apart" in line
    key = advised(line, "--task-key")
    assert numbers(capsys, path, "--task-key", key, "--task", "fold=1 x")["pairs"] == 6
    assert "dataset tells rows apart" in refusal(capsys, path, "--task-key", "fold", "--task", "fold=1")


def curve(name, seed, value, epochs):
    return [(name, seed, epoch, round(value + 1 / epoch, 6)) for epoch in epochs]


@pytest.mark.parametrize("column", ["epoch", "Step", "global_step", "trainer/global_step", "Iteration"])
def test_w4_rows_of_epochs_are_compared_at_the_last_that_all_have(tmp_path, capsys, column):
    rows = [
        row
        for name, seed, value in ROWS
        for row in curve(name, seed, value, range(1, 9) if (name, seed) == ("a", 2) else range(1, 11))
    ]
    path = file_of(tmp_path, text_of(rows, ("variant", "seed", column, "loss")))
    line = refusal(capsys, path)
    assert f"106 of 118 rows repeat the variant and seed of another, but {column} tells rows apart" in line
    found = numbers(capsys, path, "--step-key", advised(line, "--step-key"))
    at = {name: [v for n, _, e, v in rows if (n, e) == (name, 8)] for name in "ab"}
    assert found["p"] == pytest.approx(stats.ttest_rel(at["b"], at["a"]).pvalue, rel=1e-6)
    study = load_csv(path, metric="loss", step_column=column)
    assert study.at_step == 8
    assert study.remarks == (
        f"different step budgets: runs ended at {column} 8 to 10; all are compared at {column} 8, the largest that all "
        "have; the first to end is a, seed 2",
    )


def test_w4_a_run_that_is_blank_where_others_have_values_has_diverged(tmp_path):
    rows = [row for name, seed, value in ROWS for row in curve(name, seed, value, (1, 2, 4))]
    rows = [(*row[:3], "" if row[:3] == ("b", 3, 4) else row[3]) for row in rows]
    rows += [(name, seed, 5, "") for name, seed, _ in ROWS]
    study = load_csv(
        file_of(tmp_path, text_of(rows, ("variant", "seed", "epoch", "loss"))), metric="loss", step_column="epoch"
    )
    assert study.at_step is None
    kinds = {(run.variant.label, run.seed): run.outcome("loss").kind for run in study.loaded}
    assert kinds.pop(("b", 3)) == "diverged"
    assert set(kinds.values()) == {"ok"}
    assert [run.outcome("loss").value for run in study.loaded[:2]] == pytest.approx([BASE[0] + 0.25, BASE[1] + 0.25])


def test_w4_each_task_has_a_last_step_of_its_own(tmp_path):
    rows = [(name, seed, "short", e, v) for name, seed, v in ROWS for e in range(3 + (seed > 0))]
    rows += [(name, seed, "long", e, v + e) for name, seed, v in ROWS for e in range(6)]
    path = file_of(tmp_path, text_of(rows, ("variant", "seed", "dataset", "epoch", "loss")))
    line = "runs of task short ended at epoch 2 to 3; all are compared at epoch 2, the largest that all have"
    study = load_csv(path, metric="loss", task_column="dataset", step_column="epoch")
    assert study.remarks == (f"different step budgets: {line}; the first to end is a, seed 0",)
    parts = by_task(study)
    assert {task: part.at_step for task, part in parts.items()} == {"short": 2, "long": None}
    assert parts["long"].loaded[0].outcome("loss").value == BASE[0] + 5


def test_w4_advice_on_epochs_that_are_no_whole_numbers_can_be_followed(tmp_path, capsys):
    rows = [(name, seed, e / 2, 7 * e, v + 1 / (e + 1)) for name, seed, v in ROWS for e in range(3)]
    header = ("variant", "seed", "epoch", "global step", "loss")
    line = refusal(capsys, file_of(tmp_path, text_of(rows, header)))
    found = numbers(capsys, tmp_path / "t.csv", "--step-key", advised(line, "--step-key"))
    assert found["p"] == pytest.approx(EXPECTED.pvalue, rel=1e-6)
    only = file_of(tmp_path, text_of([(*row[:3], row[4]) for row in rows], (*header[:3], "loss")))
    assert "epoch tells rows apart: keep the last row of each run, or name a column of whole" in refusal(capsys, only)
    assert "row 2 has epoch '0.5', not a whole number" in refusal(capsys, only, "--step-key", "epoch")
    huge = file_of(tmp_path, text_of([(*row[:2], 10**30, row[4]) for row in rows[::3]], (*header[:3], "loss")))
    assert "which is too large" in refusal(capsys, huge, "--step-key", "epoch")


def test_w4_a_data_set_or_step_in_which_single_rows_differ_is_named(tmp_path):
    rows = [(name, seed, "x" if name == "a" else "y", 100 if name == "a" else 50, v) for name, seed, v in ROWS]
    path = file_of(tmp_path, text_of(rows, ("variant", "seed", "dataset", "step", "loss")))
    said = "runs are compared although they differ in {0} (2 values); for a comparison within each, give --task-key {0}"
    assert load_csv(path, metric="loss").remarks == (said.format("dataset"), said.format("step"))
    assert load_csv(file_of(tmp_path, TEXT), metric="loss").remarks == ()


def test_w4_epochs_and_data_sets_without_seeds_are_not_runs(tmp_path, capsys):
    for column, option in (("epoch", "--step-key"), ("dataset", "--task-key")):
        path = file_of(tmp_path, text_of([(n, s + 1, v) for n, s, v in ROWS], ("variant", column, "loss")))
        line = refusal(capsys, path)
        assert line.startswith(
            f"there is no seed, so every row would be a run of its own, but {column} tells rows apart"
        )
        assert advised(line, option) == column
    twice = file_of(tmp_path, text_of([(n, s // 2, v) for n, s, v in ROWS], ("variant", "epoch", "loss")))
    assert "name its column with --seed-key" in refusal(capsys, twice, "--step-key", "epoch")


def test_w4_rows_that_nothing_tells_apart_are_said_once_with_their_number(tmp_path, capsys):
    header = ("variant", "seed", "loss", "seconds", "id")
    first = [(*row[:2], row[2] + 1, 10 + i / 7, f"x{i}") for i, row in enumerate(ROWS)]
    again = [(*row, 20 + i / 7, f"y{i}") for i, row in enumerate(ROWS)]
    path = file_of(tmp_path, text_of([*first, *again, *again[:3]], header))
    assert numbers(capsys, path)["p"] == pytest.approx(EXPECTED.pvalue, rel=1e-9)
    assert compare([str(path), "b", "a", "--metric", "loss"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("15 rows repeat the variant and seed of a later row, which is used instead; 12 of 15 differ") == 1
    assert "In no mean: 15 earlier results that later ones replaced." in said
    assert "No run is excluded" not in said


def test_w4_the_report_on_folds_has_the_command_that_writes_it_again(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file_of(tmp_path, gzip.compress(text_of(FOLDS, ("arm", "seed", "fold", "loss")).encode()), "folds.csv.gz")
    options = ["folds.csv.gz", "--variant-key", "arm", "--task-key", "fold", "--metric", "loss"]
    monkeypatch.setattr(report, "report_files", lambda task_set, command, **_: {"command": command.encode()})
    assert report.main(options) == 0
    assert shlex.split((tmp_path / "folds_report" / "command").read_text())[3:] == options
    capsys.readouterr()


def test_w4_keys_of_tables_are_refused_elsewhere(tmp_path, capsys):
    assert report.main([str(tmp_path), "--task-key", "fold"]) == 2
    assert "--task-key fold: for a table" in capsys.readouterr().err
    with pytest.raises(StudyError, match=r"no column 'fold'; there are: variant, seed, loss"):
        load_csv(file_of(tmp_path, TEXT), metric="loss", task_column="fold")

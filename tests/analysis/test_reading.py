"""Files are read as what they are, whatever their name, and what is not read is named in one line."""

import bz2
import gzip
import io
import json
import lzma
import math
import pickle
import zipfile

import pytest

from analysis.reading import Records, Rows, find_name, first_twice, number, read, whole
from analysis.study import StudyError

TABLE = "variant,seed,loss\na,0,0.25\nb,1,0.5\n"
CELLS = [["variant", "seed", "loss"], ["a", "0", "0.25"], ["b", "1", "0.5"]]
ENTRIES = [{"variant": "a", "seed": 0, "loss": 0.25}, {"variant": "b", "seed": 1, "loss": 0.5}]


def zipped(*names):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return archive.getvalue()


def read_bytes(tmp_path, data, *, torn=False):
    (tmp_path / "t").write_bytes(data)
    return read(tmp_path / "t", torn=torn)


@pytest.mark.parametrize(
    "data",
    [
        TABLE.encode(),
        TABLE.encode("utf-8-sig"),
        TABLE.encode("utf-16"),
        b"\xfe\xff" + TABLE.encode("utf-16-be"),
        TABLE.encode("utf-16-le"),
        TABLE.encode("utf-16-be"),
        TABLE.replace("\n", "\r\n").encode(),
        TABLE.replace("\n", "\r").encode(),
        TABLE.replace(",", ";").encode(),
        TABLE.replace(",", "\t").encode(),
        b"sep=;\r\n" + TABLE.replace(",", ";").encode(),
        gzip.compress(TABLE.encode("utf-16")),
        bz2.compress(TABLE.encode()),
        lzma.compress(TABLE.encode()),
    ],
)
def test_the_same_cells_whatever_separates_encodes_and_compresses_them(tmp_path, data):
    found = read_bytes(tmp_path, data)
    assert isinstance(found, Rows)
    assert [row.cells for row in found.rows] == CELLS


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(json.dumps, ENTRIES)),
        "\n".join(json.dumps(entry, indent=2) for entry in ENTRIES),
        json.dumps(ENTRIES),
        json.dumps(ENTRIES, indent=4),
        json.dumps({"best": None, "epoch": 2.0, "log_history": ENTRIES, "other": [{"x": 1}]}, indent=2),
        json.dumps({"config": {"lr": 1}, "runs": ENTRIES}),
        json.dumps({name: [entry[name] for entry in ENTRIES] for name in ENTRIES[0]}),
        json.dumps({name: {str(i): entry[name] for i, entry in enumerate(ENTRIES)} for name in ENTRIES[0]}),
        json.dumps({str(i): entry for i, entry in enumerate(ENTRIES)}),
        json.dumps({"columns": list(ENTRIES[0]), "index": [0, 1], "data": [list(e.values()) for e in ENTRIES]}),
    ],
)
def test_the_same_records_in_every_shape_of_json(tmp_path, text):
    found = read_bytes(tmp_path, text.encode())
    assert isinstance(found, Records)
    assert [record for _, record in found.records] == ENTRIES


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (zipped("xl/workbook.xml"), "this is an Excel workbook, which is not read; save the sheet as CSV"),
        (zipped("t.csv"), "this is a zip archive that holds t.csv, which is not read; unpack it"),
        (zipped("a.npy", "b.npy"), "this is NumPy arrays"),
        (zipped("t.csv")[:30], "a zip archive that is damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Excel workbook"),
        (b"SQLite format 3\0" + bytes(100), "an SQLite database"),
        (pickle.dumps(ENTRIES), "a Python pickle"),
        (b"\x18\0\0\0\0\0\0\0\xa3\x7fK\x22\t\0\0\xc0\xc8\xb4\xfd\xd9A\x1a\rbrain.Event:2", "a TensorBoard event file"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "compressed by Zstandard"),
        (bytes(range(32)) * 9, "a binary file of a format that is not known"),
        (b"<!DOCTYPE html>\n<html>", "a page in HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4", "a pointer of Git LFS"),
        (b"| variant | loss |\n|---|---|\n| a | 1 |\n", "a table in Markdown"),
        (b"<table><tr>", "a page in HTML"),
        ((TABLE + "é,2,1\n").encode("latin-1"), "line 4 is not UTF-8"),
        (TABLE.encode() + bytes(9), "line 4 holds null bytes"),
        (b"", "the file is empty"),
        (gzip.compress(TABLE.encode())[:-9], "a compressed file that is damaged"),
        (b"[1, 2]", "entry 1 of its list is no object"),
        (b"[]", "JSON with no records"),
        (b'{"a": [1, 2], "b": [1]}', "columns of different lengths: a 2, b 1"),
        (b'{"a": 1}\n{"a": 1, "a": 2}\n', "line 2: 'a' is in one object twice"),
        (b'{"a": 1}\n{"a": \n', "JSON that cannot be read, line 3"),
        (b"[" * 100_000, "JSON that cannot be read, line 1: maximum recursion depth exceeded"),
    ],
)
def test_what_is_not_read_is_named_in_one_line(tmp_path, data, message):
    with pytest.raises(StudyError) as refused:
        read_bytes(tmp_path, data)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_of_a_torn_log_what_is_whole_is_read(tmp_path):
    lines = b'starting\n{"step": 1}\n{"step": 2}\n{"step": 3}\0\0\n{"st'
    assert [record for _, record in read_bytes(tmp_path, lines, torn=True).records] == [{"step": n} for n in (1, 2, 3)]
    cut = read_bytes(tmp_path, gzip.compress(TABLE.encode())[:-9], torn=True)
    assert [row.cells for row in cut.rows] == CELLS
    history = json.dumps([{"step": 1}, {"step": 2}, {"step": 3}], indent=0)
    kept = read_bytes(tmp_path, history[:-8].encode(), torn=True)
    assert [record for _, record in kept.records] == [{"step": 1}, {"step": 2}]


def test_lines_are_counted_as_an_editor_does(tmp_path):
    found = read_bytes(tmp_path, b'a,b\n\n"x\ny",1\n,\nz,2\n')
    assert [(row.line, row.cells[0]) for row in found.rows] == [(1, "a"), (3, "x\ny"), (6, "z")]


@pytest.mark.parametrize(
    ("cell", "value"),
    [("1", 1), ("-2.5", -2.5), ("+.5", 0.5), ("5.", 5), (" 1e-3 ", 1e-3), ("1E+2", 100), ("-Infinity", -math.inf)],
)
def test_numbers_are_what_programs_write(cell, value):
    assert number(cell) == value


@pytest.mark.parametrize(
    "cell", ["1_000", "0x10", "infinity_", "1e", "e3", "", "١", "0,5", "True", "1 0", "1d3", "--1"]
)
def test_what_only_python_reads_is_no_number(cell):
    assert number(cell) is None
    assert whole(cell) is None


def test_whole_numbers_are_exact_at_any_size():
    assert [whole(cell) for cell in ("2", "2.0", " 18446744073709551617", "2.5", "nan")] == [
        2,
        2,
        2**64 + 1,
        None,
        None,
    ]
    assert whole("9" * 5000) is None


def test_a_comma_is_a_decimal_mark_where_another_character_separates_columns(tmp_path):
    found = read_bytes(tmp_path, b"a;b;c\n0,25;1;x,y\n3;2,5;1.5\n")
    assert found.decimal(["0,25", "3"]) == ","
    assert (number("0,25", ","), number("3", ","), number("1.5", ",")) == (0.25, 3, None)
    assert found.decimal(["1.5", "3", "x,y"]) == "."
    with pytest.raises(ValueError, match=r"0,25 and 1\.5 have different decimal marks"):
        found.decimal(["0,25", "1.5"])
    with pytest.raises(ValueError, match=r"1,250 may mean 1250 or 1\.250"):
        found.decimal(["1,250", "12,500"])
    assert read_bytes(tmp_path, TABLE.encode()).decimal(["0,25"]) == "."


def test_names_are_compared_without_case_and_blanks():
    assert find_name("seed", ["Variant", " Seed "]) == " Seed "
    assert find_name("Seed", ["seed", "Seed"]) == "Seed"
    assert find_name("seed", ["seeds"]) is None
    assert first_twice(["loss", "Seed", " seed", "", ""]) == "Seed"
    assert first_twice(["loss", "", " "]) is None

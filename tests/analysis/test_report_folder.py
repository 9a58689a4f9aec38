"""A report's folder holds that report, what a user put there, and nothing of an earlier report."""

import json

import pytest
from fake_study import noise, suite, write_study

from analysis import report
from analysis.report_folder import LIST, write_report

FIRST = {"report.md": b"one", "tables/copy/cost.md": b"1", "tables/copy/all.md": b"2", "figures/success.svg": b"3"}
SECOND = {"report.md": b"two", "tables/cost.md": b"1"}


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_only_the_earlier_report_had_goes_with_the_folders_that_are_then_empty(tmp_path):
    write_report(tmp_path / "x", FIRST)
    write_report(tmp_path / "x", SECOND)
    write_report(tmp_path / "new", SECOND)
    assert files(tmp_path / "x") == files(tmp_path / "new")
    assert files(tmp_path / "new").keys() == {*SECOND, LIST}
    assert not (tmp_path / "x" / "figures").exists()
    assert not (tmp_path / "x" / "tables" / "copy").exists()


def test_what_a_user_added_or_changed_stays(tmp_path):
    write_report(tmp_path, FIRST)
    (tmp_path / "tables" / "copy" / "mine.md").write_text("mine")
    (tmp_path / "figures" / "success.svg").write_text("retouched")
    write_report(tmp_path, SECOND)
    assert files(tmp_path).keys() == {*SECOND, LIST, "tables/copy/mine.md", "figures/success.svg"}


@pytest.mark.parametrize("content", ["", "[1]", "{"])
def test_without_a_list_that_can_be_read_nothing_is_removed(tmp_path, content):
    write_report(tmp_path, FIRST)
    (tmp_path / LIST).write_text(content)
    write_report(tmp_path, SECOND)
    assert files(tmp_path).keys() == {*FIRST, *SECOND, LIST}


def test_a_file_outside_the_folder_is_never_removed(tmp_path):
    (tmp_path / "precious").write_bytes(b"one")
    write_report(tmp_path / "r", FIRST)
    said = json.loads((tmp_path / "r" / LIST).read_text())["report.md"]
    (tmp_path / "r" / LIST).write_text(json.dumps({"../precious": said, str(tmp_path / "precious"): said}))
    write_report(tmp_path / "r", SECOND)
    assert (tmp_path / "precious").read_bytes() == b"one"


def test_a_report_with_fewer_options_is_what_it_is_in_an_empty_folder(tmp_path):
    write_study(tmp_path / "s", {"rope": noise(1, 5), "roper": noise(2, 5)}, curves=True)
    report.main([str(tmp_path / "s"), "--all-pairs", "--threshold", "0.45"])
    assert (tmp_path / "s" / "report" / "tables" / "all_pairs.md").is_file()
    report.main([str(tmp_path / "s")])
    report.main([str(tmp_path / "s"), "--out", str(tmp_path / "out")])
    assert files(tmp_path / "s" / "report").keys() == files(tmp_path / "out").keys()
    assert not (tmp_path / "out" / "tables" / "all_pairs.md").exists()


def test_the_report_on_one_task_leaves_no_folder_of_another(tmp_path):
    suite(tmp_path / "s", {"rope": noise(1, 4), "roper": noise(2, 4)}, shifts={"copy": 0, "sort": 1})
    report.main([str(tmp_path / "s")])
    assert (tmp_path / "s" / "report" / "tables" / "sort").is_dir()
    report.main([str(tmp_path / "s"), "--task", "copy"])
    assert not [path for path in (tmp_path / "s" / "report" / "tables").iterdir() if path.is_dir()]

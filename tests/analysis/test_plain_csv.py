"""A plain table becomes a study."""

import pandas as pd
import pytest

from analysis.plain_csv import load_csv


def study_of(tmp_path, text, **more):
    (tmp_path / "t.csv").write_text(text)
    return load_csv(tmp_path / "t.csv", metric="loss", **more)


def test_every_row_is_a_run_and_a_blank_is_one_that_diverged(tmp_path):
    frame = pd.DataFrame({"variant": ["a", "a", "b"], "seed": [0, 1, 0], "loss": [0.1, None, 0.3], "other": "x"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    study = load_csv(tmp_path / "t.csv", metric="loss")
    assert [run.outcome("loss").kind for run in study.loaded] == ["ok", "diverged", "ok"]
    assert (study.name, study.seeds, study.shared_seeds) == ("t", (0, 1), True)
    assert study.factor_names == ["variant"]


@pytest.mark.parametrize("text", ["nan", "inf", "-Inf", ""])
def test_what_is_not_finite_diverged(tmp_path, text):
    study = study_of(tmp_path, f"variant,seed,loss\na,0,{text}\n")
    assert study.loaded[0].outcome("loss").kind == "diverged"


def test_without_seeds_rows_are_numbered_by_variant_and_not_paired(tmp_path):
    study = study_of(tmp_path, "variant,run,loss\na,9,1\nb,9,2\na,9,3\n")
    assert [(run.variant.label, run.seed) for run in study.loaded] == [("a", 0), ("b", 0), ("a", 1)]
    assert not study.shared_seeds


def test_another_column_may_hold_the_seeds(tmp_path):
    study = study_of(tmp_path, "variant,run,loss\na,1,1\na,2.0,3\n", seed_column="run")
    assert (study.seeds, study.shared_seeds) == ((1, 2), True)


def test_of_two_rows_of_one_variant_and_seed_the_later_stands_and_the_other_is_listed(tmp_path):
    study = study_of(tmp_path, "variant,seed,loss\na,0,1\na,1,5\na,0,2\n")
    assert sorted((run.seed, run.outcome("loss").value) for run in study.loaded) == [(0, 2.0), (1, 5.0)]
    assert [(one.seed, one.status, one.differs) for one in study.replaced] == [(0, "finished", True)]


def test_names_of_variants_stay_as_they_are_written(tmp_path):
    study = study_of(tmp_path, "variant,seed,loss\n1,0,1\n1.0,0,2\n NA ,0,3\n")
    assert [variant.label for variant in study.variants] == ["1", "1.0", "NA"]


def test_a_comma_at_the_end_of_each_line_changes_nothing(tmp_path):
    plain = study_of(tmp_path, "variant,seed,loss\na,0,1\nb,0,2\n")
    for text in ("variant,seed,loss\na,0,1,\nb,0,2, \n", "variant,seed,loss,,\na,0,1,,\n\nb,0,2,,\n"):
        assert study_of(tmp_path, text) == plain


def test_a_row_that_is_cut_short_has_no_value(tmp_path):
    study = study_of(tmp_path, "variant,seed,loss\na,0\nb,0,2\n")
    assert [run.outcome("loss").kind for run in study.loaded] == ["diverged", "ok"]


def test_a_cell_may_hold_commas_quotes_and_line_breaks(tmp_path):
    study = study_of(tmp_path, '\ufeffvariant,seed,loss\r\n"a, ""b""\n c",0,1\r\n')
    assert [variant.label for variant in study.variants] == ['a, "b"\n c']


def test_seeds_beyond_the_whole_numbers_of_a_float_stay_apart(tmp_path):
    seeds = (2**53, 2**53 + 1, 2**64 + 1)
    study = study_of(tmp_path, "variant,seed,loss\n" + "".join(f"{name},{s},1\n" for s in seeds for name in "ab"))
    assert (study.seeds, study.replaced, len(study.loaded)) == (seeds, (), 6)

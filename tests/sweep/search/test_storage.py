"""Where trials are kept, and that one stored study is one search."""

import multiprocessing
import sqlite3

import optuna
import pytest

from ablate.config.errors import ConfigError
from ablate.records import StudyFolder
from ablate.sweep.search.storage import address, differences, open_storage, open_study, shown

IDENTITY = {"space": {"attention": "choice(rope,roper)"}, "fixed": {}, "seeds": {"seeds": "0"}}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def test_b8_every_path_is_absolute_whatever_the_working_directory_becomes(in_tmp, monkeypatch):
    study = StudyFolder(in_tmp / "multirun/s")
    found = [address(given, study, "lr") for given in (None, "sqlite:///a.db", "sub/b.journal", "mysql://h/d")]
    assert found == [
        str(in_tmp / "multirun/s/search/lr.journal"),
        f"sqlite:///{in_tmp}/a.db",
        str(in_tmp / "sub/b.journal"),
        "mysql://h/d",
    ]


@pytest.mark.parametrize("given", ["sqlite:///", "sqlite:///:memory:", "trials.txt"])
def test_what_cannot_keep_trials_is_refused(given, tmp_path):
    with pytest.raises(ConfigError, match=r"hydra\.sweeper\.storage="):
        address(given, StudyFolder(tmp_path), "lr")


@pytest.mark.parametrize("place", ["sqlite:////nowhere/x.db", "postgresql://me:secret@localhost:1/d", "nonsense://x"])
def test_a_storage_that_cannot_be_reached_is_refused_without_its_password(place):
    with pytest.raises(ConfigError, match="cannot be opened") as caught:
        open_storage(place)
    assert "secret" not in str(caught.value)
    assert shown("postgresql://me:secret@localhost:1/d") == "postgresql://me:***@localhost:1/d"


def test_b5_another_choice_is_named_with_the_old_and_the_new_and_the_way_out(tmp_path):
    storage = open_storage(str(tmp_path / "a.journal"))
    open_study(storage, "search", ["minimize"], IDENTITY)
    open_study(storage, "search", ["minimize"], IDENTITY)
    changed = {**IDENTITY, "space": {"attention": "choice(rope,roper,none)"}}
    with pytest.raises(ConfigError, match="study_name") as caught:
        open_study(storage, "search", ["minimize"], changed)
    assert "attention: was choice(rope,roper), now choice(rope,roper,none)" in str(caught.value)
    assert open_study(storage, "other", ["minimize"], changed).get_trials() == []


def test_a_study_of_another_program_is_refused(tmp_path):
    storage = open_storage(str(tmp_path / "a.journal"))
    optuna.create_study(storage=storage, study_name="search").add_trial(optuna.trial.create_trial(value=1.0))
    with pytest.raises(ConfigError, match="another program"):
        open_study(storage, "search", ["minimize"], IDENTITY)


def test_a_study_that_was_made_for_another_direction_is_refused(tmp_path):
    storage = open_storage(str(tmp_path / "a.journal"))
    optuna.create_study(storage=storage, study_name="search")
    with pytest.raises(ConfigError, match="was made to minimize, and is to maximize now"):
        open_study(storage, "search", ["maximize"], IDENTITY)


def test_the_driver_in_an_sqlite_url_changes_nothing(in_tmp):
    study = StudyFolder(in_tmp)
    assert address("sqlite+pysqlite:///a.db", study, "search") == f"sqlite:///{in_tmp}/a.db"


def test_differences_name_what_came_and_what_went():
    found = differences({"space": {"a": "1", "b": "2"}}, {"space": {"b": "3", "c": "4"}})
    assert found == ["a: was 1, now not given", "b: was 2, now 3", "c: was not given, now 4"]


def write_trials(place: str, count: int) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name="search", storage=open_storage(place))
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0, 1))


def test_b8_four_writers_and_a_reader_share_one_sqlite_file(tmp_path):
    place = f"sqlite:///{tmp_path}/a.db"
    study = open_study(open_storage(place), "search", ["minimize"], IDENTITY)
    processes = [multiprocessing.get_context("fork").Process(target=write_trials, args=(place, 5)) for _ in range(4)]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        reader = sqlite3.connect(tmp_path / "a.db", timeout=0)
        reader.execute("SELECT COUNT(*) FROM trials").fetchone()
        reader.close()
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(study.get_trials()) == 20

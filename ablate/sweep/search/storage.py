"""Where the trials of a search are kept, and what must not change between two calls of one search.

The default is a journal in the study's folder. Every path is made absolute before it is used: a run may work in another
folder.
"""

import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.exc import SQLAlchemyError

from ablate.config.errors import ConfigError
from ablate.records import StudyFolder
from ablate.sweep.search.journal import mend

SQLITE = "sqlite:///"
LOCK_SECONDS = 60.0
"""How long SQLite tries again when another process holds the file."""

SERVERS = ("postgresql", "mysql", "mariadb")
CONNECT_SECONDS = 10
"""How long a server is waited for."""

FAULTS = (StorageInternalError, SQLAlchemyError, OSError)
"""What a storage that cannot be used any more raises."""

PAUSES = (0.2, 0.5, 1.0)
"""Seconds between attempts to open a storage."""

IDENTITY = "ablate"
"""The attribute of a stored study that says what is searched."""


class SharedFile(sqlite3.Connection):
    """A connection beside which others can read while it writes; a commit need not wait for the disk."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.execute("PRAGMA journal_mode=WAL")
        self.execute("PRAGMA synchronous=NORMAL")


def address(given: str | None, study: StudyFolder, name: str) -> str:
    """Return where trials are kept: a journal's absolute path, or a URL with one; raises ConfigError."""
    if given is None:
        return str(study.search_journal(name).absolute())
    if "uri=true" not in given:
        given = re.sub(r"^sqlite\+pysqlite:///", SQLITE, given)
    if given.startswith(SQLITE):
        path = given.removeprefix(SQLITE)
        if path in ("", ":memory:"):
            raise ConfigError(f"hydra.sweeper.storage={given}: names no file; write {SQLITE}search.db")
        return SQLITE + str(Path(path).absolute())
    if "://" in given:
        return given
    if not given.endswith(".journal"):
        raise ConfigError(
            f"hydra.sweeper.storage={given}: must be a path ending in .journal, or a URL such as {SQLITE}search.db"
        )
    return str(Path(given).absolute())


def path_of(place: str) -> Path | None:
    """Return the file of an address, None when it is no file."""
    if place.startswith(SQLITE):
        return Path(place.removeprefix(SQLITE))
    return None if "://" in place else Path(place)


def shown(place: str) -> str:
    """Return an address without its password."""
    scheme, separator, rest = place.partition("://")
    login, at, host = rest.rpartition("@")
    return f"{scheme}://{login.partition(':')[0]}:***@{host}" if separator and at and ":" in login else place


def open_storage(place: str) -> BaseStorage:
    """Open or make the storage at an address; raises ConfigError when it cannot be reached.

    Tried again for a moment, since processes that begin together make the tables at the same time.
    """
    for pause in PAUSES:
        try:
            return _opened(place)
        except ConfigError:
            time.sleep(pause)
    return _opened(place)


def _opened(place: str) -> BaseStorage:
    try:
        if "://" not in place:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            mend(Path(place))
            return JournalStorage(JournalFileBackend(place))
        if place.startswith(SQLITE):
            arguments = {"timeout": LOCK_SECONDS, "factory": SharedFile}
            return RDBStorage(place, engine_kwargs={"connect_args": arguments})
        waits = {"connect_args": {"connect_timeout": CONNECT_SECONDS}} if place.startswith(SERVERS) else {}
        return RDBStorage(place, engine_kwargs={"pool_pre_ping": True, **waits})
    except Exception as error:  # whatever a driver raises, it is about this address
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"hydra.sweeper.storage={shown(place)}: cannot be opened ({reason})") from error


def close_storage(storage: BaseStorage) -> None:
    """Close its connections."""
    if isinstance(storage, RDBStorage):
        storage.remove_session()
        storage.engine.dispose()


def open_study(storage: BaseStorage, name: str, directions: Sequence[str], identity: Mapping[str, Any]) -> optuna.Study:
    """Make a study, or load it when it searches the same; raises ConfigError naming what differs."""
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        directions=[optuna.study.StudyDirection[direction.upper()] for direction in directions],
        load_if_exists=True,
    )
    have, wanted = [one.name.lower() for one in study.directions], [one.lower() for one in directions]
    if have != wanted:
        raise ConfigError(
            f"hydra.sweeper.study_name={name}: was made to {', '.join(have)}, and is to {', '.join(wanted)} now; "
            "choose another name"
        )
    stored = study.user_attrs.get(IDENTITY)
    if stored is None and study.get_trials(deepcopy=False):
        raise ConfigError(f"hydra.sweeper.study_name={name}: holds trials of another program; choose another name")
    if stored is None:
        study.set_user_attr(IDENTITY, dict(identity))
    elif faults := differences(stored, identity):
        raise ConfigError(
            f"hydra.sweeper.study_name={name}: was begun with another search ({'; '.join(faults)}); give the "
            "command it was begun with, or another hydra.sweeper.study_name (finished runs are used again)"
        )
    return study


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return in words what differs between two identities: {what: {key: value}}."""
    found = []
    for what in dict.fromkeys([*old, *new]):
        before, now = old.get(what, {}), new.get(what, {})
        for key in dict.fromkeys([*before, *now]):
            if before.get(key) != now.get(key):
                found.append(f"{key}: was {before.get(key, 'not given')}, now {now.get(key, 'not given')}")
    return found

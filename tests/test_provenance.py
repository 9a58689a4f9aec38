"""What is recorded of the code that made a result."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from ablate import provenance

WHO = ("-c", "user.name=a", "-c", "user.email=a@example.org")


def git(folder: Path, *command: str) -> None:
    subprocess.run(["git", "-C", str(folder), *command], check=True)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout whose package stands for this one."""
    package = tmp_path / "code"
    package.mkdir()
    (package / "__init__.py").write_text("a = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, *WHO, "commit", "-q", "-m", "first")
    monkeypatch.setattr(provenance, "PACKAGE", package)
    monkeypatch.setattr(provenance, "NEW_SOURCES", ("code/*.py", "conf/*.yaml"))
    return tmp_path


def diff() -> str:
    return provenance.git_diff.__wrapped__()


def state() -> dict[str, str]:
    provenance.git_diff.cache_clear()
    try:
        return provenance.git_state.__wrapped__()
    finally:
        provenance.git_diff.cache_clear()


def test_the_changes_of_a_checkout_are_recorded(checkout):
    assert diff() == ""
    assert state()["dirty"] is None
    (checkout / "code" / "__init__.py").write_text("a = 2\n")
    assert "-a = 1\n+a = 2\n" in diff()
    assert state()["dirty"] == hashlib.sha256(diff().encode()).hexdigest()[:16]


def test_a_change_in_another_encoding_than_utf8_is_recorded_too(checkout):
    (checkout / "code" / "__init__.py").write_bytes(b"a = 1\n# caf\xe9\n")
    assert "+# caf\ufffd\n" in diff()


def test_new_files_of_the_code_and_of_its_configs_are_recorded_and_no_others(checkout):
    (checkout / "code" / "mine.py").write_text("b = 3\n")
    (checkout / "conf" / "attention").mkdir(parents=True)
    (checkout / "conf" / "attention" / "mine.yaml").write_text("c: 4\n")
    for other in ("notes.txt", ".env", "venv/lib/other.py", "multirun/s/.hydra/config.yaml"):
        (checkout / other).parent.mkdir(parents=True, exist_ok=True)
        (checkout / other).write_text("password\n")
    assert "+b = 3\n" in diff()
    assert "+c: 4\n" in diff()
    assert "password" not in diff()


def test_changes_to_other_files_than_sources_are_not_recorded(checkout):
    (checkout / ".env").write_text("token = a\n")
    git(checkout, "add", "-f", ".env")
    git(checkout, *WHO, "commit", "-q", "-m", "a secret")
    (checkout / ".env").write_text("token = b\n")
    assert diff() == ""


def test_a_package_installed_inside_another_checkout_records_nothing_of_it(tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text("a = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, *WHO, "commit", "-q", "-m", "first")
    (tmp_path / "theirs.py").write_text("a = 2\n")
    package = tmp_path / ".venv" / "site-packages" / "code"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.setattr(provenance, "PACKAGE", package)
    assert state() == {}
    assert diff() == ""


def test_settings_of_git_do_not_change_what_is_recorded(checkout):
    git(checkout, "config", "color.ui", "always")
    git(checkout, "config", "diff.external", "false")
    (checkout / "code" / "__init__.py").write_text("a = 2\n")
    assert "\n-a = 1\n+a = 2\n" in diff()


# code outside the package ---------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A package of the user's, whose import leaves a mark."""
    package = tmp_path / "theirlab"
    package.mkdir()
    (package / "__init__.py").write_text("import pathlib\npathlib.Path(__file__).with_name('imported').touch()\n")
    (package / "schemes.py").write_text("class Mine:\n    class Inner: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "theirlab"]:
        del sys.modules[name]
    provenance._as_loaded.cache_clear()


def config(target: str) -> dict[str, object]:
    return {"model": {"attention": {"_target_": target}}}


@pytest.mark.parametrize("target", ["theirlab.schemes.Mine", "theirlab.schemes.Mine.Inner"])
def test_what_is_on_disk_is_found_without_executing_it(outside, target):
    found = provenance.fingerprint_on_disk(config(target))
    assert not (outside / "imported").exists()
    assert found == provenance.source_fingerprint(config(target))
    assert (outside / "imported").exists()


def test_a_process_keeps_the_fingerprint_of_what_it_has_imported(outside):
    before = provenance.source_fingerprint(config("theirlab.schemes.Mine"))
    with (outside / "schemes.py").open("a") as file:
        file.write("# edited\n")
    assert provenance.source_fingerprint(config("theirlab.schemes.Mine")) == before
    assert provenance.fingerprint_on_disk(config("theirlab.schemes.Mine")) != before


def test_code_that_is_edited_while_it_is_imported_is_marked_and_told(outside, caplog):
    (outside / "schemes.py").write_text("with open(__file__, 'a') as file:\n    file.write('# edited')\n")
    marked = provenance.source_fingerprint(config("theirlab.schemes.Mine"))
    assert "edited while it was imported" in caplog.text
    provenance._as_loaded.cache_clear()
    assert provenance.source_fingerprint(config("theirlab.schemes.Mine")) != marked


@pytest.mark.parametrize("target", ["nowhere.Mine", "theirlab.gone.Mine", "Mine", "..Mine", "/etc/passwd.Mine"])
def test_a_module_that_is_not_there_is_unknown_on_disk(outside, target):
    known = provenance.fingerprint_on_disk(config("ablate.models.gpt.GPT"))
    assert provenance.fingerprint_on_disk(config(target)) == (known if target == "Mine" else None)
    assert len(provenance.source_fingerprint(config(target))) == 16


def test_a_module_that_cannot_be_imported_is_left_to_the_run(outside):
    (outside / "schemes.py").write_text("1 / 0\n")
    assert provenance.source_fingerprint(config("theirlab.schemes.Mine"))

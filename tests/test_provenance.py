"""What is recorded of the code that made a result."""

import subprocess

import pytest

from ablate import provenance


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of one file that stands for this package's."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    (tmp_path / "code.py").write_text("a = 1\n")
    for command in (["init", "-q"], ["add", "code.py"], [*who, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    return tmp_path


def test_the_changes_of_a_checkout_are_recorded(checkout):
    assert provenance.git_diff.__wrapped__() == ""
    (checkout / "code.py").write_text("a = 2\n")
    assert "-a = 1\n+a = 2\n" in provenance.git_diff.__wrapped__()


def test_a_change_in_another_encoding_than_utf8_is_recorded_too(checkout):
    (checkout / "code.py").write_bytes(b"a = 1\n# caf\xe9\n")
    assert "+# caf\ufffd\n" in provenance.git_diff.__wrapped__()

"""A damaged journal of a search: refused in one line or mended, and the runs' own results are not touched."""

from pathlib import Path

import pytest

from ablate.records import RunFolder, StudyFolder
from tests.sweep.search.conftest import LR

JOURNAL = Path("multirun/copy_repeat/search/search.journal")
DAMAGES = {
    "half": lambda content: content[: len(content) // 2],
    "zero": lambda content: b"",
    "random": lambda content: b"\xff\x00\xfe" * (len(content) // 3),
    "patch": lambda content: content[: len(content) // 3] + b"\xff\x00\xfe" * 7 + content[len(content) // 3 + 21 :],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_journal_is_refused_or_mended_and_finished_runs_are_used_again(search, damage):
    assert search(LR, "hydra.sweeper.n_trials=2").code == 0
    before = {folder.path: folder.read() for folder in StudyFolder(Path("multirun/copy_repeat")).runs()}
    JOURNAL.write_bytes(DAMAGES[damage](JOURNAL.read_bytes()))
    result = search(LR, "hydra.sweeper.n_trials=3")
    assert "Traceback" not in result.out + result.err
    if result.code == 2:
        assert f"{JOURNAL.name}" in result.err
        JOURNAL.unlink()
        assert search(LR, "hydra.sweeper.n_trials=3").code == 0
    else:
        assert result.code == 0
    assert all(RunFolder(path).read() == record for path, record in before.items())

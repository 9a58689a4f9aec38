"""shakespeare on small files, on Tiny Shakespeare where there is a copy, and its download from a server of the test."""

import hashlib
import os
from collections import Counter
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch
from scipy import stats
from task_reading import sequences

from ablate.config.schema import EvaluationConfig
from ablate.tasks import corpus, shakespeare
from ablate.tasks.shakespeare import Shakespeare
from ablate.training.evaluation import evaluation_set

TINY = Path(os.environ.get("ABLATE_TEST_DATA", Path(__file__).parents[3] / "shared" / "data")) / "tinyshakespeare.txt"
needs_tiny = pytest.mark.skipif(
    not TINY.is_file(), reason=f"no {TINY.name} in $ABLATE_TEST_DATA or ../shared/data beside the checkout"
)


@pytest.fixture
def write(tmp_path):
    def file(content):
        path = tmp_path / "text.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return file


def test_windows_stand_in_their_own_part_of_the_text_and_all_of_it_counts(write):
    """A text in which every window of 20 characters is found in one place only."""
    text = "".join(f"{number}é" for number in range(300))
    task = Shakespeare(seq_len=19, path=write(text))
    border = len(text) - len(text) // 10
    for split, part in (("train", text[:border]), ("eval", text[border:])):
        for window, counted in sequences(task, size=500, split=split):
            assert window in part
            assert counted == [False] + [True] * 19


def test_every_window_of_a_part_is_as_likely(write):
    text = "".join(chr(0x4E00 + place) for place in range(200))
    task = Shakespeare(seq_len=9, path=write(text))
    for split, windows in (("train", 180 - 9), ("eval", 20 - 9)):
        starts = Counter(window[0] for window, _ in sequences(task, size=8000, split=split))
        assert len(starts) == windows
        assert stats.chisquare(list(starts.values())).pvalue > 1e-3
    assert task.held_out == 11


def test_the_alphabet_is_the_characters_of_the_text_in_order(write):
    assert Shakespeare(seq_len=1, path=write("hello\nworld" * 2)).alphabet == "\ndehlorw"


def test_a_changed_file_is_read_again(write):
    first = Shakespeare(seq_len=1, path=write("ab" * 20))
    path = write("cd" * 30)
    os.utime(path, ns=(1, 1))
    assert Shakespeare(seq_len=1, path=path).alphabet == "cd"
    assert first.alphabet == "ab"


@pytest.mark.parametrize(
    ("content", "seq_len", "message"),
    [
        (b"", 8, r"task\.path=.*text\.txt: is empty; name a text file"),
        (b"\x89PNG\r\n", 8, r"task\.path=.*text\.txt: is not UTF-8 \(0x89 at byte 0\); name a UTF-8 file"),
        (b"abc\0def", 8, r"task\.path=.*text\.txt: is binary \(0x00 at byte 3\)"),
        (b"caf\xe9 noir", 8, r"is not UTF-8 \(0xe9 at byte 3\)"),
        (b"aaaa" * 100, 8, r"holds one character only"),
        (
            b"ab" * 50,
            10,
            r"task\.seq_len=10: must be between 1 and 9, .*has 10 characters; use a shorter task\.seq_len",
        ),
        (b"ab" * 50, 0, r"task\.seq_len=0: must be between 1 and 9"),
        (b"ab", 1, r"task\.seq_len=1: .*has 0 characters; use a shorter task\.seq_len or a longer text"),
    ],
)
def test_a_file_that_is_no_text_or_too_short_is_refused(write, content, seq_len, message):
    with pytest.raises(ValueError, match=message) as refusal:
        Shakespeare(seq_len=seq_len, path=write(content))
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"task\.path=.*nothing\.txt: cannot be read \(No such file or directory\)"):
        Shakespeare(seq_len=8, path=str(tmp_path / "nothing.txt"))
    with pytest.raises(ValueError, match=r"cannot be read \(Is a directory\)"):
        Shakespeare(seq_len=8, path=str(tmp_path))


@needs_tiny
def test_tiny_shakespeare_is_the_published_text_parted_nine_to_one():
    content = TINY.read_bytes()
    assert hashlib.sha256(content).hexdigest() == corpus.TINY_SHAKESPEARE.sha256
    task = Shakespeare(seq_len=64, path=str(TINY))
    assert len(task.alphabet) == 65
    assert (len(task._text.train_N), len(task._text.eval_N)) == (1_003_855, 111_539)
    assert task.held_out == 111_539 - 64


@needs_tiny
def test_the_docstring_shows_a_window_as_it_is_drawn():
    task = Shakespeare(seq_len=24, path=str(TINY))
    text, _ = sequences(task, seed=5, size=2)[0]
    shown = text.replace("\n", "↵")
    assert f"inputs   {shown[:-1]}\n" in Shakespeare.__doc__
    assert f"targets  {shown[1:]}\n" in Shakespeare.__doc__


@needs_tiny
def test_evaluation_windows_are_those_of_the_last_tenth():
    task = Shakespeare(seq_len=64, path=str(TINY))
    text = TINY.read_text()
    inputs = evaluation_set(task, EvaluationConfig(sequences=64, curve_sequences=8), torch.device("cpu")).inputs_BT
    for window in inputs.tolist():
        assert "".join(task.alphabet[token] for token in window) in text[1_003_855:]


class _Server:
    """Serves a folder on this machine and counts what is asked of it."""

    def __init__(self, folder):
        self.asked = []
        handler = partial(_Quiet, directory=str(folder))
        _Quiet.asked = self.asked
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/input.txt"
        Thread(target=self.server.serve_forever, daemon=True).start()


class _Quiet(SimpleHTTPRequestHandler):
    asked: list[str]

    def log_message(self, *args):
        self.asked.append(self.path)


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A text on a local server in the place of Tiny Shakespeare, and an empty cache folder."""
    folder = tmp_path / "served"
    folder.mkdir()
    content = b"To be, or not to be: that is the question. " * 20
    (folder / "input.txt").write_bytes(content)
    server = _Server(folder)
    found = corpus.Source("text.txt", server.url, hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(shakespeare, "TINY_SHAKESPEARE", found)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield server
    server.server.shutdown()
    server.server.server_close()


def test_the_text_is_downloaded_once_and_mended_when_damaged(source, tmp_path):
    for _ in range(2):
        assert len(Shakespeare(seq_len=8, path=None).alphabet) == 17
    kept = tmp_path / "cache" / "ablate" / "text.txt"
    assert source.asked == ["/input.txt"]
    assert [file.name for file in kept.parent.iterdir()] == ["text.txt"]
    kept.write_bytes(b"cut o")
    assert Shakespeare(seq_len=8, path=None).held_out == 86 - 8
    assert len(source.asked) == 2


def test_a_download_with_the_wrong_hash_is_not_kept(source, tmp_path, monkeypatch):
    wrong = shakespeare.TINY_SHAKESPEARE._replace(sha256="0" * 64)
    monkeypatch.setattr(shakespeare, "TINY_SHAKESPEARE", wrong)
    with pytest.raises(ValueError, match=r"task\.path=null: .*invalid hash value"):
        Shakespeare(seq_len=8, path=None)
    assert list((tmp_path / "cache" / "ablate").iterdir()) == []


def test_without_a_network_it_says_how_to_give_a_text(source, tmp_path):
    source.server.shutdown()
    source.server.server_close()
    with pytest.raises(ValueError, match=r"could not be downloaded to .*text\.txt .*use task\.path=FILE") as refusal:
        Shakespeare(seq_len=8, path=None)
    assert "\n" not in str(refusal.value)
    assert list((tmp_path / "cache" / "ablate").iterdir()) == []


def test_drawing_needs_no_more_than_the_text_in_memory(write):
    task = Shakespeare(seq_len=8, path=write("abc" * 100))
    Path(task.path).unlink()
    assert task.batch(np.random.default_rng(0), 4).inputs_BT.shape == (4, 8)

"""The benchmark of generation, from end to end at a size that takes no time."""

import io

import pytest
from rich.console import Console

from benchmarks import generation
from benchmarks.generation import Timing

TINY = ("model.width=8", "model.heads=2", "model.layers=1")


def test_both_ways_are_timed_on_the_same_text():
    timing = generation.measure("roper", 12, 2, 2, TINY)
    assert timing.scheme == "roper"
    assert timing.cached > 0
    assert timing.uncached > 0


def test_texts_that_differ_are_no_benchmark(monkeypatch):
    monkeypatch.setattr(generation, "generate", lambda model, prompts, tokens, cached: [[int(cached)]])
    with pytest.raises(RuntimeError, match="rope: the texts with and without cache differ"):
        generation.measure("rope", 3, 1, 1, TINY)


def test_the_table_shows_seconds_their_ratio_and_the_rate():
    out = io.StringIO()
    Console(file=out, width=100).print(generation.table([Timing("rope", 0.5, 4.0)], 512, 2))
    (row,) = [line for line in out.getvalue().splitlines() if "rope" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["rope", "0.50", "4.00", "8.0", "2,048"]


def test_the_command_measures_the_schemes_it_is_given(capsys, monkeypatch):
    monkeypatch.setattr(generation, "SIZE", TINY)
    generation.main(["--schemes", "learned", "none", "--tokens", "6", "--rounds", "1"])
    out = capsys.readouterr().out
    assert "learned" in out
    assert "none" in out
    assert "6 tokens, batch 1, one thread" in out

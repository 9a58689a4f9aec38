"""Tables and lines on terminals of 20 to 200 characters: no number is cut or broken, no label is lost."""

import io
import re
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ablate.screen import Column, ScreenTable, Wrapped, say

WIDTHS = (20, 24, 30, 40, 50, 60, 80, 100, 120, 200)
NUMBER = re.compile(r"\d+(?:\.\d+)?")

NUMBERS = st.decimals(0, 10**6, places=4).map(str) | st.integers(0, 10**9).map(str)
TEXT = """rope roper_2022 attention.rope_percentage=0.25 t5 注意力机制 アブレーション größe−1 [red]x[/red] a-b-c
lr=1e-05 the_name_of_a_variant_without_any_space_in_it multirun/copy_repeat/2026-12-07 😀"""
WORDS = st.sampled_from(TEXT.split())
LABELS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
CELLS = st.builds("{} ± {}".format, NUMBERS, NUMBERS) | st.builds("{} [{}, {}]".format, NUMBERS, NUMBERS, NUMBERS)
VERDICTS = st.sampled_from(["better by a meaningful margin", "baseline", "worse", "–", "9 of 10 seeds, 1 diverged"])
ROWS = st.lists(st.tuples(LABELS, CELLS, CELLS | NUMBERS, CELLS, VERDICTS), min_size=1, max_size=4)
COLUMNS = (
    Column("variant"),
    Column("mean ± SD", "right"),
    Column("p (Holm)", "right"),
    Column("95 % CI", "right", optional=True),
    Column("verdict", wraps=True),
)


def printed(shown, width: int, *, terminal: bool = False) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False, force_terminal=terminal, color_system=None)
    if isinstance(shown, Text):
        say(console, shown)
    else:
        console.print(shown)
    return console.file.getvalue()


def squeezed(text: str) -> str:
    return "".join(text.split())


def numbers(*texts: str) -> Counter[str]:
    return Counter(number for text in texts for number in NUMBER.findall(text))


@settings(deadline=None, max_examples=60)
@given(ROWS, st.sampled_from(WIDTHS) | st.integers(20, 200), st.booleans())
@example([("rope", "2.00 ± 0.18", "0.0500", "1.0 [0.1, 2.0]", "baseline")], 30, True)
def test_w24_every_number_and_label_of_a_table_stands_whole_at_every_width(rows, width, ruled):
    text = printed(ScreenTable(COLUMNS, rows, ruled=ruled), width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "…" not in text
    needed = [cell for row in rows for i, cell in enumerate(row) if not COLUMNS[i].optional]
    assert numbers(*needed) <= numbers(text)
    for label, *_, verdict in rows:
        assert squeezed(label) in squeezed(text)
        assert all(word in text for word in verdict.split())


@settings(deadline=None, max_examples=60)
@given(st.lists(WORDS | NUMBERS, max_size=20).map(" ".join), st.integers(20, 200), st.integers(0, 4))
def test_w24_a_line_is_wrapped_between_words_and_never_within_a_number(line, width, hang):
    text = printed(Wrapped(Text(line), hang), width)
    assert max(map(cell_len, text.splitlines()), default=0) <= width
    assert squeezed(text) == squeezed(line)
    assert numbers(text) == numbers(line)


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (80, [["variant", "mean", "±", "SD", "p"], ["rope", "2.00", "±", "0.18", ".012"]]),
        (22, [["mean"], ["variant", "±", "SD", "p"], ["rope", "2.00", ".012"], ["±", "0.18"]]),
        (14, [["variant:", "rope"], ["mean", "±", "SD:"], ["2.00"], ["±", "0.18"], ["p:", ".012"]]),
    ],
)
def test_w24_a_table_stays_whole_then_breaks_between_numbers_then_stacks(width, lines):
    columns = [Column("variant"), Column("mean ± SD", "right"), Column("p", "right")]
    text = printed(ScreenTable(columns, [["rope", "2.00 ± 0.18", ".012"]]), width)
    assert [line.split() for line in text.splitlines() if line.strip()] == lines


def test_w24_rows_are_stacked_where_there_is_no_room():
    rows = [["a_long_name_of_a_variant", "2.00 ± 0.18", "better than the baseline"], ["b", "", "–"]]
    table = ScreenTable([Column("variant"), Column("mean ± SD", "right"), Column("verdict")], rows)
    assert [line.rstrip() for line in printed(table, 30).splitlines()] == [
        "", "variant:", "  a_long_name_of_a_variant", "  mean ± SD: 2.00 ± 0.18", "  verdict:",
        "    better than the baseline", "", "variant: b", "  verdict: –",
    ]  # fmt: skip


def test_w24_an_optional_column_goes_as_a_whole_before_anything_is_broken():
    columns = [Column("variant"), Column("mean ± SD", "right"), Column("95 % CI", "right", optional=True)]
    table = ScreenTable(columns, [["rope", "2.00 ± 0.18", "[1.90, 2.10]"]])
    assert "[1.90, 2.10]" in printed(table, 40)
    assert printed(table, 25).splitlines()[-1].split() == ["rope", "2.00", "±", "0.18"]


def test_w24_a_line_of_progress_is_wrapped_on_a_terminal_only():
    line = Text("[3/20] attention=rope seed=3  finished  eval/loss 0.3412  12.3 s")
    assert printed(line, 40).rstrip("\n") == line.plain
    assert printed(line, 40, terminal=True).splitlines() == [
        "[3/20] attention=rope seed=3  finished", "  eval/loss 0.3412  12.3 s",
    ]  # fmt: skip

r"""Tables as LaTeX: escaped whatever the names, numbers typed for siunitx, and compiled where pdflatex is at hand."""

import re
import shutil
import subprocess

import pytest
from fake_study import ending, noise, write_study
from hypothesis import given
from hypothesis import strategies as st

from ablate.records import Status
from analysis.comparison import compare
from analysis.factorial_tables import factorial_report
from analysis.latex import ACCENTED, MATHEMATICS, TEXT, escape_latex, to_latex
from analysis.sections import report_tables
from analysis.tables import Cell, Column, Table
from analysis.variance import variance_report

NASTY = [
    "rope_percentage", "50%", "a&b", "$x$", "{braces}", "}", "a|b", "~^\\#", '"q"', "'r' `s`", "0.1 ± 0.2", "−1", "2–3",
    "[x]", "<.001", "p ≥ .05, ✓ ok", "*x", "größe", "α → ω²", "日本", "😀", "-- --- ,,", "line\nbreak\x07", "\\\\ %",
]  # fmt: skip

TOKEN = re.compile(
    r"(?P<brace>[{}])|\\[a-zA-Z]+|\\[{}$&%#_,]|\$(?:-|\^[123]|\\[a-zA-Z]+)\$|~|[^\\{}$&%#_~^<>|\"'`\x00-\x1f]"
)
"""What may stand in a cell: a brace, a macro, an escaped sign, mathematics, or an ordinary character."""


def is_valid(text):
    """Nothing but tokens, braces in balance, no character that the fonts lack, no ligature by accident."""
    depth = 0
    for token in TOKEN.finditer(text):
        depth += {"{": 1, "}": -1}.get(token["brace"], 0)
        if depth < 0:
            return False
    fonts = all(c.isascii() or ACCENTED.fullmatch(c) for c in text)
    return depth == 0 and not TOKEN.sub("", text) and fonts and "--" not in text and ",," not in text


def table_of(*texts, caption="", align="left"):
    return Table("t_1", [Column("my_head %", align)], [[Cell(text)] for text in texts], caption)


def lines_of(table):
    """Column specification, header and rows."""
    lines = to_latex(table).splitlines()
    start = lines.index(r"\toprule")
    spec = lines[start - 1].removeprefix(r"\sbox0{\begin{tabular}")
    rows = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    return spec, lines[start + 1], [row.removesuffix(r" \\") for row in rows]


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("align", ["left", "right"])
def test_latex_is_valid_in_cells_headers_and_captions(text, align):
    table = Table(text, [Column(text, align)], [[Cell(text)], [Cell(text, bold=True)]], text)
    _, head, rows = lines_of(table)
    (caption,) = re.findall(r"\\caption\{(.*)\}\n", to_latex(table))
    assert all(map(is_valid, (head.removesuffix(r" \\"), *rows, caption)))


@given(st.text(max_size=20))
def test_any_text_is_escaped_into_valid_latex(text):
    assert is_valid(escape_latex(text))


def test_the_check_itself_sees_what_is_wrong():
    assert not any(map(is_valid, ("50%", "a_b", "{", "}{", "$x$", "a & b", "日", "x -- y", r"\\")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rope_percentage", r"rope\_percentage"),
        ("{a}", r"\{a\}"),
        ("2–3 — ×", r"2\textendash{}3 \textemdash{} $\times$"),
        ("Δ ≥ −1", r"$\Delta$ $\geq$ $-$1"),
        ("✓", r"$\checkmark$"),
        ("partial ω²", r"partial $\omega$$^2$"),
        ("ß é", "ß é"),
        ("日", "{[}U+65E5{]}"),
        ("--", "-{}-"),
    ],
)
def test_signs_come_out_right(text, expected):
    assert escape_latex(text) == expected


def test_a_column_of_numbers_is_aligned_at_the_point():
    spec, head, rows = lines_of(table_of(".012", "<.001", "1", "n/a", "–", align="right"))
    assert spec == r"{S[table-format=<1.3]}"
    assert head == r"{my\_head \%} \\"
    assert rows == [".012", "<.001", "1", "{n/a}", r"{\textendash{}}"]
    spec, _, rows = lines_of(table_of("−12.5", "0.25", "100", align="right"))
    assert (spec, rows) == ("{S[table-format=-3.2]}", ["-12.5", "0.25", "100"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.330 ± 0.017", r"\num{0.330 \pm 0.017}"),
        ("−0.052 [−0.076, +0.028]", r"\num{-0.052} {[}\num{-0.076}, \num{+0.028}{]}"),
        ("4.50e−10", r"\num{4.50e-10}"),
        ("0.3000 (n = 1)", r"\num{0.3000} (n = 1)"),
        ("5/6 (1 diverged)", "5/6 (1 diverged)"),
        ("[−∞, ∞]", r"{[}$-$$\infty$, $\infty${]}"),
        ("100 % [16, 100]", r"100 \% {[}16, 100{]}"),
        ("1.2.3 v1.0", "1.2.3 v1.0"),
    ],
)
def test_numbers_within_a_cell_are_typed(text, expected):
    spec, _, rows = lines_of(table_of(text, "or words", align="right"))
    assert (spec, rows[0]) == ("{r}", expected)


def test_numbers_in_names_are_left_alone():
    assert lines_of(table_of("rope 0.5 ± −1"))[2] == [r"rope 0.5 $\pm$ $-$1"]


def test_bold_cells_of_a_column_of_numbers_stand_in_braces():
    table = Table("t", [Column("n", "right")], [[Cell("1.5")], [Cell("2.5", bold=True)]])
    assert lines_of(table)[0] == "{r}"
    assert lines_of(table)[2] == [r"\num{1.5}", r"\textbf{\num{2.5}}"]


def test_optional_columns_are_left_out():
    table = Table("t", [Column("a"), Column("b", "right", optional=True)], [[Cell("x"), Cell("1")]])
    assert lines_of(table) == ("{l}", r"a \\", ["x"])


def test_latex_uses_booktabs_and_balanced_environments():
    text = to_latex(table_of("a"))
    assert [line for line in text.splitlines() if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]


@pytest.fixture(scope="module")
def nasty_tables(tmp_path_factory):
    """Every table of a study whose names hold all that LaTeX treats specially."""
    path = tmp_path_factory.mktemp("nasty") / "s"
    factors = {f"{a}, {b}": {"a_%&{": a, "$b#": b} for a in NASTY[:7] for b in ("~^\\", "ω")}
    changes = {(next(iter(factors)), 1): ending(Status.failed, "bad_{x} \\ & 100% # $")}
    write_study(path, {label: noise(i, 4) for i, label in enumerate(factors)}, factors=factors, curves=True)
    crossed = compare(path, threshold=0.6, margin="1%")
    write_study(path, {label: noise(i, 4) for i, label in enumerate(factors)}, factors=factors, changes=changes)
    broken = compare(path, margin="1%", transform="log")
    streams = {f"{i} {d}": {"seeds.init": i, "seeds.data": d} for i in range(3) for d in range(3)}
    write_study(path.parent / "t", {label: noise(i, 1) for i, label in enumerate(streams)}, factors=streams)
    comparisons = (crossed, broken, compare(path.parent / "t"))
    return [table for one in comparisons for table in report_tables(one, factorial_report(one), variance_report(one))]


def test_every_table_of_a_nasty_study_is_valid(nasty_tables):
    assert {"comparison", "factors", "completeness", "failures", "factorial", "contrasts", "variance"} <= {
        table.name for table in nasty_tables
    }
    for table in nasty_tables:
        spec, head, rows = lines_of(table)
        for row in (head.removesuffix(r" \\"), *rows):
            cells = row.split(" & ")
            assert len(cells) == len(re.findall(r"[lr]|S\[[^]]*\]", spec))
            plain = [cell.replace(r"\num", "").replace(r"\textbf", "").lstrip("<") for cell in cells]
            assert all(map(is_valid, plain)), row


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_every_table_of_a_nasty_study_compiles(nasty_tables, tmp_path):
    letters = "".join(map(chr, range(0xA0, 0x180)))
    document = [
        r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{amssymb,booktabs,graphicx,siunitx}",
        r"\begin{document}",
        *("\n" + to_latex(table) + r"\clearpage" for table in nasty_tables),
        *map(escape_latex, (letters, " ".join([*MATHEMATICS, *TEXT]), *NASTY)),
        r"\end{document}",
    ]
    (tmp_path / "t.tex").write_text("\n".join(document), encoding="utf-8")
    command = ["pdflatex", "-draftmode", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    if re.search(r"File `(\w+)\.sty' not found", done.stdout):
        pytest.skip("a LaTeX package is not installed")
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Missing character" not in done.stdout
    wide = re.findall(r"Overfull \\hbox .* in paragraph at lines (\d+)", done.stdout)
    tabular = {i for i, line in enumerate("\n".join(document).splitlines(), 1) if r"\usebox0" in line}
    assert not tabular & set(map(int, wide))

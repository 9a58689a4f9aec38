r"""A table as LaTeX, for booktabs and siunitx 3; every character of a label, header or caption stands for itself.

    \usepackage[T1]{fontenc}
    \usepackage{amssymb,booktabs,graphicx,siunitx}

A page is narrow: optional columns are left out, and a table that is still wider than the text is made smaller.

Numbers are typed, so that a paper's \sisetup decides how they look: a column of nothing but numbers is an S column,
aligned at the decimal point; where a cell holds several (a mean ± SD, an interval) each is a \num. Mean ± SD is no S
column because siunitx 3.2 sets the ± of those without space to its left.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.tables import Cell, Column, Table

LETTERS = "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
NAMES = (
    "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon varphi chi "
    "psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)

MATHEMATICS = {
    "±": r"\pm",
    "−": "-",
    "×": r"\times",
    "÷": r"\div",
    "·": r"\cdot",
    "¹": "^1",
    "²": "^2",
    "³": "^3",
    "µ": r"\mu",
    "∞": r"\infty",
    "≥": r"\geq",
    "≤": r"\leq",
    "≈": r"\approx",
    "≠": r"\neq",
    "→": r"\to",
    "√": r"\surd",
    "✓": r"\checkmark",
    "✗": r"\times",
    "‖": r"\Vert",
    "✂": r"\dagger",
    **{letter: rf"\{name}" for letter, name in zip(LETTERS, NAMES.split(), strict=True)},
}

TEXT = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "…": r"\ldots{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "°": r"\textdegree{}",
    "\u00a0": "~",
    "\u2009": r"\,",
    "\u202f": r"\,",
    # A row that begins with a bracket or star would be read as belonging to the line break before it.
    "*": "{*}",
    "[": "{[}",
    "]": "{]}",
}

ACCENTED = re.compile(r"[À-ÖØ-öø-ĥĨ-ķĹ-ľŁ-ňŊ-ťŨ-ž]")
"""Latin letters that the T1 fonts have."""

LIGATURE = re.compile(r"(?<=([-,]))(?=\1)")
"""Between two hyphens or commas, which T1 fonts would join."""

UNSIGNED = r"(?:\d+\.?\d*|\.\d+)(?:e[+−]\d+)?"
ONE = re.compile(rf"[<>]?[+−]?{UNSIGNED}")
"""A cell that is one number; a p value may be a bound."""

TYPED = re.compile(rf"(?<![\w.])(?:[+−]?{UNSIGNED} ± {UNSIGNED}|[+−]{UNSIGNED}|\d*\.\d+(?:e[+−]\d+)?)(?![\w.])")
"""Within a cell, what is typed as a number: one with its deviation, a sign or a decimal point."""


def escape_latex(text: str) -> str:
    """Text in which every character that LaTeX treats specially stands for itself; compiles whatever the text.

    A character that the fonts do not have is written as [U+1F600].
    """
    return "".join(map(_character, LIGATURE.sub("\0", text)))


def _character(c: str) -> str:
    if c == "\0":
        return "{}"
    if c in TEXT:
        return TEXT[c]
    if c in MATHEMATICS:
        return f"${MATHEMATICS[c]}$"
    if c.isspace() or ord(c) < 32:
        return " "
    return c if c.isascii() or ACCENTED.fullmatch(c) else f"{{[}}U+{ord(c):04X}{{]}}"


def to_latex(table: Table) -> str:
    """A `table` environment; the packages that it needs are named in a comment above."""
    shown = [i for i, column in enumerate(table.columns) if not column.optional]
    columns = {i: _Typeset.of(table.columns[i], [row[i] for row in table.rows]) for i in shown}
    body = [" & ".join(one.cell(row[i]) for i, one in columns.items()) for row in table.rows]
    return "\n".join(
        [
            r"% \usepackage[T1]{fontenc} \usepackage{amssymb,booktabs,graphicx,siunitx}",
            r"\begin{table}",
            r"\centering\small",
            r"\sisetup{separate-uncertainty,retain-explicit-plus}",
            r"\setlength{\belowcaptionskip}{6pt}\setlength{\tabcolsep}{4pt}",
            rf"\caption{{{escape_latex(table.caption)}}}",
            rf"\label{{tab:{''.join(c if c.isascii() and c.isalnum() else '-' for c in table.name)}}}",
            rf"\sbox0{{\begin{{tabular}}{{{''.join(one.spec for one in columns.values())}}}",
            r"\toprule",
            rf"{' & '.join(one.title for one in columns.values())} \\",
            r"\midrule",
            *(rf"{row} \\" for row in body),
            r"\bottomrule",
            r"\end{tabular}}%",
            r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
            r"\end{table}",
            "",
        ]
    )


@dataclass(frozen=True)
class _Typeset:
    """How one column is set: its specification, and whether bare numbers may stand in it."""

    column: Column
    spec: str

    @classmethod
    def of(cls, column: Column, cells: Sequence[Cell]) -> "_Typeset":
        """An S column for one number per cell (other texts are few words), else right or left."""
        if column.align == "left":
            return cls(column, "l")
        numbers = [cell.text for cell in cells if _is_number(cell)]
        others = {cell.text for cell in cells if not _is_number(cell)}
        plain = numbers and others <= {"n/a", "–", ""} and not any("e" in text for text in numbers)
        return cls(column, f"S[table-format={_format(numbers)}]" if plain else "r")

    @property
    def title(self) -> str:
        """The header; in an S column in braces, as it is no number."""
        return self._set(escape_latex(self.column.title))

    def cell(self, cell: Cell) -> str:
        """One cell."""
        if self.spec.startswith("S") and _is_number(cell):
            return _number(cell.text)
        text = _typed(cell.text) if self.column.align == "right" else escape_latex(cell.text)
        return self._set(rf"\textbf{{{text}}}" if cell.bold and text else text)

    def _set(self, text: str) -> str:
        return f"{{{text}}}" if self.spec.startswith("S") else text


def _is_number(cell: Cell) -> bool:
    return not cell.bold and ONE.fullmatch(cell.text) is not None


def _number(text: str) -> str:
    return text.replace("−", "-").replace("±", r"\pm")


def _typed(text: str) -> str:
    r"""A text in which numbers with a sign, a point or a deviation are \num."""
    found, end = [], 0
    for match in TYPED.finditer(text):
        found += [escape_latex(text[end : match.start()]), rf"\num{{{_number(match[0])}}}"]
        end = match.end()
    return "".join([*found, escape_latex(text[end:])])


def _format(numbers: Sequence[str]) -> str:
    """The room that these numbers take: a bound, a sign, digits before and after the point."""
    parts = [text.lstrip("<>+−").partition(".") for text in numbers]
    before, after = (max(len(part[side]) for part in parts) for side in (0, 2))
    bound = next((text[0] for text in numbers if text[0] in "<>"), "")
    sign = "-" if any(c in text for text in numbers for c in "+−") else ""
    return f"{bound}{sign}{max(1, before)}.{after}"

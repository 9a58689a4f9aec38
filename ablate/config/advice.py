"""Corrections of what Hydra's grammar does not understand: what may have been meant, and the rule where nothing may.

Only strings are made here. `ablate.config.explain` tries each and proposes the first that is accepted.
"""

import difflib
import math
import re
from collections.abc import Iterator

FORMS = {
    "choice": "choice(a,b) needs values; null among them is written without choice: null,1.0",
    "range": "range(stop), range(start,stop) or range(start,stop,step) needs numbers",
    "interval": "interval(low,high) needs two numbers",
    "glob": "glob(pattern) needs a pattern, such as glob(rope*)",
    "tag": "tag(log,interval(low,high)) needs an interval in it",
    "int": "int(interval(low,high)) needs an interval in it",
    "shuffle": "shuffle(a,b) needs values",
    "sort": "sort(a,b) needs values",
}
"""Hydra's functions of the command line, and how each is written."""

OTHER_NAMES = {"uniform": "interval", "loguniform": "tag(log,interval", "log_uniform": "tag(log,interval"}
"""Functions of other search tools, and the beginning of the form here."""


def corrections(argument: str) -> Iterator[str]:
    """Yield what may have been meant by one argument, the likeliest first."""
    bare = argument.strip()
    if bare[:1] in "\"'":
        yield bare.strip("\"'")
    key, equals, value = bare.strip("\"'" if bare[:1] in "\"'" else "").partition("=")
    if not equals:
        if re.fullmatch(r"[\w./]+:[^:=]+", bare):
            yield bare.replace(":", "=", 1)
        return
    key = key.strip()
    for meant in (*_values(value.strip()), *_quoted(value)):
        yield f"{key}={meant}"


def _values(value: str) -> Iterator[str]:
    """What a value may have been meant to be, but for text that needs quotes."""
    plain = value.strip("\"'")
    closed = plain + "".join(_missing_brackets(plain))
    yield from dict.fromkeys(one for one in (plain, closed) if one != value)
    if listed := re.fullmatch(r"choice\((.+)\)", closed):
        yield listed[1]
    if "," in closed:
        yield re.sub(r",(?=,|$)|^,", "", re.sub(r"\s*,[\s,]*", ",", closed)).strip(",")
    if ";" in closed:
        yield ",".join(filter(None, (part.strip() for part in closed.split(";"))))
    if called := re.fullmatch(r"(\w+)\((.*)\)", closed):
        yield from _calls(called[1], called[2])


def _calls(name: str, inside: str) -> Iterator[str]:
    if name in OTHER_NAMES:
        form = f"{OTHER_NAMES[name]}({inside})"
        yield form + ")" * (form.count("(") - form.count(")"))
    for near in difflib.get_close_matches(name, [one for one in FORMS if one != name], n=1):
        yield f"{near}({inside})"


def _quoted(value: str) -> Iterator[str]:
    text = value.strip("\"'").replace("\\", "\\\\").replace('"', '\\"')
    if text:
        yield f'"{text}"'


def _missing_brackets(value: str) -> Iterator[str]:
    """The brackets that close those that are open at the end."""
    pairs, opened = {"(": ")", "[": "]", "{": "}"}, list[str]()
    for letter in value:
        if letter in pairs:
            opened.append(pairs[letter])
        elif opened and letter == opened[-1]:
            opened.pop()
    yield from reversed(opened)


def rule_for(argument: str) -> str:
    """Return how the value is written where no correction would be accepted."""
    value = argument.partition("=")[2].strip(" \"'")
    called = re.match(r"(?:choice\()?(\w+)\(", value) or re.match(r"(\w+)\(", value)
    name = called[1] if called else ""
    if name in FORMS:
        return FORMS[name]
    return "give one value, or with -m several (a,b or range(3)); text with special characters in quotes of its own"


def typed_corrections(key: str, value: str) -> Iterator[str]:
    """Yield what may have been meant by a value that was understood but has the wrong type: a list, 1e3, 0-4."""
    if inner := re.fullmatch(r"\[(.+)\]", value):
        yield f"{key}={inner[1].replace(' ', '')}"
    if span := re.fullmatch(r"(\d+)(?:-|\.\.)(\d+)", value):
        yield f"{key}=range({span[1]},{int(span[2]) + 1})"
    if re.fullmatch(r"[\d.]+e\+?\d+|\d+\.0*", value, re.IGNORECASE) and math.isfinite(float(value)):
        yield f"{key}={int(float(value))}"

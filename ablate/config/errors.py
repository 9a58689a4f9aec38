"""The error of this project's users: a config that cannot be run, told in one line, and the nearest valid names."""

import difflib
import sys
from collections.abc import Iterable
from typing import NoReturn

REFUSED = 2
"""Exit code of a command that was refused before anything ran."""


class ConfigError(ValueError):
    """A config that is refused before anything starts. Its message is one line: key, value, rule, nearest choice."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return a hint: the nearest valid names, or all of them when none is near and they are few."""
    valid = sorted(set(choices))
    close = difflib.get_close_matches(name, valid, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(choice for choice in close if _as_near(name, choice, close[0]))}?"
    if not valid:
        return "there are none"
    listed = ", ".join(valid[:12]) + (", ..." if len(valid) > 12 else "")
    return f"valid: {listed}"


def _as_near(name: str, choice: str, best: str) -> bool:
    """Whether `choice` is nearly as near as the best: a clear winner is named alone."""
    ratio = [difflib.SequenceMatcher(None, name, other).ratio() for other in (choice, best)]
    return ratio[0] > ratio[1] - 0.1


def refuse(message: str) -> NoReturn:
    """Print each line of what is refused on standard error, and end with exit code 2."""
    for line in message.splitlines():
        sys.stderr.write(f"ablate: {line}\n")
    sys.exit(REFUSED)

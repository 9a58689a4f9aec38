"""Characters for tasks whose symbols have no meaning of their own."""

from functools import cache
from string import ascii_letters, digits

from ablate.tasks.base import require_between

MOST = 20_000
_FIRST_IDEOGRAPH = 0x4E00


@cache
def symbols(count: int) -> str:
    """Distinct printable characters: a-z, A-Z, 0-9, then the CJK ideographs in the order of their code points."""
    plain = ascii_letters + digits
    return (plain + "".join(chr(_FIRST_IDEOGRAPH + i) for i in range(count - len(plain))))[:count]


def require_symbols(key: str, count: int, fewest: int = 2) -> None:
    """Raise ValueError for a number of symbols that gives no task or has no characters."""
    require_between(key, count, fewest, MOST, "each symbol needs a character of its own")

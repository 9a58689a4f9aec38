"""Which `_target_`s may be built from the config in a run's folder: this project's and torch's optimisers.

A config from elsewhere may name any function of Python (`os.system`), and Hydra would call it.
"""

from collections.abc import Iterator
from typing import Any

from hydra.utils import get_object

from ablate.config.errors import ConfigError

OURS = ("ablate.models.", "ablate.tasks.", "ablate.training.", "torch.optim.")


def check(node: Any, *, origin: str) -> None:
    """Raise ConfigError, naming the file `origin`, for a `_target_` that is not one of OURS; nothing is called."""
    for target in targets(node):
        if not (target.startswith(OURS) and _is_defined_there(target)):
            raise ConfigError(
                f"{origin}: _target_={target} is neither ablate's nor torch.optim's; --trust builds it if you know it"
            )


def targets(node: Any) -> Iterator[str]:
    """Every `_target_` within a config, at any depth."""
    if isinstance(node, dict):
        if "_target_" in node:
            yield str(node["_target_"])
        for value in node.values():
            yield from targets(value)
    elif isinstance(node, list):
        for value in node:
            yield from targets(value)


def _is_defined_there(target: str) -> bool:
    """Whether the name leads to a class or function of OURS, not through a module to something that it imported."""
    try:
        found = get_object(target)
    except Exception:  # whatever the name leads to, it is not ours
        return False
    return f"{getattr(found, '__module__', '')}.".startswith(OURS)

"""The identity of a cell: one hash for everything that can change a result, and the folder name made from it.

    identity = SHA-256( canonical JSON of the resolved config without `seed`, `study`, `runtime`, `sweep` and the
                        top-level aliases )

An alias is a top-level value that others refer to (`rope_percentage`): where a scheme reads it, it stands resolved in
the scheme's own node; where none does, it cannot change the result. Numbers: 1 and 1.0 are one value, the text "1" is
another. Imports the standard library only.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from ablate.jsonfiles import canonical_json

OUTSIDE_IDENTITY = ("seed", "study", "runtime", "sweep", "rope_percentage", "hydra")
"""Top-level keys that are no part of a cell's identity; see the module's docstring for each reason."""


def identity_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a resolved config that a cell's identity is made of."""
    return {key: value for key, value in config.items() if key not in OUTSIDE_IDENTITY}


def cell_identity(config: Mapping[str, Any]) -> str:
    """Return the identity of the cell of a resolved config, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(identity_config(config)).encode()).hexdigest()


def target_name(node: Any, default: str) -> str:
    """Return the module name behind a `_target_` node: ablate.tasks.copy_repeat.CopyRepeat -> copy_repeat."""
    target = node.get("_target_") if isinstance(node, Mapping) else None
    parts = str(target).split(".") if target else []
    return parts[-2] if len(parts) > 1 else default


def cell_folder(config: Mapping[str, Any]) -> str:
    """Return the folder name of a cell: <model>-<scheme>-<8 hex>. The words are for people; nothing reads them back."""
    model = config.get("model") or {}
    words = [target_name(model, "model"), target_name(model.get("attention"), "") if model else ""]
    label = re.sub(r"[^A-Za-z0-9_.-]+", "_", "-".join(word for word in words if word))[:60]
    return f"{label or 'run'}-{cell_identity(config)[:8]}"

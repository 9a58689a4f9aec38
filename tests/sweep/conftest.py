"""The node that the tests of Slurm share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ablate import locks


@pytest.fixture(autouse=True)
def slurm_to_itself(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let one test at a time use the node, whichever process runs it.

    pytest-xdist should see to that by the group, but its 3.8.0 does not beside pytest 9.2, without a word.
    """
    if request.node.get_closest_marker("xdist_group") is None:
        yield
        return
    with locks.turn(Path(tempfile.gettempdir()) / "ablate-tests-slurm.turn"):
        yield

"""Which problems are held out for evaluation: a tenth of all, told by a hash of the problem itself.

The hash knows no seed, so a problem is on one side in every run, for every seed and batch size, and a problem that was
trained on is never evaluated on. A problem is a row of integers, -1 (ABSENT) where it is shorter than the row; padding
does not change its side. Drawing again what falls on the wrong side leaves the problems of a side as likely, relative
to each other, as the task draws them.

The hash is multilinear, sum over j of (x_j + 1) w_j modulo 2**64, with the w_j and the final mixing those of the
SplitMix64 generator (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators").

Shape suffixes: N problems, P integers of a problem.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ablate.tasks.base import Bools, Ints, Split

ABSENT = -1
ONE_IN = 10
FEWEST = 100
"""With fewer problems than this, chance could leave none for evaluation."""

_GAMMA = 0x9E3779B97F4A7C15


def is_held_out(problems_NP: Ints) -> Bools:
    """Whether each problem is for evaluation only."""
    values_NP = (problems_NP + 1).astype(np.uint64)
    hashes_N = _mix((values_NP * _weights(problems_NP.shape[1])).sum(axis=1, dtype=np.uint64))
    held_out_N: Bools = hashes_N % np.uint64(ONE_IN) == 0
    return held_out_N


def draw(
    propose: Callable[[int], Ints], size: int, split: Split, key: Callable[[Ints], Ints] = lambda problems: problems
) -> Ints:
    """Draw `size` problems of a split: `propose(n)` gives n of any side, `key` what of them tells problems apart."""
    share = 1 / ONE_IN if split == "eval" else 1 - 1 / ONE_IN
    kept: list[Ints] = []
    missing = size
    while missing > 0:
        proposed_NP = propose(int(missing / share * 1.1) + 8)
        wanted_NP = proposed_NP[is_held_out(key(proposed_NP)) == (split == "eval")][:missing]
        kept.append(wanted_NP)
        missing -= len(wanted_NP)
    return np.concatenate(kept)


def require_enough(problems: int, remedy: str) -> None:
    """Raise ValueError where so few problems are possible that chance could hold out none."""
    if problems < FEWEST:
        raise ValueError(
            f"only {problems} different problems of this size, at least {FEWEST} are needed to hold some out for "
            f"evaluation; use {remedy}"
        )


def _weights(count: int) -> npt.NDArray[np.uint64]:
    """One odd number for each place of a problem."""
    return _mix(np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA)) | np.uint64(1)


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

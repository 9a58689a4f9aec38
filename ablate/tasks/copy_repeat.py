"""Copy a substring found by its prefix (`acgt>`): the task of the published RoPE and RoPER comparison.

How a sequence is made, "letters" being its tokens without the separators:
1. it starts with `substr_len` random letters;
2. then, again and again until it is long enough: r random letters, r uniform in 1, ..., rnd_len - 1; a `>`; and a copy
   of `substr_len` consecutive letters out of all n letters so far, starting at a uniform offset.
The first letter of a copy cannot be known, the second hardly; the further the copy goes the surer is its source. So
every letter of a copy but its first is a target.

Whole batches are drawn at once: each letter gets a pointer to the letter it copies, or to itself where it is random,
and following the pointers (log2 of the number of copies times, by squaring) gives every letter its random origin.

Shape suffixes: B sequences, K copies, L letters of a copy, W token or letter positions (one more than is kept).
"""

from typing import Literal, final

import numpy as np
import numpy.typing as npt

from ablate.tasks.base import IGNORED, Batch, Ints, Split, require_at_least, require_choice, to_tensor


@final
class CopyRepeat:
    """Sequences of seq_len + 1 tokens: inputs are tokens 0, ..., seq_len - 1 and targets tokens 1, ..., seq_len.

    With substr_len=4 and rnd_len=4, a target where it counts and a dot where it is ignored (here the copies are atcg,
    gatc and cgat, from offsets 2, 5 and 4):

        inputs   gtatcg>atcgc>gatcaa>cgat
        targets  .......tcg...atc....gat.

    `offsets` are those a copy may start from: `uniform` is all of 0, ..., n - substr_len; `legacy` leaves the last one
    out, as the reference code does.

    Nothing is held out, other than in the other tasks: with so many letters, lengths and offsets drawn, no sequence
    comes twice at any size worth training at, and holding some out would change the draws that results rest on.

    Raises ValueError naming the key when substr_len or rnd_len is below 2, or when seq_len is too short for every
    sequence to have a target.
    """

    alphabet = "acgt>"

    def __init__(
        self, *, seq_len: int, substr_len: int, rnd_len: int, offsets: Literal["uniform", "legacy"] = "uniform"
    ) -> None:
        require_at_least("substr_len", substr_len, 2, "a copy's first letter is no target")
        require_at_least("rnd_len", rnd_len, 2, "1 to rnd_len - 1 random letters stand before each copy")
        smallest = substr_len + rnd_len + 1
        require_at_least("seq_len", seq_len, smallest, "else a sequence can end before its first target")
        require_choice("offsets", offsets, ("uniform", "legacy"))
        self.seq_len = seq_len
        self.substr_len = substr_len
        self.rnd_len = rnd_len
        self.offsets = offsets
        self._copies = -(-(seq_len + 1 - substr_len) // (substr_len + 2))

    def with_length(self, seq_len: int) -> "CopyRepeat":
        """The same task with more or fewer copies in a sequence."""
        return CopyRepeat(seq_len=seq_len, substr_len=self.substr_len, rnd_len=self.rnd_len, offsets=self.offsets)

    def batch(self, generator: np.random.Generator, size: int, split: Split = "train") -> Batch:
        """Draw `size` sequences: inputs and targets, int64 of shape [size, seq_len]."""
        del split  # see the class
        width = self.seq_len + 2
        letters_BW = generator.integers(4, size=(size, width))
        starts_BK = self._copy_starts(generator, size)
        origins_BW = self._origins(starts_BK, self._sources(generator, starts_BK))
        separators_BK = starts_BK + np.arange(self._copies)
        is_separator_BW = _mark(separators_BK[:, :, None], width)
        is_target_BW = _mark(separators_BK[:, :, None] + np.arange(2, self.substr_len + 1), width)
        places_BW = np.arange(width) - np.cumsum(is_separator_BW, axis=1) + _row_offsets(size, width)
        tokens_BW = letters_BW.take(origins_BW.take(places_BW))
        tokens_BW[is_separator_BW] = self.alphabet.index(">")
        targets_BW = np.where(is_target_BW, tokens_BW, IGNORED)
        return Batch(to_tensor(tokens_BW[:, :-2]), to_tensor(targets_BW[:, 1:-1]))

    def _copy_starts(self, generator: np.random.Generator, size: int) -> Ints:
        """Where each copy starts, counted in letters."""
        random_BK = generator.integers(1, self.rnd_len, size=(size, self._copies))
        return random_BK.cumsum(axis=1) + self.substr_len * np.arange(1, self._copies + 1)

    def _sources(self, generator: np.random.Generator, starts_BK: Ints) -> Ints:
        """The letter from which each copy is taken."""
        last = 1 if self.offsets == "uniform" else 0
        return generator.integers(starts_BK - self.substr_len + last)

    def _origins(self, starts_BK: Ints, sources_BK: Ints) -> Ints:
        """For each letter of the batch, the flat index of the random letter that it repeats in the end."""
        size, width = len(starts_BK), self.seq_len + 2
        pointers_BW = np.tile(np.arange(width), (size, 1))
        steps_L = np.arange(self.substr_len)
        copied = np.minimum(starts_BK[:, :, None] + steps_L, width - 1) + _row_offsets(size, width)[:, :, None]
        pointers_BW.put(copied, sources_BK[:, :, None] + steps_L)
        pointers_BW[:, -1] = width - 1  # what lies beyond the end was all put there
        pointers_BW += _row_offsets(size, width)
        for _ in range((self._copies - 1).bit_length()):
            pointers_BW = pointers_BW.take(pointers_BW)
        return pointers_BW


def _row_offsets(size: int, width: int) -> Ints:
    """Flat index of each row's first element, shape [size, 1]."""
    return np.arange(0, size * width, width)[:, None]


def _mark(columns_BKL: Ints, width: int) -> npt.NDArray[np.bool_]:
    """True at the given columns of each row; columns beyond the end fall onto the last one, which nobody reads."""
    marked_BW = np.zeros((len(columns_BKL), width), dtype=np.bool_)
    flat = np.minimum(columns_BKL, width - 1) + _row_offsets(*marked_BW.shape)[:, :, None]
    marked_BW.put(flat, True)
    return marked_BW

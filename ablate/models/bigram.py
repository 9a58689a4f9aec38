"""The bigram model: a table of logits, one row for each token, and nothing before that token counts.

Shape suffixes: B sequences, T positions, V vocabulary.
"""

from collections.abc import Mapping
from typing import cast, final

import torch
from torch import nn

from ablate.models.cache import Cache
from ablate.models.initialisation import GeneratorFor, initialise


@final
class Bigram(nn.Module):
    """Token ids [B, T] -> logits [B, T, V]: row x_t of a V x V table, which starts N(0, 1).

    The best it can come to is the entropy of a token given the one before. It has no attention, so no scheme.
    """

    context: int | None = None

    def __init__(self, vocabulary: int, /) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, vocabulary)

    def new_cache(self) -> Cache:
        """Nothing: the last token is all it looks at."""
        return []

    def forward(self, tokens_BT: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        """Logits [B, T, V] of the next token at every position, whatever came before."""
        return cast(torch.Tensor, self.table(tokens_BT))

    def initialise(self, generator_for: GeneratorFor) -> None:
        """Start the table."""
        initialise(self, generator_for, "xavier")

    def effective(self) -> Mapping[str, int | float | str]:
        """Nothing to tell."""
        return {}

"""Learning-rate schedules that torch does not have as one class; the others are torch's own, named in the config."""

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ablate.models.exact import floor_share


def warmup_cosine(optimizer: Optimizer, /, *, steps: int, warmup_fraction: float, final_fraction: float) -> LambdaLR:
    """Linear warm-up, then half a cosine from the optimiser's learning rate down to `final_fraction` of it.

    With k steps done of n = `steps`, w = ⌊`warmup_fraction` n⌋ (exactly: 0.29 of 100 is 29) and f = `final_fraction`,
    the factor is (k + 1) / (w + 1) for k < w, then f + (1 - f) (1 + cos(π (k - w) / (n - w))) / 2.
    Raises ValueError for fractions outside [0, 1].
    """
    for key, fraction in (("warmup_fraction", warmup_fraction), ("final_fraction", final_fraction)):
        if not 0 <= fraction <= 1:
            raise ValueError(f"schedule.{key}={fraction}: must lie between 0 and 1")
    warmup = floor_share(warmup_fraction, steps)

    def factor(done: int) -> float:
        if done < warmup:
            return (done + 1) / (warmup + 1)
        progress = min(1.0, (done - warmup) / max(1, steps - warmup))
        return final_fraction + (1 - final_fraction) * (1 + math.cos(math.pi * progress)) / 2

    return LambdaLR(optimizer, factor)

"""Train variants of a small sequence model with several seeds, each run recorded, resumable and reproducible."""

from ablate import stdio

stdio.open_closed()

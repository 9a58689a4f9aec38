"""Pruning, as a run sees it: at each evaluation it reports its score to the search and asks whether to go on.

The first seed of a trial is judged, against the first seeds of the others: same data, same start. What it cannot reach
or read ends the run as failed, with the reason in its record, so that pruning never silently does nothing.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import optuna

from ablate.records import SweepPlan
from ablate.sweep.search.samplers import make_pruner
from ablate.sweep.search.storage import open_storage


class Judge:
    """Judges one run; opens the storage when first asked, in the process that trains."""

    def __init__(self, search: Mapping[str, Any], number: int) -> None:
        self.search, self.number = search, number
        self._study: optuna.Study | None = None

    def __call__(self, step: int, scores: Mapping[str, float]) -> bool:
        """Report the score at this step (`scores` as the log names them) and return whether to stop."""
        study = self._open()
        storage = study._storage
        trial_id = storage.get_trial_id_from_study_id_trial_number(study._study_id, self.number)
        score = scores[self.search["metric"].removeprefix("eval/")]
        if not math.isfinite(score):
            return False
        storage.set_trial_intermediate_value(trial_id, step, float(score))
        return bool(study.pruner.prune(study, storage.get_trial(trial_id)))

    def _open(self) -> optuna.Study:
        if self._study is None:
            optuna.logging.set_verbosity(optuna.logging.WARNING)
            storage = open_storage(self.search["storage"])
            pruner = make_pruner(self.search["pruner"])
            self._study = optuna.load_study(study_name=self.search["study_name"], storage=storage, pruner=pruner)
        return self._study


def judge_of(plan: SweepPlan, cell: str, seed: int) -> Callable[[int, Mapping[str, float]], bool]:
    """Return what judges the run of this cell and seed: nothing does but for a trial's first seed."""
    search = plan.search
    if search is None or search.get("by_seed") or seed != plan.seeds[0] or cell not in search["trials"]:
        return lambda step, scores: False
    return Judge(search, search["trials"][cell])

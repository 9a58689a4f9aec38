"""A search as a plain file for the analysis, which reads no storage: `search/<study_name>.trials.json`.

Every trial with its values, its curve and what it cost, and how much each parameter mattered. Written whole at the end
of every call of a search; nothing here decides anything.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState

from ablate.jsonfiles import write_json
from ablate.records import RunFolder, StudyFolder
from ablate.resume import read_or_none
from ablate.sweep.search import trials
from ablate.sweep.search.objective import Objective
from ablate.sweep.search.prepare import Prepared
from ablate.sweep.search.samplers import short

STATES = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}

LEAST_FOR_IMPORTANCE = 4
"""Finished trials below which shares of importance are not computed."""


def state_of(trial: FrozenTrial) -> str:
    """Return how a trial stands, in a word."""
    return "lost" if trials.LOST in trial.user_attrs else STATES[trial.state]


def write_trials(study: optuna.Study, prepared: Prepared) -> None:
    """Write the search's file, from its storage and its runs' records."""
    settings = prepared.settings
    metrics = [one.metric for one in prepared.objectives]
    directions = [one.direction for one in prepared.objectives]
    known = [one for one in trials.all_trials(study) if one.state is not TrialState.WAITING]
    write_json(
        prepared.folder.search_trials(settings.study_name),
        {
            "study_name": settings.study_name,
            "metric": metrics[0],
            "direction": directions[0],
            "metrics": metrics,
            "directions": directions,
            "sampler": short(prepared.samplers.node),
            "pruner": short(prepared.pruner) if prepared.pruner else "none",
            "space": {one.key: str(one) for one in prepared.space.parameters},
            "log": sorted(one.key for one in prepared.space.parameters if getattr(one.distribution, "log", False)),
            "fixed": list(prepared.space.fixed),
            "seeds": prepared.seeds,
            "n_trials": prepared.n_trials,
            "trials": [_trial(one, prepared) for one in known],
            "importances": importances(study, prepared.objectives),
        },
    )


def _trial(trial: FrozenTrial, prepared: Prepared) -> dict[str, Any]:
    cell = trials.cell_of(trial)
    seeds = prepared.seeds
    records = [read_or_none(run) for run in _runs(prepared.folder, cell.folder, seeds)] if cell else []
    return {
        "number": trial.number,
        "state": state_of(trial),
        "values": trial.values if trial.state is TrialState.COMPLETE else None,
        "params": dict(trial.params),
        "curve": [[step, value] for step, value in sorted(trial.intermediate_values.items())],
        "cell": cell.cell if cell else None,
        "label": cell.label if cell else None,
        "folder": cell.folder if cell else None,
        "feasible": trials.is_feasible(trial),
        "reason": trial.user_attrs.get(trials.REASON),
        "steps": sum(record.steps_done for record in records if record),
        "seconds": sum(record.seconds or 0.0 for record in records if record),
    }


def _runs(folder: StudyFolder, cell_folder: str, seeds: Sequence[int]) -> list[RunFolder]:
    return [folder.run(cell_folder, seed) for seed in seeds]


def _low_is_good(place: int, sign: float) -> Callable[[FrozenTrial], float]:
    return lambda one: sign * float(one.values[place])


def importances(study: optuna.Study, objectives: Sequence[Objective]) -> Mapping[str, dict[str, float]] | None:
    """Return each parameter's share by metric, None where there are too few finished trials.

    PED-ANOVA (Watanabe, Bansal, Hutter 2023): how much each parameter's values among the best tenth of the trials
    differ from those among all.
    """
    done = trials.finished(trials.all_trials(study))
    if len(done) < LEAST_FOR_IMPORTANCE:
        return None
    found: dict[str, dict[str, float]] = {}
    for place, one in enumerate(objectives):
        low = _low_is_good(place, 1.0 if one.direction == "minimize" else -1.0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that low is taken for good, which `low` sees to
                shares = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator(), target=low)
        except (ValueError, RuntimeError):  # a parameter that not every trial has
            return None
        found[one.metric] = {key: float(share) for key, share in shares.items()}
    return found

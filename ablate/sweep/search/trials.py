"""The trials of a stored study: which count, which were lost with their process, and what is known of each.

A trial carries in its attributes the sweep that asked for it and its cell (`run`), and why it has no value (`reason`).
One whose process is gone is marked `lost` and failed, does not count, and its values are queued to be tried again: its
runs are found by their identity and go on from their checkpoints.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from ablate import locks
from ablate.records import PlannedCell, StudyFolder

RUN, REASON, LOST = "run", "reason", "lost"


def all_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return every trial, not to be changed."""
    return list(study.get_trials(deepcopy=False))


def counted(study: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that count towards n_trials: begun, and not lost."""
    return [one for one in all_trials(study) if one.state is not TrialState.WAITING and LOST not in one.user_attrs]


def failed(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return those that failed by themselves."""
    return [one for one in trials if one.state is TrialState.FAIL and LOST not in one.user_attrs]


def is_feasible(trial: FrozenTrial) -> bool:
    """Whether a trial keeps its constraints; one without any does."""
    return all(excess <= 0 for excess in trial.constraints.values())


def finished(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return those with values, all finite."""
    return [one for one in trials if one.state is TrialState.COMPLETE]


def tie(trial: optuna.Trial, sweep_id: str, cell: PlannedCell) -> None:
    """Note with a trial who asked for it and which cell it is."""
    trial.set_user_attr(RUN, {"sweep": sweep_id, **asdict(cell)})


def cell_of(trial: FrozenTrial) -> PlannedCell | None:
    """Return the cell a trial is tied to."""
    kept: dict[str, Any] | None = trial.user_attrs.get(RUN)
    return None if kept is None else PlannedCell(**{key: value for key, value in kept.items() if key != "sweep"})


def end(study: optuna.Study, trial: optuna.Trial, state: TrialState, reason: str) -> FrozenTrial:
    """Record a trial as failed or pruned, with the reason."""
    trial.set_user_attr(REASON, reason)
    return study.tell(trial, state=state)


def lose(study: optuna.Study, trial: FrozenTrial, reason: str) -> FrozenTrial:
    """Record a trial as lost, and queue its values again."""
    storage = study._storage
    storage.set_trial_user_attr(trial._trial_id, LOST, True)
    storage.set_trial_user_attr(trial._trial_id, REASON, reason)
    told = study.tell(trial.number, state=TrialState.FAIL)
    values = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
    if values or RUN in trial.user_attrs:
        study.enqueue_trial(values)
    return told


def reclaim(study: optuna.Study, folder: StudyFolder) -> list[int]:
    """Lose the trials whose process is gone; returns their numbers."""
    gone = [
        one
        for one in all_trials(study)
        if one.state is TrialState.RUNNING
        and not (RUN in one.user_attrs and locks.is_held(folder.sweep_lock(one.user_attrs[RUN]["sweep"])))
    ]
    for one in gone:
        lose(study, one, "its process ended before it was done")
    for lock in folder.sweeps_path.glob("*.lock"):
        if locks.read_owner(lock) is not None and not locks.is_held(lock):
            lock.unlink(missing_ok=True)
    return [one.number for one in gone]

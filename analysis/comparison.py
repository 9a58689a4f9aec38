"""The comparison of a study's variants with its baseline: the one entry for Python, on one task."""

from pathlib import Path

from analysis.load import load_study
from analysis.results import Comparison
from analysis.study import Study
from analysis.task_sets import compare_tasks
from analysis.tasks import choose_task


def compare(
    study: Study | Path | str,
    metric: str | None = None,
    *,
    baseline: str | None = None,
    direction: str | None = None,
    margin: float | str | None = None,
    transform: str | None = None,
    threshold: float | str | None = None,
    task: str | None = None,
) -> Comparison:
    """Compare every variant with the baseline.

    `study` is a folder or what `load_study` gave; the baseline is the plan's first cell unless named by label, by
    factor=value or by level; `direction` is lower or higher (by default from the metric's name); `margin` is the
    smallest effect of interest, absolute or "2%". `transform` is none, or log to compare logarithms (differences are
    then ratios, and margins in per cent). A run has solved the task when its final value is at or beyond `threshold`.
    What is left out is as the sweep declared it (`sweep.metric`, `sweep.margin`, ...). In a study of several tasks one
    `task` is chosen, and p are corrected over the comparisons of all; `compare_tasks` gives all of them.
    Raises StudyError when the question cannot be asked of this study.
    """
    loaded = study if isinstance(study, Study) else load_study(study)
    choose_task(loaded, task)  # which says when one must be chosen
    found = compare_tasks(
        loaded,
        metric,
        baseline=baseline,
        direction=direction,
        margin=margin,
        transform=transform,
        threshold=threshold,
        task=task,
    )
    assert len(found.first.results) == len(found.study.variants), "rows out must equal variants in"
    return found.first

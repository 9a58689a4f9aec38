"""What a trial is worth, from records as runs leave them."""

import math
import re

import pytest

from ablate.config.errors import ConfigError
from ablate.config.schema import Direction, SweepConfig
from ablate.records import RunRecord, Status
from ablate.sweep.search.objective import Objective, measure, objectives_of
from ablate.sweep.search.settings import Settings

LOSS = [Objective("eval/loss", "minimize")]
METRICS = ["eval/loss", "eval/accuracy"]


def record(status: Status = Status.finished, seed: int = 0, **values) -> RunRecord:
    values.setdefault("metrics", {"eval/loss": 2.0})
    return RunRecord(status=status, study="s", cell="c", label="l", factors={}, seed=seed, **values)


def test_the_value_is_the_mean_over_the_seeds_and_one_for_each_objective():
    runs = [(0, record(seconds=4.0)), (1, record(metrics={"eval/loss": 5.0}, seconds=2.0))]
    assert measure(LOSS, runs).values == [3.5]
    assert measure([*LOSS, Objective("seconds", "minimize")], runs).values == [3.5, 3.0]


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (record(metrics={"eval/loss": None}), "seed 0: eval/loss is missing"),
        (record(metrics={}), "seed 0: eval/loss is missing"),
        (record(metrics={"eval/loss": math.nan}), "seed 0: eval/loss is nan"),
        (record(metrics={"eval/loss": math.inf}), "seed 0: eval/loss is inf"),
        (record(metrics={"eval/loss": [1.0, 2.0]}), r"seed 0: eval/loss is \[1.0, 2.0\], not a finite number"),
        (record(metrics={"eval/loss": "1.0"}), "not a finite number"),
        (record(Status.failed, error={"type": "ValueError", "message": "no"}), "seed 0: failed: ValueError: no"),
        (record(Status.diverged, error={"type": "Diverged", "message": "at 3"}), "seed 0: diverged: Diverged: at 3"),
        (None, "seed 0: was not trained"),
    ],
)
def test_b2_what_is_no_finite_number_has_no_value_but_a_reason(run, reason):
    found = measure(LOSS, [(0, run), (1, record())])
    assert found.values is None
    assert not found.pruned
    assert re.search(reason, found.reason), found.reason


def test_b9_a_trial_with_a_pruned_run_is_pruned_and_not_failed():
    found = measure(LOSS, [(0, record(Status.pruned, steps_done=3)), (1, None)])
    assert (found.values, found.pruned, found.reason) == (None, True, "seed 0 was stopped at step 3")


@pytest.mark.parametrize(
    ("settings", "sweep", "expected"),
    [
        (Settings(), SweepConfig(), [("eval/loss", "minimize")]),
        (Settings(metric="eval/accuracy"), SweepConfig(), [("eval/accuracy", "maximize")]),
        (Settings(), SweepConfig(metric="eval/accuracy", direction=Direction.lower), [("eval/accuracy", "minimize")]),
        (Settings(direction="maximize"), SweepConfig(), [("eval/loss", "maximize")]),
        (
            Settings(metric=["eval/loss", "tokens_per_second"]),
            SweepConfig(),
            [("eval/loss", "minimize"), ("tokens_per_second", "maximize")],
        ),
    ],
)
def test_the_direction_is_the_one_named_else_the_sweeps_else_the_metrics_usual_one(settings, sweep, expected):
    assert [tuple(one) for one in objectives_of(settings, sweep, METRICS)] == expected


@pytest.mark.parametrize(
    ("metric", "message"),
    [("eval/los", "did you mean eval/loss"), (["eval/loss", "eval/loss"], "names one metric twice")],
)
def test_an_objective_that_no_run_records_is_refused(metric, message):
    with pytest.raises(ConfigError, match=message):
        objectives_of(Settings(metric=metric), SweepConfig(), METRICS)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_trials": 0}, "n_trials=0: must be at least 1"),
        ({"n_jobs": 0}, "n_jobs=0: must be at least 1"),
        ({"timeout": 0}, "timeout=0: must be above 0"),
        ({"max_failure_rate": 1.5}, "must lie between 0 and 1"),
        ({"study_name": "a/b"}, "study_name=a/b: letters, digits"),
        ({"direction": "minimise"}, "direction=minimise: did you mean minimize"),
        ({"direction": ["minimize", "maximize"]}, "one direction for each metric: 2 for 1"),
        ({"metric": ["a", "b"], "direction": "minimize"}, "one direction for each metric: 1 for 2"),
    ],
)
def test_an_option_that_no_search_could_use_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        Settings(**values).check()


@pytest.mark.parametrize(("seeds", "expected"), [(None, [5]), (3, [5, 6, 7]), ([2, 9], [2, 9])])
def test_seeds_are_named_or_counted_from_the_first(seeds, expected):
    assert Settings(seeds=seeds).chosen_seeds(5) == expected


@pytest.mark.parametrize("seeds", [0, [], [1, 1], [-1]])
def test_seeds_that_are_none_or_repeated_are_refused(seeds):
    with pytest.raises(ConfigError, match=r"hydra\.sweeper\.seeds"):
        Settings(seeds=seeds).chosen_seeds(0)

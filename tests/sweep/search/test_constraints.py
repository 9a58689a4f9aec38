"""Constraints: read without evaluating anything, kept by the best trial, told where they are broken."""

import json
from pathlib import Path

import pytest

from ablate.config.errors import ConfigError
from ablate.sweep.search.constraints import read_constraints
from tests.sweep.search.conftest import stored

KNOWN = ["eval/loss", "parameters", "seconds"]


@pytest.mark.parametrize(
    ("text", "value", "excess"),
    [
        ("parameters <= 200000", 150000, -50000),
        ("parameters<2e5", 200001, 1),
        ("seconds >= 1.5", 1.0, 0.5),
        ("eval/loss>.5", 0.75, -0.25),
    ],
)
def test_a_constraint_says_by_how_much_a_value_is_beyond_it(text, value, excess):
    (one,) = read_constraints([text], KNOWN)
    assert one.excess(value) == pytest.approx(excess)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paramters <= 3", "no final metric of these runs; did you mean parameters"),
        ("parameters", "must be METRIC <= NUMBER"),
        ("parameters <= seconds", "must be METRIC <= NUMBER"),
        ("__import__('os').system('true') <= 1", "must be METRIC <= NUMBER|no final metric"),
        ("parameters == 3", "must be METRIC <= NUMBER"),
    ],
)
def test_what_is_no_constraint_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        read_constraints([text], KNOWN)


def test_the_best_trial_keeps_the_constraints_though_another_has_a_lower_loss(search):
    space = ["model.width=choice(8,64)", "training.steps=30", "hydra/sweeper/sampler=grid"]
    free = search(*space, "study=free")
    assert free.code == 0, free
    best = stored("multirun/free/search/search.journal").best_trial.params["model.width"]
    limit = "parameters >= 5000" if best == "8" else "parameters <= 5000"
    kept = search(*space, "study=kept", f'hydra.sweeper.constraints=["{limit}"]')
    assert kept.code == 0, kept
    assert f"not {limit}" in kept.out
    assert f"model.width={best}" not in kept.out.split("best: ")[1]
    written = json.loads(Path("multirun/kept/search/search.trials.json").read_text())
    assert {one["params"]["model.width"]: one["feasible"] for one in written["trials"]} == {
        width: width != best for width in ("8", "64")
    }


def test_without_a_trial_that_keeps_them_there_is_no_best_config(search):
    result = search(
        "model.width=choice(8,16)", "hydra.sweeper.n_trials=2", 'hydra.sweeper.constraints=["parameters<=10"]'
    )
    assert "no trial finished and kept hydra.sweeper.constraints" in result.out


def test_a_constraint_on_an_unknown_metric_is_refused_before_anything_runs(search, in_tmp):
    result = search("model.width=choice(8,16)", 'hydra.sweeper.constraints=["second <= 10"]')
    assert result.code == 2
    assert "did you mean seconds" in result.err
    assert not list(in_tmp.iterdir())

"""Pruned trials: judged at each evaluation on their first seed, recorded as pruned, never as failed."""

from pathlib import Path

import pytest

from ablate.records import PlannedCell, Status, StudyFolder, SweepPlan
from ablate.sweep.search.judge import judge_of
from ablate.sweep.search.storage import open_storage, open_study
from tests.sweep.search.conftest import LR, states, stored

CURVE = ("training.eval_every=1", "training.steps=8")
PRUNED = ("hydra/sweeper/pruner=median", "hydra.sweeper.pruner.n_startup_trials=2")


def records(path: str = "multirun/copy_repeat"):
    return [record for folder in StudyFolder(Path(path)).runs() if (record := folder.read())]


def test_b9_a_pruned_trial_is_pruned_not_failed_and_its_other_seeds_are_not_trained(search):
    result = search(LR, *CURVE, *PRUNED, "hydra.sweeper.n_trials=5", "hydra.sweeper.seeds=2")
    assert result.code == 0, result
    study = stored()
    pruned = [one for one in study.trials if one.state.name == "PRUNED"]
    assert pruned
    assert states(study).count("pruned") + states(study).count("complete") == 5
    assert f"{len(pruned)} pruned" in result.out
    by_cell = {}
    for record in records():
        by_cell.setdefault(record.cell, []).append(record)
    for one in study.trials:
        runs = by_cell[one.user_attrs["run"]["cell"]]
        if one in pruned:
            (run,) = runs
            assert (run.status, run.seed, run.metrics, run.error) == (Status.pruned, 0, {}, None)
            assert run.steps_done == one.last_step < 8
            assert one.user_attrs["reason"] == f"seed 0 was stopped at step {run.steps_done}"
        else:
            assert [run.status for run in runs] == [Status.finished] * 2
            assert sorted(one.intermediate_values) == list(range(1, 9))
    assert study.best_trial not in pruned


def test_what_one_search_pruned_goes_on_for_another_that_does_not_prune(search):
    """The sampler's seed is the same, so both begin with the same trials."""
    alike = (LR, *CURVE, "hydra.sweeper.n_trials=2")
    search(*alike, "hydra/sweeper/pruner=threshold", "hydra.sweeper.pruner.upper=0.1", "hydra.sweeper.study_name=a")
    assert states(stored("multirun/copy_repeat/search/a.journal", "a")) == ["pruned"] * 2
    assert {record.status for record in records()} == {Status.pruned}
    search(*alike, "hydra.sweeper.study_name=kept", "sweep.rerun=none")
    assert {record.status for record in records()} == {Status.pruned}
    result = search(*alike, "hydra.sweeper.study_name=b")
    assert result.code == 0, result
    assert states(stored("multirun/copy_repeat/search/b.journal", "b")) == ["complete"] * 2
    assert [(record.status, record.steps_done) for record in records()] == [(Status.finished, 8)] * 2


def test_runs_that_were_trained_before_are_judged_against_too(search, sweep):
    sweep(*CURVE, "optimizer.lr=1e-2,2e-2,3e-2")
    space = "optimizer.lr=choice(1e-2,2e-2,3e-2,1e-6)"
    search(space, *CURVE, *PRUNED, "hydra/sweeper/sampler=grid")
    trained_before = [one for one in stored().trials if float(one.params["optimizer.lr"]) > 1e-3]
    assert len(trained_before) == 3
    assert all(sorted(one.intermediate_values) == list(range(1, 9)) for one in trained_before)


def test_a_pruned_search_with_one_worker_repeats_exactly(search):
    arguments = [LR, *CURVE, *PRUNED, "hydra.sweeper.n_trials=5"]
    search(*arguments, "study=one")
    search(*arguments, "study=two")
    one, two = (stored(f"multirun/{name}/search/search.journal") for name in ("one", "two"))
    assert [(t.params, t.state, t.values) for t in one.trials] == [(t.params, t.state, t.values) for t in two.trials]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["training.eval_every=6"], "training.eval_every=6: must be below training.steps=6 with a pruner"),
        (["hydra.sweeper.metric=seconds"], "seconds is known at the end of a run only"),
        (["hydra.sweeper.metric=[eval/loss,seconds]"], "prunes by one objective"),
        (["hydra.sweeper.pruner.n_startup_trials=many"], "must be a number"),
        (["hydra.sweeper.pruner.n_startup_trials=-1"], "negative"),
    ],
)
def test_b9_a_pruner_that_could_not_work_is_refused_at_the_start(search, in_tmp, arguments, message):
    result = search(LR, *PRUNED[:1], *arguments)
    assert result.code == 2
    assert message in result.err
    assert not list(in_tmp.iterdir())


def plan_of(folder: Path, pruner: dict) -> SweepPlan:
    place = str(folder / "s.journal")
    study = open_study(open_storage(place), "search", ["minimize"], {})
    for losses in ([3.0, 2.0], [3.5, 2.5], [3.2, 2.2]):
        trial = study.ask()
        for step, loss in enumerate(losses, 1):
            trial.report(loss, step)
        study.tell(trial, losses[-1])
    number = study.ask().number
    cell = PlannedCell(cell="c", label="l", factors={}, folder="f", overrides=[])
    search = {
        "storage": place,
        "study_name": "search",
        "metric": "eval/loss",
        "pruner": pruner,
        "trials": {"c": number},
    }
    return SweepPlan(id="i", created="", command="", study="s", cells=[cell], seeds=[4, 5], search=search)


@pytest.mark.parametrize(
    ("pruner", "losses", "expected"),
    [
        ({"_target_": "optuna.pruners.MedianPruner", "n_startup_trials": 1}, [3.1, 2.1], [False, False]),
        ({"_target_": "optuna.pruners.MedianPruner", "n_startup_trials": 1}, [3.3], [True]),
        ({"_target_": "optuna.pruners.MedianPruner", "n_startup_trials": 4}, [9.0, 9.0], [False, False]),
        ({"_target_": "optuna.pruners.ThresholdPruner", "upper": 5.0}, [4.0, 6.0], [False, True]),
    ],
)
def test_a_run_is_judged_as_the_pruner_says(tmp_path, pruner, losses, expected):
    judge = judge_of(plan_of(tmp_path, pruner), "c", seed=4)
    assert [judge(step, {"loss": loss}) for step, loss in enumerate(losses, 1)] == expected


def test_other_seeds_and_other_cells_are_not_judged(tmp_path):
    plan = plan_of(tmp_path, {"_target_": "optuna.pruners.ThresholdPruner", "upper": 0.0})
    assert not judge_of(plan, "c", seed=5)(1, {"loss": 9.0})
    assert not judge_of(plan, "another", seed=4)(1, {"loss": 9.0})
    assert judge_of(plan, "c", seed=4)(1, {"loss": 9.0})


def test_a_loss_that_is_not_finite_is_left_to_the_run(tmp_path):
    plan = plan_of(tmp_path, {"_target_": "optuna.pruners.ThresholdPruner", "upper": 0.0})
    assert not judge_of(plan, "c", seed=4)(1, {"loss": float("nan")})


def test_a_storage_that_is_gone_fails_the_run_with_the_reason(search, monkeypatch):
    from ablate.sweep.search import judge

    def gone(self):
        raise OSError("the storage is gone")

    monkeypatch.setattr(judge.Judge, "_open", gone)
    result = search(LR, *CURVE, *PRUNED, "hydra.sweeper.n_trials=1")
    assert result.code == 1
    assert "failed: OSError: the storage is gone" in " ".join(result.out.split())


def test_b9_the_wilcoxon_pruner_stops_a_trial_between_its_seeds(search):
    space = "optimizer.lr=choice(1e-2,1e-7,2e-2,1e-6)"
    wilcoxon = ["hydra/sweeper/pruner=wilcoxon", "hydra.sweeper.pruner.p_threshold=0.3", "hydra.sweeper.seeds=4"]
    result = search(space, *CURVE, *wilcoxon, "hydra/sweeper/sampler=grid")
    assert result.code == 0, result
    study = stored()
    pruned = [one for one in study.trials if one.state.name == "PRUNED"]
    # Of the two rates that train nothing at least the one that was tried after a good one is worse on every seed:
    # after two seeds the exact one-sided p is 1/4 < 0.3.
    assert pruned
    best = study.best_trial
    for one in pruned:
        assert sorted(one.intermediate_values) == [0, 1]
        assert all(one.intermediate_values[seed] > best.intermediate_values[seed] for seed in (0, 1))
        assert one.user_attrs["reason"] == "worse than the best trial on its seeds up to 1"
        statuses = [record.status for record in records() if record.cell == one.user_attrs["run"]["cell"]]
        assert statuses == [Status.finished] * 2
    folder = StudyFolder(Path("multirun/copy_repeat"))
    (sweep_id,) = folder.sweep_ids()
    plan = folder.read_sweep(sweep_id)
    assert [plan.seeds_of(one.user_attrs["run"]["cell"]) for one in pruned] == [[0, 1]] * len(pruned)
    assert plan.seeds_of(best.user_attrs["run"]["cell"]) == [0, 1, 2, 3]


def test_the_report_of_a_pruned_search_misses_no_seed_that_nobody_asked_for(search, capsys):
    from analysis.report import main as report

    for trials in (3, 5):  # in two calls: the second plan knows what the first one pruned
        search(LR, *CURVE, *PRUNED, f"hydra.sweeper.n_trials={trials}", "hydra.sweeper.seeds=2")
    report(["multirun/copy_repeat"])
    assert "missing" not in capsys.readouterr().out
    assert sum(record.status is Status.pruned for record in records()) > 0


@pytest.mark.parametrize(("seeds", "enough"), [(1, 5), (4, 5)])
def test_too_few_seeds_for_a_signed_rank_test_are_refused(search, seeds, enough):
    result = search(LR, "hydra/sweeper/pruner=wilcoxon", f"hydra.sweeper.seeds={seeds}")
    assert result.code == 2
    assert f"give hydra.sweeper.seeds={enough} or more" in result.err

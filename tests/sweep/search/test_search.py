"""A search from its command line to its best config, in this process."""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
import yaml

import ablate.job
import ablate.run
from ablate.records import RunFolder, RunRecord, Status, StudyFolder
from ablate.sweep import workers
from ablate.sweep.cells import Composer
from ablate.sweep.search import trials
from ablate.sweep.search.storage import close_storage, open_storage
from tests.sweep.search.conftest import LR, states, stored

STUDY = "multirun/copy_repeat"


def runs(path: str = STUDY) -> list[RunRecord]:
    return [record for folder in StudyFolder(Path(path)).runs() if (record := folder.read())]


def values(study) -> list[tuple[dict, list[float] | None]]:
    return [(one.params, one.values) for one in study.trials if "lost" not in one.user_attrs]


def test_a_search_over_numbers_choices_and_groups_records_runs_like_any_sweep(search, in_tmp):
    arguments = [LR, "attention=choice(rope,roper)", "hydra.sweeper.n_trials=3", "hydra.sweeper.seeds=2"]
    result = search(*arguments)
    assert result.code == 0, result
    study = stored()
    assert states(study) == ["complete"] * 3
    assert str(in_tmp / STUDY / "search/search.journal") in result.out
    folder = StudyFolder(in_tmp / STUDY)
    (sweep_id,) = folder.sweep_ids()
    plan = folder.read_sweep(sweep_id)
    assert len(plan.cells) == 3
    assert plan.seeds == [0, 1]
    assert not folder.cells_file(sweep_id).exists()
    for trial in study.trials:
        tied = trial.user_attrs["run"]
        records = [folder.run(tied["folder"], seed).read() for seed in (0, 1)]
        assert trial.value == pytest.approx(sum(record.metrics["eval/loss"] for record in records) / 2)
        assert {record.cell for record in records} == {tied["cell"]}
        assert records[0].factors == {
            "optimizer.lr": trial.params["optimizer.lr"],
            "attention": trial.params["attention"],
        }
    best = study.best_trial
    assert f"best: trial {best.number}, eval/loss {best.value:.4f}" in result.out
    written = yaml.safe_load((in_tmp / STUDY / "search/experiment/search.yaml").read_text())
    assert written["optimizer"]["lr"] == best.params["optimizer.lr"]
    assert written["defaults"][0] == {"override /attention": best.params["attention"]}


def test_the_best_config_trains_as_an_experiment_and_as_pasted_overrides_and_is_that_run(search, cli, in_tmp):
    out = search(LR, "attention=choice(rope,none)", "hydra.sweeper.n_trials=2").out
    pasted = out.splitlines()[[line.startswith("best: ") for line in out.splitlines()].index(True) + 1].split()
    dry = "sweep.dry_run=true"
    with_file = cli("--config-dir", str(in_tmp / STUDY / "search"), "experiment=search", dry)
    assert with_file.code == 0, with_file
    assert with_file.out == cli(*pasted, dry).out
    assert stored().best_trial.user_attrs["run"]["folder"] in with_file.out


def test_the_best_of_an_experiment_is_written_with_it(cli, in_tmp):
    small = ("training.steps=4", "training.eval_every=2", "evaluation.sequences=8", "model.width=8", "model.heads=2")
    command = ("-m", "hydra/launcher=basic", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=1")
    result = cli(*command, "experiment=copy_small", *small, LR, "attention=rope,none")
    assert result.code == 0, result
    (run,) = runs("multirun/copy_small")
    folder = str(in_tmp / "multirun/copy_small/search")
    assert run.cell[:8] in cli("--config-dir", folder, "experiment=search", "sweep.dry_run=true").out


def test_two_studies_do_not_share_a_search_by_accident(search):
    place = "hydra.sweeper.storage=sqlite:///both.db"
    assert search(LR, "hydra.sweeper.n_trials=1", place, "study=one").code == 0
    result = search(LR, "hydra.sweeper.n_trials=1", place, "study=two")
    assert result.code == 2
    assert "study: was one, now two" in result.err


def test_a_storage_that_opens_but_cannot_be_written_is_refused_in_one_line(search, in_tmp):
    close_storage(open_storage(f"sqlite:///{in_tmp}/only_read.db"))
    result = search(LR, f'hydra.sweeper.storage="sqlite+pysqlite:///file:{in_tmp}/only_read.db?mode=ro&uri=true"')
    assert result.code == 2, result
    assert "cannot be written" in result.err
    assert result.err.count("\n") == 1
    left = [path.name for path in (in_tmp / "multirun").rglob("*") if path.is_file()]
    assert left == [".search.turn"]  # what processes queue at to open the storage


def test_a_grid_point_whose_search_died_before_it_was_tied_is_tried_again(search, monkeypatch):
    grid = ["attention=rope,roper,none", "hydra/sweeper/sampler=grid", "hydra.sweeper.n_trials=3"]
    unchecked, calls = Composer.unchecked, []

    def dies(self, *arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return unchecked(self, *arguments)

    monkeypatch.setattr(Composer, "unchecked", dies)
    with contextlib.suppress(KeyboardInterrupt):
        search(*grid)
    monkeypatch.undo()
    search(*grid)
    done = [one.params["attention"] for one in stored().trials if one.state.name == "COMPLETE"]
    assert sorted(done) == ["none", "rope", "roper"]


def test_b4_the_same_command_goes_on_to_n_trials_in_total_and_finds_its_runs_again(search):
    search(LR, "hydra.sweeper.n_trials=2")
    before = {record.cell: record.started for record in runs()}
    result = search(LR, "hydra.sweeper.n_trials=4")
    assert "4 trials, 2 done" in result.out
    assert states(stored()) == ["complete"] * 4
    assert len(runs()) == 4
    assert before.items() <= {record.cell: record.started for record in runs()}.items()
    again = search(LR, "hydra.sweeper.n_trials=4")
    assert again.code == 0
    assert len(stored().trials) == 4


def test_the_same_seeded_search_twice_has_equal_trials_and_so_has_one_that_was_stopped(search):
    search(LR, "hydra.sweeper.n_trials=4", "study=one")
    search(LR, "hydra.sweeper.n_trials=2", "study=two")
    search(LR, "hydra.sweeper.n_trials=4", "study=two")
    one, two = (stored(f"multirun/{name}/search/search.journal") for name in ("one", "two"))
    assert values(one) == values(two)


def test_a_config_that_was_trained_before_is_not_trained_again(search, sweep):
    sweep("model.layers=1,2")
    before = {record.cell: record.started for record in runs()}
    search("model.layers=choice(1,2)", "hydra/sweeper/sampler=grid", "study=copy_repeat")
    assert {record.cell: record.started for record in runs()} == before
    assert states(stored()) == ["complete", "complete"]


def test_a_grid_ends_when_it_is_through(search):
    result = search("model.layers=choice(1,2)", "training.steps=range(5,8)", "hydra/sweeper/sampler=grid")
    assert len(stored().trials) == 6
    assert "note: the grid has 6 combinations" in result.out


def test_several_objectives_give_a_front(search):
    metric = "hydra.sweeper.metric=[eval/loss,parameters]"
    result = search("model.layers=choice(1,2,3)", metric, "hydra/sweeper/sampler=grid")
    assert result.code == 0, result
    assert "minimize eval/loss, minimize parameters" in result.out
    study = stored()
    assert len(study.directions) == 2
    assert result.out.count("on the front: trial") == len(study.best_trials) >= 1


def test_b9_lists_reach_the_model_as_lists_and_read_back_the_same(search, in_tmp):
    for sampler in ("tpe", "grid"):
        name = "optimizer.betas=choice([0.5,0.9],[0.8,0.9])"
        assert (
            search(name, f"hydra/sweeper/sampler={sampler}", "hydra.sweeper.n_trials=2", f"study={sampler}").code == 0
        )
        for folder in StudyFolder(in_tmp / "multirun" / sampler).runs():
            betas = yaml.safe_load(folder.config.read_text())["optimizer"]["betas"]
            assert betas in ([0.5, 0.9], [0.8, 0.9])
            assert folder.read().factors["optimizer.betas"] == betas


# what goes wrong ------------------------------------------------------------------------------------------------------


def outcomes(monkeypatch, ends: dict[int, dict]) -> None:
    """Instead of training, leave a record: trial k (by order) ends as told, the others with an accuracy of 1 + k."""
    count = iter(range(100))

    def perform(config, values, folder: RunFolder, context, on_log=None):
        number = next(count)
        told = ends.get(number, {"status": Status.finished, "metrics": {"eval/accuracy": 1.0 + number}})
        if told.get("status") is None:
            raise RuntimeError("raised on purpose")
        record = RunRecord(
            study=config.study,
            cell=ablate.job.cell_identity(values),
            label=context.label,
            factors=context.factors,
            seed=config.seed,
            sweep=context.sweep,
            **told,
        )
        folder.write(record)
        return ablate.job.Done(record, trained=True)

    monkeypatch.setattr(ablate.job, "perform", perform)


ACCURACY = ("hydra.sweeper.metric=eval/accuracy", "hydra.sweeper.direction=minimize")
BAD = {
    2: {"status": Status.finished, "metrics": {"eval/accuracy": float("nan")}},
    3: {"status": None},
    4: {"status": Status.finished, "metrics": {"eval/accuracy": float("inf")}},
    5: {"status": Status.failed, "error": {"type": "ValueError", "message": "no"}},
    6: {"status": Status.finished, "metrics": {"eval/accuracy": None}},
}


@pytest.mark.parametrize("storage", ["null", "sqlite:///trials.db"])
def test_b2_bad_trials_are_failed_with_the_reason_and_all_are_attempted(search, monkeypatch, storage):
    outcomes(monkeypatch, BAD)
    result = search(LR, "hydra.sweeper.n_trials=8", f"hydra.sweeper.storage={storage}", *ACCURACY)
    assert result.code == 1
    study = stored() if storage == "null" else stored("sqlite:///trials.db")
    assert states(study) == ["complete"] * 2 + ["fail"] * 5 + ["complete"]
    reasons = [one.user_attrs.get("reason", "") for one in study.trials]
    assert all(reasons[2:7])
    assert "RuntimeError: raised on purpose" in reasons[3]
    assert "ValueError: no" in reasons[5]
    assert study.best_trial.number == 0
    assert "best: trial 0, eval/accuracy 1.0000" in result.out


def test_b2_the_allowance_of_failures_is_the_users(search, monkeypatch):
    outcomes(monkeypatch, BAD)
    result = search(LR, "hydra.sweeper.n_trials=8", "hydra.sweeper.max_failure_rate=0.25", *ACCURACY)
    assert result.code == 1
    assert "3 trials failed (hydra.sweeper.max_failure_rate=0.25)" in " ".join(result.out.split())
    assert len(stored().trials) == 5


def test_a_search_ends_after_its_time(search):
    result = search(LR, "hydra.sweeper.n_trials=50", "hydra.sweeper.timeout=0.1")
    assert result.code == 0
    assert len(stored().trials) == 1
    assert "hydra.sweeper.timeout=0.1 seconds are over" in " ".join(result.out.split())


def test_values_that_do_not_fit_together_fail_with_the_reason(search):
    result = search("model.width=choice(8,9)", "model.heads=choice(2,3)", "hydra/sweeper/sampler=grid")
    assert result.code == 1
    study = stored()
    assert sorted(states(study)) == ["complete", "complete", "fail", "fail"]
    assert all("model.width" in one.user_attrs["reason"] for one in study.trials if one.state.name == "FAIL")


def test_b5_a_changed_space_is_refused_before_anything_runs(search):
    search("attention=choice(rope,roper)", "hydra.sweeper.n_trials=1")
    result = search("attention=choice(rope,roper,none)", "hydra.sweeper.n_trials=2")
    assert result.code == 2
    assert "attention: was choice(rope,roper), now choice(rope,roper,none)" in result.err
    assert "study_name" in result.err
    assert len(runs()) == 1


def killed(arguments: list[str], runs_begun: int) -> None:
    """Search in a forked process and kill it as soon as so many runs have begun."""
    child = os.fork()
    if child == 0:
        sys.argv[1:] = arguments
        ablate.run.main()
        os._exit(0)
    end = time.monotonic() + 60
    while len([folder for folder in StudyFolder(Path(STUDY)).runs() if folder.metrics.exists()]) < runs_begun:
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_b5_killed_in_every_trial_the_search_ends_as_if_undisturbed(search, tiny, in_tmp):
    length = ["training.steps=200", "training.log_every=5"]
    asked = [LR, "hydra.sweeper.n_trials=6", "hydra.sweeper.seeds=2", *length]
    search(*asked, "study=undisturbed")
    for number in range(6):  # in the first seed of one trial, in the second of the next
        begun = 2 * number + 1 + number % 2
        killed(["-m", "hydra/launcher=basic", "hydra/sweeper=optuna", *tiny, *asked], begun)
    result = search(*asked)
    assert result.code == 0, result
    study = stored()
    assert values(study) == values(stored("multirun/undisturbed/search/search.journal"))
    assert states(study).count("lost") == len(study.trials) - 6
    assert states(study).count("complete") == 6
    assert [record.status for record in runs()] == [Status.finished] * 12
    assert not list((in_tmp / STUDY).rglob("*.lock"))


def test_ctrl_c_ends_the_search_and_the_same_command_continues_to_the_same_trials(search, monkeypatch):
    search(LR, "hydra.sweeper.n_trials=3", "study=undisturbed")
    real, calls = ablate.job.perform, iter(range(100))

    def interrupted(*arguments, **options):
        if next(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(ablate.job, "perform", interrupted)
    result = search(LR, "hydra.sweeper.n_trials=3")
    assert result.code == 130, result
    assert states(stored()) == ["complete", "lost", "waiting"]
    assert search(LR, "hydra.sweeper.n_trials=3").code == 0
    assert values(stored()) == values(stored("multirun/undisturbed/search/search.journal"))


def test_a_trial_of_a_search_that_goes_on_is_left_alone(tmp_path):
    from ablate import locks
    from ablate.records import PlannedCell
    from ablate.sweep.search.storage import open_storage, open_study

    folder = StudyFolder(tmp_path)
    study = open_study(open_storage(str(folder.search_journal("search"))), "search", ["minimize"], {})
    trial = study.ask()
    trials.tie(trial, "other", PlannedCell(cell="c", label="l", factors={}, folder="f", overrides=[]))
    folder.sweeps_path.mkdir()
    with locks.hold(folder.sweep_lock("other")):
        assert trials.reclaim(study, folder) == []
        assert len(trials.counted(study)) == 1
    assert trials.reclaim(study, folder) == [0]
    assert trials.counted(study) == []
    assert states(study) == ["lost", "waiting"]


@pytest.mark.parametrize("pruned", [(), ("hydra/sweeper/pruner=wilcoxon", "seed=range(7)")])
def test_a_trial_that_another_machine_took_over_is_told_as_lost_and_tried_again(search, monkeypatch, pruned):
    """As when this machine slept longer than a lock lasts."""
    real, calls = ablate.job.perform, iter(range(100))

    def asleep(*arguments, **options):
        done = real(*arguments, **options)
        if next(calls) == 0:
            study = stored()
            trials.lose(study, study.trials[0], "its process ended before it was done")
        return done

    monkeypatch.setattr(ablate.job, "perform", asleep)
    result = search(LR, "hydra.sweeper.n_trials=2", *pruned)
    assert result.code == 0, result
    assert "Traceback" not in result.out + result.err
    assert "trial 0 lost" in result.out
    assert states(stored()) == ["lost", "complete", "complete"]
    assert stored().trials[1].params == stored().trials[0].params


def test_a_search_whose_launcher_begins_nothing_is_refused_and_leaves_no_plan(search, monkeypatch):
    def broken(*arguments, **options):
        raise RuntimeError("no such partition")

    with monkeypatch.context() as patched:
        patched.setattr(workers, "prepare", lambda launcher, stop_file: setattr(launcher, "launch", broken))
        result = search(LR, "hydra.sweeper.n_trials=2")
    assert result.code == 2, result
    assert "no run began, the launcher failed: RuntimeError: no such partition" in result.err
    assert not list(Path(STUDY, "sweeps").iterdir())
    assert states(stored())[0] == "running"  # until the same command reclaims it
    assert search(LR, "hydra.sweeper.n_trials=2").code == 0
    assert states(stored()).count("complete") == 2


def test_plans_and_records_of_a_search_are_strict_json(search, in_tmp):
    search(LR, "hydra.sweeper.n_trials=1")
    for file in (in_tmp / STUDY).rglob("*.json"):
        json.loads(file.read_text(), parse_constant=pytest.fail)


def test_a_storage_that_fails_on_the_way_ends_the_search_in_one_line_and_the_same_command_goes_on(search, monkeypatch):
    from optuna.storages.journal import JournalFileBackend

    real, writes = JournalFileBackend.append_logs, iter(range(1000))

    def full(self, logs):
        if next(writes) > 14:
            raise OSError(28, "No space left on device")
        return real(self, logs)

    with monkeypatch.context() as broken:
        broken.setattr(JournalFileBackend, "append_logs", full)
        result = search(LR, "hydra.sweeper.n_trials=4")
    assert result.code == 1
    assert "the search cannot go on: OSError: [Errno 28] No space left on device" in result.out
    assert "Traceback" not in result.out + result.err
    began = len(runs())
    assert 0 < began < 4
    assert search(LR, "hydra.sweeper.n_trials=4").code == 0
    assert states(stored()).count("complete") == 4
    assert len(runs()) == 4


def test_a_search_with_cmaes_ends_with_a_best_config(search):
    pytest.importorskip("cmaes")
    result = search(LR, "model.dropout=interval(0,0.5)", "hydra/sweeper/sampler=cmaes", "hydra.sweeper.n_trials=4")
    assert result.code == 0, result
    assert states(stored()) == ["complete"] * 4

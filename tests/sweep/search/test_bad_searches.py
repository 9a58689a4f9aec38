"""What cannot be searched is refused in one line with exit code 2, before anything is written."""

import pytest

from tests.sweep.search.conftest import LR

BAD = [
    (["hydra/sweeper/sampler=tpee", LR], "hydra/sweeper/sampler=tpee: no such option"),
    (["hydra.sweeper.sampler=tpe", LR], "write hydra/sweeper/sampler=tpe"),
    (["hydra.sweeper.sampler.sed=1", LR], "hydra.sweeper.sampler.sed: no such key; did you mean"),
    (["+hydra.sweeper.sampler.sed=1", LR], "did you mean seed"),
    (["hydra.sweeper.n_trial=3", LR], "hydra.sweeper.n_trial: no such key; did you mean hydra.sweeper.n_trials?"),
    (["hydra.sweeper.n_trials=many", LR], "hydra.sweeper.n_trials='many'"),
    (["hydra.sweeper.direction=minimise", LR], "hydra.sweeper.direction=minimise: did you mean minimize?"),
    (["direction=maximize", LR], "direction=maximize: no such key; did you mean hydra.sweeper.direction?"),
    (["n_trials=30", LR], "n_trials=30: no such key; did you mean hydra.sweeper.n_trials?"),
    (["+direction=maximize", LR], "direction: no such key"),
    (["attention=rope"], "nothing to search"),
    (["optimizer.lr=interval(1,0.1)"], "write 'optimizer.lr=interval(0.1,1)'"),
    (["optimizer.lr=tag(log,interval(0,1))"], "a logarithmic interval must begin above 0"),
    (["hydra.sweeper.storage=sqlite:////nowhere/x.db", LR], "cannot be opened"),
    (["optimizer.lrr=interval(0,1)"], "did you mean optimizer.lr?"),
    (["rope_percentage=interval(0.5,2)"], "rope_percentage=2.0: must lie between 0 and 1"),
    (["model.layers=interval(1,3)"], "model.layers=1.0"),
    (["attention=choice(rope,ropr)"], "attention=ropr: no such option"),
    ([LR, "optimizer.lr=1e-3"], "optimizer.lr: given twice"),
    (["optimizer.lr=tag(log,choice(1e-3,1e-2))"], "log says nothing of a choice; use interval or range"),
    (["model.layers=range(8,1,-1)"], "no value in it; write range(lowest,stop)"),
    (["seed=0,1", "hydra.sweeper.seeds=2", LR], "seed= names the seeds already"),
    (["sweep.until=decided", LR], "sweep.until=decided"),
    (["hydra.sweeper.metric=eval/los", LR], "did you mean eval/loss?"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_a_bad_search_is_refused_before_anything_runs(search, in_tmp, arguments, message):
    result = search(*arguments)
    assert result.code == 2, result
    assert message in result.err
    assert "Traceback" not in result.err
    assert not list(in_tmp.iterdir())


def test_a_search_over_tasks_needs_a_study_of_its_own(cli):
    result = cli("-m", "hydra/launcher=basic", "hydra/sweeper=optuna", "task=choice(copy_repeat,parity)")
    assert result.code == 2
    assert "name one with study=NAME" in result.err


def test_an_interval_without_a_search_names_the_sweeper(sweep):
    result = sweep(LR)
    assert result.code == 2
    assert "hydra/sweeper=optuna" in result.err


def test_a_dry_run_says_what_it_would_search_and_writes_nothing(search, in_tmp):
    result = search(LR, "sweep.dry_run=true")
    assert result.code == 0
    assert "optimizer.lr: tag(log,interval(0.0001,0.01))" in result.out
    assert "minimize eval/loss; sampler TPESampler(seed=0" in result.out
    assert not list(in_tmp.iterdir())


def test_b7_what_is_in_effect_is_printed_and_what_is_not_repeatable_is_said(search):
    arguments = ["sweep.dry_run=true", "hydra.sweeper.n_jobs=2", "hydra.sweeper.sampler.seed=null"]
    out = " ".join(search(LR, *arguments).out.split())
    assert "2 at a time through BasicLauncher" in out
    assert "without hydra.sweeper.sampler.seed the same search asks for other trials" in out
    assert "the same trials come again with n_jobs=2 only" in out


def test_a_search_of_two_at_a_time_repeats_with_two_at_a_time(search):
    from tests.sweep.search.conftest import stored

    for name in ("one", "two"):
        search(LR, "hydra.sweeper.n_trials=3", "hydra.sweeper.n_jobs=2", f"study={name}")
    one, two = (stored(f"multirun/{name}/search/search.journal") for name in ("one", "two"))
    assert [trial.params for trial in one.trials] == [trial.params for trial in two.trials]


def test_options_of_a_sampler_beyond_its_yaml_can_be_added(search):
    result = search(LR, "+hydra.sweeper.sampler.n_ei_candidates=8", "sweep.dry_run=true")
    assert "n_ei_candidates=8" in result.out

"""Settings of files are obeyed or refused, seeds are no hyper-parameters, and advice works when it is followed."""

import re
from pathlib import Path

import pytest

from ablate.tune import translate
from tests.config.test_bad_input import followed

OPTUNA = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=2"]
DRY = "sweep.dry_run=true"


def experiment(name, text):
    folder = Path("mine/experiment")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(f"# @package _global_\n{text}")


def mine(cli, *arguments):
    return cli(*arguments, "--config-dir", "mine", DRY)


# What a file sets


@pytest.mark.parametrize("named", ["exp_a", "exp_a,exp_b", "choice(exp_a,exp_b)", "glob(exp_*)"])
def test_w12_params_of_a_file_are_swept_alone_and_where_the_file_is_swept(cli, in_tmp, named):
    params = "hydra:\n  sweeper:\n    params:\n      seed: range(3)\n      model.width: 32,64\n"
    experiment("exp_a", f"training:\n  steps: 3\n{params}")
    experiment("exp_b", f"training:\n  steps: 4\n{params}")
    result = mine(cli, "-m", f"experiment={named}")
    cells = 2 if named == "exp_a" else 4
    assert (result.code, f"{cells} cells x 3 seeds = {3 * cells} runs" in result.out) == (0, True), result


def test_w12_the_command_line_wins_over_params_of_a_file(cli, in_tmp):
    experiment("a", "hydra:\n  sweeper:\n    params:\n      seed: range(3)\n")
    assert "1 cell x 2 seeds = 2 runs" in mine(cli, "-m", "experiment=a", "seed=7,8").out
    assert mine(cli, "experiment=a").code == 0


def test_w12_a_config_of_the_users_own_may_hold_params(cli, in_tmp):
    Path("mine").mkdir()
    text = "defaults:\n  - config\n  - _self_\n  - override hydra/launcher: basic\n"
    Path("mine/own.yaml").write_text(f"{text}hydra:\n  sweeper:\n    params:\n      seed: 0,1,2\n")
    result = mine(cli, "-m", "--config-name", "own")
    assert (result.code, "1 cell x 3 seeds = 3 runs" in result.out) == (0, True), result


LAUNCHER = "defaults:\n  - override /hydra/launcher: basic\nhydra:\n  sweeper:\n    params:\n      seed: 0,1\n"
SHOWN = ["-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=1", "optimizer.lr=1e-3,1e-2"]


@pytest.mark.parametrize("files", ["a", "a,b"])
def test_w12_a_launcher_that_files_name_is_the_one_that_launches(cli, in_tmp, files):
    experiment("a", "defaults:\n  - override /hydra/launcher: basic\n")
    experiment("b", "defaults:\n  - a\n")
    assert "through BasicLauncher" in mine(cli, *SHOWN, f"experiment={files}").out
    assert "through JoblibLauncher" in mine(cli, *SHOWN, f"experiment={files}", "hydra/launcher=local").out


def test_w12_an_option_of_a_launcher_in_swept_files_is_obeyed(cli, in_tmp):
    for name in "ab":
        experiment(name, "hydra:\n  launcher:\n    n_jobs: zero\n")
    result = mine(cli, "-m", "experiment=a,b")
    assert (result.code, "hydra.launcher.n_jobs" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (LAUNCHER, "study: x\n", "hydra/launcher: .* basic in experiment=a, unset in experiment=b"),
        (
            LAUNCHER,
            LAUNCHER.replace("0,1", "2"),
            "hydra.sweeper.params.seed: .* 0,1 in experiment=a, 2 in experiment=b",
        ),
        ("hydra:\n  launcher:\n    n_jobs: 1\n", "hydra:\n  launcher:\n    n_jobs: 2\n", "n_jobs: .* 1 in .* 2 in"),
        ("runtime:\n  threads: 2\n", "runtime:\n  threads: 1\n", "runtime.threads: .* 2 in experiment=a, 1 in experi"),
        (
            "sweep:\n  margin: 0.1\n",
            "sweep:\n  margin: 0.2\n",
            "sweep.margin: holds for a whole sweep, .*: 0.1 with experiment=a, 0.2 with experiment=b; give",
        ),
        (
            "sweep:\n  metric: eval/accuracy\n",
            "training:\n  steps: 4\n",
            "sweep.metric: .* eval/loss with experiment=b",
        ),
    ],
)
def test_w12_swept_files_that_differ_in_what_holds_for_the_sweep_are_refused_by_name(cli, in_tmp, one, other, message):
    experiment("a", one)
    experiment("b", other)
    result = mine(cli, "-m", "experiment=a,b")
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert re.search(message, result.err), result.err
    assert not Path("multirun").exists()


def test_w12_what_the_command_line_gives_is_no_difference_between_files(cli, in_tmp):
    experiment("a", "sweep:\n  margin: 0.1\nhydra:\n  launcher:\n    n_jobs: 1\ntraining:\n  steps: 3\n")
    experiment("b", "sweep:\n  margin: 0.2\n")
    given = ["sweep.margin=0.3", "hydra.launcher.n_jobs=1"]
    assert mine(cli, "-m", "experiment=a,b", *given).code == 0


def test_w12_files_may_differ_in_what_is_a_runs_own(cli, in_tmp):
    for name, steps in (("a", 3), ("b", 4)):
        experiment(name, f"runtime:\n  checkpoint_every: {steps}\ntraining:\n  steps: {steps}\n")
    assert "2 cells" in mine(cli, "-m", "experiment=a,b").out


# Seeds are repeats


@pytest.mark.parametrize(
    ("argument", "advice"),
    [
        ("seeds.init=range(5)", "hydra.sweeper.seeds=5"),
        ("evaluation.seed=range(4)", "hydra.sweeper.seeds=4"),
        ("seeds.data=0,1", "hydra.sweeper.seeds=2"),
        ("seeds.dropout=choice(1,2,3)", "hydra.sweeper.seeds=3"),
        ("seeds.init=interval(0,5)", "hydra.sweeper.seeds=5"),
        ("evaluation.seed=int(interval(0,5))", "hydra.sweeper.seeds=5"),
        ("+task.split_seed=0,1", "hydra.sweeper.seeds=2"),
        ("+model.initSeed=0,1", "hydra.sweeper.seeds=2"),
        ('+hydra.sweeper.params.seeds.init="range(5)"', "hydra.sweeper.seeds=5"),
    ],
)
def test_w13_a_seed_is_no_hyper_parameter_of_a_search(cli, argument, advice):
    result = cli("-m", *OPTUNA, "optimizer.lr=1e-3,1e-2", argument, DRY)
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert re.search(rf"a seed is no hyper-parameter.*give {re.escape(advice)}$", result.err), result.err
    assert "seeds 0, 1" in cli("-m", *OPTUNA, "optimizer.lr=1e-3,1e-2", advice, DRY).out


@pytest.mark.parametrize("argument", ["seeds.init=range(5)", "seeds.init=0,1", "evaluation.seed=interval(0,5)"])
def test_w13_nor_of_a_tuning(cli, argument):
    result = cli(*translate(["attention=rope,roper", "optimizer.lr=choice(1e-3,1e-2)", argument, DRY]))
    assert (result.code, "a seed is no hyper-parameter" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("int(interval(0,5))", "range(0,6)"),
        ("interval(2,4)", "range(2,5)"),
        ("interval(0.5,3.2)", "range(1,4)"),
        ("tag(log,interval(1,3))", "range(1,4)"),
        ("interval(-2,1)", "range(0,2)"),
    ],
)
@pytest.mark.parametrize("sweeper", [[], OPTUNA])
def test_w13_seeds_are_listed_and_not_drawn(cli, sweeper, value, expected):
    result = cli("-m", *sweeper, "optimizer.lr=1e-3,1e-2", f"seed={value}", DRY)
    assert result.err == f"ablate: seed={value}: seeds are listed, not drawn; write 'seed={expected}'\n"
    assert cli("-m", *sweeper, "optimizer.lr=1e-3,1e-2", f"seed={expected}", DRY).code == 0


# Advice


PROPOSED = [
    ["-m", "training.grad_clip=choice(null,1.0)"],
    ["training.grad_clip=choice(null,1.0)"],
    ["-m", *OPTUNA, "training.grad_clip=choice(null,1.0)"],
    ["-m", "attention=rope,"],
    ["attention=rope,"],
    ["-m", "attention=,rope"],
    ["-m", "attention=rope,,roper"],
    ["seed=[0,1,2]"],
    ["-m", "seed=[0, 1, 2]"],
    ["-m", "seed=range(3"],
    ["-m", "seed=rang(3)"],
    ["-m", "seed=range(3)'"],
    ['"seed=range(3)"'],
    ["'attention=rope'"],
    ["attention:rope"],
    ["optimizer.lr=1e-3;3e-3"],
    ["-m", "optimizer.lr=1e-3;3e-3"],
    ["optimizer.lr=1e-3,"],
    ["training.steps=1e3"],
    ["-m", "seed=1-5"],
    ["seed=0..4"],
    ["runtime.note=it's"],
    ["runtime.note=50% rope #1"],
    ["study=a b"],
    ['study="a'],
    ["seed=0,1"],
    ["model.width=choice(32)"],
    ["-m", "seed=0,1", "--cfg", "job"],
    ["--attention=rope"],
    ["--seed=3"],
    ["-m", *OPTUNA, "optimizer.lr=interval(1e-2,1e-3)"],
    ["-m", *OPTUNA, "optimizer.lr=tag(log,interval(1e-2,1e-3))"],
    ["-m", *OPTUNA, "training.steps=tag(log,int(interval(1.5,9)))"],
    ["-m", *OPTUNA, "training.steps=int(interval(1.5,3.2))"],
    ["-m", *OPTUNA, "optimizer.lr=loguniform(1e-4,1e-2)"],
    ["-m", *OPTUNA, "optimizer.lr=uniform(1e-4,1e-2)"],
    ["-m", *OPTUNA, "optimizer.lr=tag(log,interval(1e-4,1e-2)"],
]

RULES = [
    (["-m", "optimizer.lr=choice()"], "choice(a,b) needs values"),
    (["-m", "model.attention.base=choice(null,1.0)"], "choice(a,b) needs values"),
    (["-m", *OPTUNA, "optimizer.lr=interval(1e-4)"], "interval(low,high) needs two numbers"),
    (["-m", *OPTUNA, "optimizer.lr=interval(1e-3,1e-3)"], "both ends are the same"),
    (["-m", *OPTUNA, "training.steps=int(interval(1.2,2.5))"], "must be whole numbers"),
    (["-m", "seed=range()"], "range(stop), range(start,stop)"),
    (["-m", "optimizer.lr=tag(log)"], "tag(log,interval(low,high)) needs an interval"),
    (["-m", "attention=glob("], "glob"),
    (["optimizer.lr={a}"], "give one value"),
    (["model.width=32,33"], "several values need -m"),
    (["--config-path", "x"], "--config-path x: would leave out"),
    (["--config-path=x"], "--config-dir"),
    (["-m", "seed=0,1", "--info"], "--info: not together with --multirun"),
    (["--cfg", "jobs"], "did you mean job?"),
    (["--config-dir", "nope"], "no such folder"),
    (["--resolve"], "has no effect without --cfg job"),
    (["--package", "model"], "has no effect without --cfg job"),
    (["--mutlirun", "seed=0,1"], "did you mean --multirun?"),
    (["--multi", "seed=0,1"], "did you mean --multirun?"),
    (["-M", "seed=0,1"], "did you mean -m?"),
    (["--frobnicate"], "no such option"),
    (["--shell-completion"], "needs one of install=bash"),
    (["+experiment=copy_small"], "write it without +"),
    (["task="], "no such option; valid: addition"),
    (["~attention"], "model.attention: missing"),
    (["-m", "attention=rope", ",roper"], "not understood"),
]


def name_of(arguments):
    return " ".join(arguments)


@pytest.mark.parametrize("arguments", PROPOSED, ids=name_of)
def test_w23_what_a_message_proposes_is_accepted(cli, arguments):
    result = cli(*arguments)
    assert (result.code, len(result.err.splitlines())) == (2, 1), result
    command = followed(arguments, result.err.strip())
    assert command is not None, result.err
    again = cli(*command, *([] if DRY in command else [DRY]))
    assert again.code == 0, (result.err, command, again)


@pytest.mark.parametrize(
    ("arguments", "rule"), RULES, ids=lambda value: name_of(value) if isinstance(value, list) else ""
)
def test_w23_where_nothing_can_be_proposed_the_rule_is_given(cli, arguments, rule):
    result = cli(*arguments)
    assert (result.code, len(result.err.splitlines())) == (2, 1), result
    assert rule in result.err
    assert followed(arguments, result.err.strip()) is None, result.err
    assert not list(Path.cwd().iterdir())


def test_w23_a_command_that_is_proposed_keeps_the_options_that_were_given(cli, in_tmp):
    experiment("a", "training:\n  steps: 3\n")
    result = cli("--config-dir", "mine", "experiment=a", "seed=range(3)")
    command = followed([], result.err.strip())
    assert "mine" in command
    assert "3 seeds = 3 runs" in cli(*command, DRY).out

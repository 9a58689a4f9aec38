"""`python -m ablate.tune`: equal searches, fresh seeds, resumed as a whole, refused in one line."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra

from ablate import tune
from ablate.config.errors import ConfigError
from ablate.records import StudyFolder
from ablate.sweep.tuning.question import TuneSettings, read_question, with_default_space
from tests.conftest import ROOT, Result
from tests.sweep.search.conftest import stored

STUDY = Path("multirun/copy_repeat")
VARIANTS = "attention=rope,none"
SMALL = ("budget=3", "seeds=2", "report_seeds=3")


@pytest.fixture
def tuning(in_tmp: Path, tiny: list[str], capsys, monkeypatch) -> Callable:
    """Run a tiny tuning in this process, in an empty folder."""

    def command(*arguments: str) -> Result:
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", ["ablate.tune", *arguments])
        code = 0
        try:
            tune.main([*arguments, "hydra/launcher=basic", *tiny])
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return command


def state(name: str = "tune") -> dict:
    return json.loads((STUDY / "tuning" / f"{name}.json").read_text())


def trials_of(variant: str):
    return stored(STUDY / "search" / f"tune-{variant}.journal", f"tune-{variant}").trials


def test_every_variant_gets_the_same_search_and_meets_the_others_on_fresh_seeds(tuning):
    result = tuning(VARIANTS, *SMALL)
    assert result.code == 0, result
    rope, none = trials_of("rope"), trials_of("none")
    assert len(rope) == len(none) == 3
    assert rope[0].params == none[0].params  # the same sampler with the same seed begins alike
    known, folder = state(), StudyFolder(STUDY)
    plan = folder.read_sweep(known["report_sweep"])
    assert [cell.label for cell in plan.cells] == ["rope", "none"]
    assert plan.seeds == [0, 1, 2]
    for variant, trials, cell in zip(known["variants"], (rope, none), plan.cells, strict=True):
        best = min(trials, key=lambda one: one.value)
        assert variant["chosen"] == best.params
        assert variant["score"] == best.value
        assert f"optimizer.lr={best.params['optimizer.lr']}" in cell.overrides
        assert all(folder.run(cell.folder, seed).read().metrics["eval/loss"] for seed in plan.seeds)
    tuned = {record.seed for run in folder.runs() if (record := run.read()) and record.sweep != plan.id}
    assert tuned == {1000, 1001}
    assert known["evaluation_seeds"]["report"] == known["evaluation_seeds"]["tuning"] + 1
    assert all(f"evaluation.seed={known['evaluation_seeds']['report']}" in cell.overrides for cell in plan.cells)
    assert "where chosen" in result.out


def test_the_same_command_again_trains_nothing_and_says_the_same(tuning):
    first = tuning(VARIANTS, *SMALL)
    before = {run.path: run.read().started for run in StudyFolder(STUDY).runs()}
    sweeps = StudyFolder(STUDY).sweep_ids()
    again = tuning(VARIANTS, *SMALL)
    assert again.code == 0
    assert {run.path: run.read().started for run in StudyFolder(STUDY).runs()} == before
    assert StudyFolder(STUDY).sweep_ids() == sweeps
    assert again.out.splitlines()[-6:] == first.out.splitlines()[-6:]


def test_the_report_compares_the_fresh_seeds_only(tuning, capsys):
    from analysis.report import main as report

    tuning(VARIANTS, *SMALL)
    assert report([str(STUDY)]) == 0
    capsys.readouterr()
    variants = json.loads((STUDY / "report/comparison.json").read_text())["variants"]
    assert [(one["label"], one["n_ok"]) for one in variants] == [("rope", 3), ("none", 3)]


def test_a_variant_without_a_finished_trial_is_told_and_the_others_go_on(tuning, monkeypatch):
    import ablate.job

    train = ablate.job.train

    def no_scheme_fails(parts, config, *arguments, **options):
        if config.model["attention"]["_target_"].endswith("NoPosition"):
            raise RuntimeError("broken scheme")
        return train(parts, config, *arguments, **options)

    monkeypatch.setattr(ablate.job, "train", no_scheme_fails)
    result = tuning("attention=rope,roper,none", *SMALL)
    assert result.code == 1
    assert [one["chosen"] is None for one in state()["variants"]] == [False, False, True]
    assert "none finished" in result.out
    plan = StudyFolder(STUDY).read_sweep(state()["report_sweep"])
    assert [cell.label for cell in plan.cells] == ["rope", "roper"]
    assert tuning("attention=rope,roper,none", *SMALL).code == 1


def test_a_storage_that_fails_ends_the_tuning_before_anything_is_compared(tuning, monkeypatch):
    from optuna.storages.journal import JournalFileBackend

    real, writes = JournalFileBackend.append_logs, iter(range(1000))

    def full(self, logs):
        if next(writes) > 18:
            raise OSError(28, "No space left on device")
        return real(self, logs)

    with monkeypatch.context() as broken:
        broken.setattr(JournalFileBackend, "append_logs", full)
        result = tuning(VARIANTS, *SMALL)
    assert result.code == 1
    assert "the search cannot go on: OSError" in result.out
    assert state()["report_sweep"] is None
    assert not all(one["done"] for one in state()["variants"])
    assert tuning(VARIANTS, *SMALL).code == 0
    assert all(one["trials"] == {"finished": 3} for one in state()["variants"])


def test_a_killed_tuning_goes_on_where_it_was(tuning, in_tmp, tiny):
    """Killed in the second variant's search; what comes of it equals an undisturbed tuning."""
    arguments = [sys.executable, "-m", "ablate.tune", VARIANTS, *SMALL, "hydra/launcher=basic", *tiny]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "COLUMNS": "160"}
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    second = STUDY / "search" / "tune-none.journal"
    until = time.monotonic() + 60
    while not second.exists() and time.monotonic() < until and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert second.exists()
    result = tuning(VARIANTS, *SMALL)
    assert result.code == 0, result
    interrupted = [(one["label"], one["chosen"], one["score"], one["trials"]) for one in state()["variants"]]
    tuning(VARIANTS, *SMALL, "study=undisturbed")
    straight = json.loads(Path("multirun/undisturbed/tuning/tune.json").read_text())["variants"]
    assert interrupted == [(one["label"], one["chosen"], one["score"], one["trials"]) for one in straight]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["attention=rope"], "no variants: name what is compared"),
        ([VARIANTS, "seeds=[3]", "report_seeds=5"], "seed 3 is one of hydra.sweeper.seeds too"),
        ([VARIANTS, "report_seeds=1"], "one seed shows no spread"),
        ([VARIANTS, "budget=0"], "n_trials=0: must be at least 1"),
        ([VARIANTS, "seed=range(3)"], "a tuning has seeds=... to choose on"),
        ([VARIANTS, "optimizer.lr=interval(1e-2,1e-4)"], "the first end must be below the second"),
        ([VARIANTS, "hydra.sweeper.metric=[eval/loss,seconds]"], "chooses by one metric"),
        ([VARIANTS, "hydra.sweeper.timeout=5"], "timeout=5: would end one variant's search before another's"),
        ([VARIANTS, "hydra.sweeper.max_failure_rate=0.5"], "max_failure_rate=0.5: would end one variant's search"),
        ([VARIANTS, "bugdet=3"], "bugdet=3: no such option; did you mean budget?"),
        (["optimizer.lr=1e-3,1e-2"], "optimizer.lr: the variants begin with different ones"),
        (["model.layers=1,2", "model.layers=range(1,3)"], "model.layers: given twice"),
        (["attention=rope,ropr"], "did you mean rope"),
        ([VARIANTS, "model.attention.base=interval(10,1000)"], "none: "),
        ([VARIANTS, "name=../x"], "letters, digits"),
        ([VARIANTS, "report_seeds=[-1,2]"], "report_seeds"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_written(tuning, in_tmp, arguments, message):
    result = tuning(*arguments)
    assert result.code == 2, result
    assert message in result.err
    assert not list(in_tmp.iterdir())


def test_variants_that_belong_to_several_studies_are_refused(cli, in_tmp):
    result = cli("-m", "hydra/sweeper=tune", "task=copy,copy_repeat")
    assert result.code == 2
    assert "these variants belong to several studies; name one with study=NAME" in result.err
    assert not list(in_tmp.iterdir())


def test_a_fixed_value_that_changed_in_a_config_of_the_search_is_refused_too(tuning):
    params = "+hydra.sweeper.params={optimizer.lr: 'interval(1e-3,1e-2)', training.grad_clip: %s}"
    assert tuning(VARIANTS, *SMALL, params % "1.0").code == 0
    result = tuning(VARIANTS, *SMALL, params % "0.001")
    assert result.code == 2
    assert "training.grad_clip: was 1.0, now 0.001" in result.err


def test_another_command_under_the_same_name_is_refused_naming_what_differs(tuning):
    tuning(VARIANTS, *SMALL)
    result = tuning(VARIANTS, "budget=4", *SMALL[1:])
    assert result.code == 2
    assert "(budget): was 3, now 4" in result.err
    other = tuning("attention=rope,roper", *SMALL)
    assert "variants: was rope, none, now rope, roper" in other.err


def test_a_dry_run_writes_nothing(tuning, in_tmp):
    result = tuning(VARIANTS, *SMALL, "sweep.dry_run=true")
    assert result.code == 0
    assert "2 variants x 3 trials x 2 seeds" in result.out
    assert not list(in_tmp.iterdir())


def test_without_arguments_and_with_help(capsys):
    tune.main(["--help"])
    assert "VARIANTS" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        tune.main([])
    assert end.value.code == 2


def test_commas_are_variants_and_functions_are_searched():
    question = read_question(
        None,
        ["attention=rope,none", "model.width=choice(8,16)", "model.layers=1,2", "training.steps=choice(9)"],
        TuneSettings(),
    )
    assert [one.label for one in question.variants] == [
        "rope layers=1",
        "rope layers=2",
        "none layers=1",
        "none layers=2",
    ]
    assert question.space == ["model.width=choice(8,16)"]
    assert question.fixed == ["training.steps=9"]
    assert question.variants[1].search == "tune-rope-layers=2"
    bare = question._replace(space=[], variants=question.variants[:2])
    assert with_default_space(bare, [1e-3, 1e-3]).space == ["optimizer.lr=tag(log,interval(0.0001,0.01))"]
    with pytest.raises(ConfigError, match=r"begin with different ones .* 0.001, .* 0.03\).*interval\(0.0001,0.3\)"):
        with_default_space(bare, [1e-3, 3e-2])


def test_labels_that_a_file_system_would_not_tell_apart_get_searches_of_their_own():
    question = read_question(None, ["model.dims=[1,2],[1;2]".replace(";", "-")], TuneSettings(study_name="t"))
    assert len({one.search for one in question.variants}) == 2


def test_seeds_are_different_by_default():
    settings = TuneSettings()
    assert settings.tuning_seeds() == [1000, 1001]
    assert settings.fresh_seeds() == list(range(10))
    with pytest.raises(ConfigError, match="seed 1001 is one of"):
        TuneSettings(report_seeds=[1001, 5]).fresh_seeds()

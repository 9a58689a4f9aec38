"""Faults that users of multirun tools have met elsewhere, each as a test here.

A typo that is accepted (A8) stands in tests/config/test_bad_input.py, more on failing jobs (A1) in tests/sweep.
"""

import gc
import logging
import re
import warnings
from pathlib import Path

import psutil
import pytest
import yaml

import ablate.job
from ablate.config.explain import compose_cell
from ablate.config.register import plain, to_run_config
from ablate.job import Context, perform
from ablate.records import RunFolder, StudyFolder


def runs(path: str | Path = "multirun/copy_repeat") -> list[RunFolder]:
    return StudyFolder(Path(path)).runs()


# A1: a failing job leaves no trace where people look


def test_a1_two_of_eight_jobs_fail_and_six_finish(sweep, monkeypatch):
    build = ablate.job.build

    def hook(config, device):
        scheme = config.model["attention"]["_target_"].rpartition(".")[2]
        if (scheme, config.seed) in {("Roper", 2), ("Rope", 1)}:
            raise ValueError(f"hook for {scheme}")
        return build(config, device)

    monkeypatch.setattr(ablate.job, "build", hook)
    result = sweep("model/attention=rope,roper", "seed=range(4)")
    assert result.code == 1
    records = {(r.label, r.seed): (r, folder) for folder in runs() if (r := folder.read())}
    failed = {key for key, (record, _) in records.items() if record.status == "failed"}
    assert failed == {("roper", 2), ("rope", 1)}
    for key in failed:
        record, folder = records[key]
        assert "Traceback" in folder.log.read_text()
        assert "ValueError: hook for" in folder.log.read_text()
        summary = result.out[result.out.rindex("verdict") :]
        assert f"{record.label} seed={record.seed}" in summary
        assert str(folder.path) in summary


# A3: fixing a key that only some swept variants own


@pytest.mark.parametrize("order", ["rope,none", "none,rope"])
def test_a3_the_shared_key_works_whichever_option_comes_first(sweep, order):
    assert sweep(f"attention={order}", "rope_percentage=0.5", "seed=0").code == 0
    by_label = {record.label: record for folder in runs() if (record := folder.read())}
    assert by_label["rope"].effective["rotary_width"] == 2
    assert any("not applicable" in warning for warning in by_label["none"].config_warnings)
    assert by_label["rope"].config_warnings == []


@pytest.mark.parametrize("order", ["rope,none", "none,rope"])
def test_a3_a_key_that_one_option_lacks_is_refused_naming_the_option_whichever_comes_first(sweep, order):
    result = sweep(f"attention={order}", "model.attention.base=500", "seed=0")
    assert result.code == 2
    assert "no such key in attention=none" in result.err


@pytest.mark.parametrize("default", ["rope", "none"])
def test_a3_the_default_option_does_not_matter(sweep, in_tmp, default):
    """A user's own experiment makes another scheme the default; options that own the key still take it."""
    conf = in_tmp / "conf" / "experiment"
    conf.mkdir(parents=True)
    (conf / "mine.yaml").write_text(f"# @package _global_\ndefaults:\n  - override /attention: {default}\n")
    result = sweep(
        "--config-dir",
        str(conf.parent),
        "experiment=mine",
        "attention=rope,rope_v",
        "model.attention.base=500",
        "seed=0",
    )
    assert result.code == 0, result.err
    bases = [yaml.safe_load(folder.config.read_text())["model"]["attention"]["base"] for folder in runs()]
    assert bases == [500, 500]


# A4: two runs share one output directory


def test_a4_a_fixed_directory_never_mixes_two_sweeps_in_one_table(sweep):
    assert sweep("hydra.sweep.dir=out/s", "attention=rope,none", "seed=range(3)").code == 0
    second = sweep("hydra.sweep.dir=out/s", "attention=rope,none", "seed=range(2)", "optimizer.lr=1e-3")
    assert second.code == 0
    assert "2 cells x 2 seeds = 4 runs; 0 done, 4 to train" in second.out
    table = second.out[second.out.index("verdict") :]
    assert "2/2" in table
    assert "3/3" not in table
    assert len(runs("out/s")) == 10
    assert len(StudyFolder(Path("out/s")).sweep_ids()) == 2


# A5: override-derived directory names


def test_a5_folders_are_short_stable_and_safe_whatever_the_overrides(sweep):
    many = [f"+optimizer.{name}=false" for name in ("amsgrad", "maximize", "capturable", "differentiable")]
    result = sweep(
        *many,
        "optimizer.betas=[0.9,0.99]",
        "runtime.output_dir=some/deep/path",
        'runtime.note="a note, (50%) #1"',
        "attention=rope_v",
        "rope_percentage=0.5",
        "optimizer.eps=1e-9",
        "training.grad_clip=0.123456789",
        "evaluation.seed=12345678",
        "seeds.init=1",
        "seeds.data=2",
        "seeds.dropout=3",
        "seed=0",
    )
    assert result.code == 0, result.err
    (folder,) = runs("some/deep/path/copy_repeat")
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", folder.path.parent.name)
    overrides = yaml.safe_load((folder.hydra / "overrides.yaml").read_text())
    assert "optimizer.betas=[0.9,0.99]" in overrides
    assert "+optimizer.amsgrad=false" in overrides
    assert yaml.safe_load(folder.config.read_text())["optimizer"]["betas"] == [0.9, 0.99]


# A9: shell and grammar surprises


def test_a9_text_stays_text_and_numbers_stay_numbers(sweep, in_tmp):
    conf = in_tmp / "conf" / "optimizer"
    conf.mkdir(parents=True)
    (conf / "1.yaml").write_text("_target_: torch.optim.SGD\n_partial_: true\nlr: 1e-3\n")
    result = sweep(
        "--config-dir", str(conf.parent), "study=1E23", "optimizer=1", 'runtime.note="50% rope #1"', "seed=0"
    )
    assert result.code == 0, result.err
    (folder,) = runs("multirun/1E23")
    config = yaml.safe_load(folder.config.read_text())
    assert folder.read().study == config["study"] == "1E23"
    assert config["optimizer"]["lr"] == 0.001
    assert config["runtime"]["note"] == "50% rope #1"
    assert "note: 50% rope #1" in result.out


def test_a9_lr_is_a_float_from_the_command_line_too(sweep):
    assert sweep("optimizer.lr=1e-3,1e-2", "seed=0").code == 0
    rates = [folder.read().factors["optimizer.lr"] for folder in runs()]
    assert sorted(rates) == [0.001, 0.01]
    assert {type(rate) for rate in rates} == {float}


# A10: state carried from one job to the next in the same process


def tiny_run(tiny: list[str], folder: Path, seed: int) -> RunFolder:
    config = compose_cell([*tiny, f"seed={seed}", "attention=roper", "model.dropout=0.1"])
    run = RunFolder(folder / f"seed={seed}")
    perform(to_run_config(config), plain(config), run, Context(label="roper", factors={}, command="test"))
    return run


def test_a10_memory_is_flat_over_jobs_in_one_process_and_job_17_is_what_it_is_alone(tiny, tmp_path):
    process, resident = psutil.Process(), []
    handlers = list(logging.getLogger().handlers)
    for seed in range(30):
        tiny_run(tiny, tmp_path / "many", seed)
        gc.collect()
        resident.append(process.memory_info().rss)
    assert resident[-1] - resident[9] < 10 * 2**20
    assert logging.getLogger().handlers == handlers
    alone, among = tiny_run(tiny, tmp_path / "alone", 17), RunFolder(tmp_path / "many" / "seed=17")
    assert alone.read().metrics == among.read().metrics
    lines = among.log.read_text().splitlines()
    assert len(lines) == len(set(lines)) > 0


def test_a10_warnings_of_a_run_go_to_its_own_log(tiny, tmp_path, monkeypatch):
    build = ablate.job.build

    def warning(config, device):
        warnings.warn(f"warned in {config.seed}", UserWarning, stacklevel=2)
        return build(config, device)

    monkeypatch.setattr(ablate.job, "build", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        first, second = (tiny_run(tiny, tmp_path, seed) for seed in (0, 1))
    assert "warned in 0" in first.log.read_text()
    assert "warned in 1" not in first.log.read_text()
    assert "warned in 1" in second.log.read_text()

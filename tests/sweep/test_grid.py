"""A sweep from its command line to its table, in this process."""

import json
from pathlib import Path

import pytest

import ablate.job
from ablate.records import RunFolder, Status, StudyFolder
from ablate.sweep.cells import Composer

STUDY = "multirun/copy_repeat"


def statuses(path: str = STUDY) -> list[str]:
    return sorted(folder.read().status.value for folder in StudyFolder(Path(path)).runs())


def test_two_variants_and_two_seeds_give_four_recorded_runs_and_a_table(sweep, in_tmp):
    result = sweep("attention=rope,roper", "seed=range(2)")
    assert result.code == 0, result
    assert "2 cells x 2 seeds = 4 runs; 0 done, 4 to train" in result.out
    assert "[4/4]" in result.out
    assert statuses() == ["finished"] * 4
    assert "verdict" in result.out
    assert "insufficient" in result.out
    study = StudyFolder(in_tmp / STUDY)
    plan = study.read_sweep(study.sweep_ids()[0])
    assert [cell.label for cell in plan.cells] == ["rope", "roper"]
    assert plan.seeds == [0, 1]
    assert [look["seeds"] for look in plan.looks] == [{cell.cell: [0, 1] for cell in plan.cells}]
    folder = study.run(plan.cells[1].folder, 1)
    record = folder.read()
    assert (record.label, record.factors, record.seed, record.sweep) == ("roper", {"attention": "roper"}, 1, plan.id)
    assert record.metrics["eval/loss"] > 0
    assert record.metrics["eval/loss_se"] > 0
    assert record.steps_done == record.steps_planned == 6
    assert record.tokens == 6 * 4 * 24
    assert record.command.startswith("python -m ablate.run -m hydra/launcher=basic")
    assert {file.name for file in folder.path.iterdir()} - {"code.diff"} == {  # there when the checkout was changed
        "run.json",
        "config.yaml",
        "metrics.jsonl",
        "checkpoint.pt",
        "log.txt",
        ".hydra",
    }
    assert {file.name for file in folder.hydra.iterdir()} == {"config.yaml", "hydra.yaml", "overrides.yaml"}


def test_jobs_go_seed_by_seed_so_a_stopped_sweep_is_balanced(sweep, in_tmp):
    sweep("attention=rope,none", "seed=range(2)")
    records = [folder.read() for folder in StudyFolder(in_tmp / STUDY).runs()]
    order = [(r.label, r.seed) for r in sorted(records, key=lambda r: r.started)]
    assert order == [("rope", 0), ("none", 0), ("none", 1), ("rope", 1)]


def test_the_same_command_again_trains_nothing_and_an_extended_one_only_what_is_new(sweep, in_tmp):
    sweep("attention=rope,roper", "seed=range(2)")
    first = {folder.path: folder.read() for folder in StudyFolder(in_tmp / STUDY).runs()}
    again = sweep("attention=rope,roper", "seed=range(2)")
    assert again.code == 0
    assert "4 done, 0 to train" in again.out
    more = sweep("model/attention=rope,roper,none", "seed=range(3)")
    assert "9 runs; 4 done, 5 to train" in more.out
    now = {folder.path: folder.read() for folder in StudyFolder(in_tmp / STUDY).runs()}
    assert len(now) == 9
    assert all(now[path] == record for path, record in first.items())


def test_keys_that_cannot_change_a_result_do_not_train_again(sweep):
    sweep("seed=range(2)")
    again = sweep("seed=range(2)", "runtime.threads=2", "runtime.checkpoint_every=1")
    assert "2 done, 0 to train" in again.out


def test_a_dry_run_prints_the_plan_and_writes_nothing(sweep, in_tmp):
    result = sweep("attention=rope,roper", "seed=range(3)", "sweep.dry_run=true")
    assert result.code == 0
    assert "6 runs; 0 done, 6 to train" in result.out
    assert list(in_tmp.iterdir()) == []


def test_a_sweep_of_one_model_without_a_scheme_is_called_after_the_model(cli):
    result = cli("-m", "model=bigram", "seed=range(2)", "sweep.dry_run=true")
    assert "  bigram  " in result.out


def test_500_seeds_are_planned_from_one_composed_cell(sweep, monkeypatch):
    compose, composed = Composer.compose, []
    monkeypatch.setattr(Composer, "compose", lambda self, overrides: composed.append(1) or compose(self, overrides))
    result = sweep("seed=range(500)", "sweep.dry_run=true")
    assert "1 cell x 500 seeds = 500 runs" in result.out
    assert len(composed) == 1


def test_a_factor_without_effect_shows_a_dash_and_trains_once(sweep, in_tmp):
    result = sweep("attention=none,rope", "rope_percentage=0.5,1", "seed=0")
    assert "3 cells x 1 seed = 3 runs" in result.out
    assert "rope_percentage=–" in result.out
    assert "4 combinations are 3 cells" in result.out
    study = StudyFolder(in_tmp / STUDY)
    assert {folder.read().label for folder in study.runs()} == {
        "none",
        "rope rope_percentage=0.5",
        "rope rope_percentage=1",
    }


def test_a_failed_run_is_recorded_with_its_traceback_and_the_others_finish(sweep, in_tmp, monkeypatch):
    build = ablate.job.build

    def sometimes(config, device):
        if config.seed == 1:
            raise RuntimeError("seed one\nis cursed")
        return build(config, device)

    monkeypatch.setattr(ablate.job, "build", sometimes)
    result = sweep("attention=rope,roper", "seed=range(3)")
    assert result.code == 1
    assert statuses() == ["failed"] * 2 + ["finished"] * 4
    failed = [folder for folder in StudyFolder(in_tmp / STUDY).runs() if folder.read().status is Status.failed]
    for folder in failed:
        assert folder.read().error == {"type": "RuntimeError", "message": "seed one\nis cursed"}
        assert "Traceback" in folder.log.read_text()
        assert str(folder.path.relative_to(in_tmp)) in result.out
    monkeypatch.setattr(ablate.job, "build", build)
    again = sweep("attention=rope,roper", "seed=range(3)")
    assert again.code == 0
    assert "4 done, 2 to train" in again.out
    assert statuses() == ["finished"] * 6


def test_fail_fast_stops_at_the_first_failure(sweep, in_tmp, monkeypatch):
    monkeypatch.setattr(ablate.job, "build", lambda config, device: 1 / 0)
    result = sweep("seed=range(4)", "sweep.fail_fast=true")
    assert result.code == 1
    assert statuses() == ["failed"]
    assert "stopped at the first failure" in result.out
    assert not list((in_tmp / STUDY / "sweeps").glob("*.stop"))


def test_a_diverged_run_is_a_result_it_is_counted_and_not_trained_again(sweep, in_tmp):
    result = sweep("optimizer.lr=1e-3,1e30", "seed=range(2)", "training.grad_clip=null")
    assert result.code == 1
    assert statuses() == ["diverged"] * 2 + ["finished"] * 2
    assert "diverged" in result.out
    record = next(f.read() for f in StudyFolder(in_tmp / STUDY).runs() if f.read().status is Status.diverged)
    assert record.error["type"] == "Diverged"
    assert "step" in record.error["message"]
    again = sweep("optimizer.lr=1e-3,1e30", "seed=range(2)", "training.grad_clip=null")
    assert "4 done, 0 to train" in again.out
    assert again.code == 1


@pytest.mark.parametrize("damage", [b"", b'{"status": "fini'])
def test_a_damaged_record_is_made_again(sweep, in_tmp, damage):
    sweep("seed=0")
    (folder,) = StudyFolder(in_tmp / STUDY).runs()
    before = folder.read()
    folder.record.write_bytes(damage)
    assert sweep("seed=0").code == 0
    assert folder.read().metrics == before.metrics


def test_asking_for_finished_runs_again_keeps_the_old_result(sweep, in_tmp):
    sweep("seed=0")
    sweep("seed=0", "sweep.rerun=finished")
    (folder,) = StudyFolder(in_tmp / STUDY).runs()
    (old,) = folder.superseded()
    assert old.read().metrics == folder.read().metrics
    assert old.read().ended < folder.read().started


def test_stale_runs_are_those_of_other_code(sweep, in_tmp):
    sweep("seed=range(2)")
    folder = StudyFolder(in_tmp / STUDY).runs()[0]
    record = folder.read()
    record.source = "0" * 16
    folder.write(record)
    assert "2 done, 0 to train" in sweep("seed=range(2)").out
    assert "1 done, 1 to train" in sweep("seed=range(2)", "sweep.rerun=stale").out
    assert folder.read().source != "0" * 16


def test_rerun_none_leaves_failed_runs_alone(sweep, in_tmp, monkeypatch):
    monkeypatch.setattr(ablate.job, "build", lambda config, device: 1 / 0)
    sweep("seed=0")
    result = sweep("seed=0", "sweep.rerun=none")
    assert "1 done, 0 to train" in result.out
    assert result.code == 1


def test_a_run_outside_a_sweep_is_the_same_run(cli, sweep, tiny, in_tmp):
    single = cli(*tiny, "attention=roper", "seed=1")
    assert single.code == 0
    assert "finished" in single.out
    result = sweep("attention=rope,roper", "seed=1")
    assert "2 runs; 1 done, 1 to train" in result.out
    again = cli(*tiny, "model/attention=roper", "seed=1")
    assert "not run again" in again.out


def test_strict_json_everywhere(sweep, in_tmp):
    sweep("optimizer.lr=1e30", "training.grad_clip=null", "seed=0")
    files = [*in_tmp.rglob("*.json"), *in_tmp.rglob("*.jsonl")]
    assert files
    for file in files:
        for line in file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]:
            json.loads(line, parse_constant=pytest.fail)


def test_equal_bits_alone_or_in_a_sweep_and_after_others(cli, sweep, tiny, in_tmp):
    sweep("attention=rope,roper", "seed=range(3)", "model.dropout=0.1")
    cli(*tiny, "attention=roper", "seed=2", "model.dropout=0.1", "runtime.output_dir=alone")
    swept = next(f for f in StudyFolder(in_tmp / STUDY).runs() if (f.read().label, f.read().seed) == ("roper", 2))
    (alone,) = StudyFolder(in_tmp / "alone/copy_repeat").runs()
    assert swept.read().metrics == alone.read().metrics
    without = [{k: v for k, v in r.items() if k != "seconds"} for r in swept.read_metrics()]
    assert without == [{k: v for k, v in r.items() if k != "seconds"} for r in RunFolder(alone.path).read_metrics()]

"""The rounds of a sweep with a launcher whose processes die: the guilty run fails, all others are trained."""

import io
import json
from collections import Counter
from pathlib import Path

import pytest
from hydra.core.utils import JobReturn, JobStatus
from rich.console import Console

from ablate import locks
from ablate.config.errors import ConfigError
from ablate.config.schema import Progress, Rerun, RunConfig, RuntimeConfig, SweepConfig
from ablate.records import PlannedCell, RunFolder, RunRecord, Status, StudyFolder, SweepPlan
from ablate.sweep.grid import Sweep
from ablate.sweep.plan import Plan
from ablate.sweep.runs import is_at_work


class DyingPool:
    """Runs two jobs at a time; when a deadly seed is among them the pool breaks and takes the other down with it.

    An absent seed writes no record: the job comes back, or its process dies first, leaving the lock it had taken.
    """

    def __init__(
        self, study: StudyFolder, sweep: str, deadly: set[int] = frozenset(), absent: set[int] = frozenset()
    ) -> None:
        self.study, self.sweep, self.deadly, self.absent = study, sweep, deadly, absent
        self.began: Counter[int] = Counter()

    def launch(self, jobs, initial_job_idx):
        seeds = [int(next(o for o in job if o.startswith("seed=")).partition("=")[2]) for job in jobs]
        for pair in (seeds[i : i + 2] for i in range(0, len(seeds), 2)):
            for seed in pair:
                self.began[seed] += 1
                if seed not in self.absent:
                    self.write(seed, Status.running)
                elif seed in self.deadly:
                    self.leave_lock(seed)
            if self.deadly & set(pair):
                raise RuntimeError("the pool broke")
            for seed in set(pair) - self.absent:
                self.write(seed, Status.finished)
        return [JobReturn(status=JobStatus.COMPLETED) for _ in jobs]

    def write(self, seed: int, status: Status) -> None:
        record = RunRecord(
            status=status, study="s", cell="c" * 64, label="rope", factors={}, seed=seed, sweep=self.sweep, source="x"
        )
        self.study.run("cell", seed).write(record)

    def leave_lock(self, seed: int) -> None:
        lock = self.study.run("cell", seed).lock
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.write_text(json.dumps(vars(locks.Owner.me()) | {"pid": 2**22 + self.began[seed]}))


class BrokenLauncher:
    """Begins nothing."""

    def __init__(self) -> None:
        self.handed_over: list[int] = []

    def launch(self, jobs, initial_job_idx):
        self.handed_over.append(len(jobs))
        raise RuntimeError("no such partition")


def sweep_of(folder: Path, seeds: range, rerun: Rerun = Rerun.failed, **pool) -> tuple[Sweep, DyingPool]:
    study = StudyFolder(folder / "s")
    cell = PlannedCell(cell="c" * 64, label="rope", factors={}, folder="cell", overrides=[])
    plan = SweepPlan(id="20260101T000000-aa", created="", command="", study="s", cells=[cell], seeds=list(seeds))
    launcher = DyingPool(study, plan.id, **pool)
    config = RunConfig(runtime=RuntimeConfig(progress=Progress.off), sweep=SweepConfig(rerun=rerun))
    console = Console(file=io.StringIO(), width=120)
    return Sweep(Plan(plan, study, config, {"c" * 64: "x"}, list(seeds)), launcher, console), launcher


def status(folder: RunFolder) -> Status:
    record = folder.read()
    assert record is not None
    return record.status


@pytest.mark.parametrize("deadly", [{0}, {3, 4}, {1, 2, 5, 7, 8}, set(range(10))])
def test_only_the_runs_that_kill_their_process_fail(tmp_path, deadly):
    sweep, launcher = sweep_of(tmp_path, range(10), deadly=deadly)
    assert sweep.run() == 1
    found = {run.seed: status(run.folder) for run in sweep.runs}
    assert {seed for seed, how in found.items() if how is Status.failed} == deadly
    assert {seed for seed, how in found.items() if how is Status.finished} == set(range(10)) - deadly
    assert max(launcher.began.values()) <= 2
    for run in sweep.runs:
        if run.seed in deadly:
            assert run.folder.read().error["type"] == "ProcessDied"
            assert "ProcessDied" in run.folder.log.read_text()


def test_a_job_that_never_begins_is_handed_over_a_few_times_only(tmp_path):
    sweep, launcher = sweep_of(tmp_path, range(2), deadly=set(), absent={1})
    assert sweep.run() == 1
    assert launcher.began == {0: 1, 1: 3}


@pytest.mark.parametrize("deadly", [{0}, {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7}])
def test_a_run_whose_process_dies_before_its_record_is_found_by_its_lock_and_has_one(tmp_path, deadly):
    sweep, _ = sweep_of(tmp_path, range(8), deadly=deadly, absent=deadly)
    assert sweep.run() == 1
    found = {run.seed: status(run.folder) for run in sweep.runs}
    assert found == {seed: Status.failed if seed in deadly else Status.finished for seed in range(8)}
    for run in (run for run in sweep.runs if run.seed in deadly):
        record = run.folder.read()
        assert (record.error["type"], record.label, record.sweep) == ("ProcessDied", "rope", sweep.plan.sweep.id)


def test_a_run_that_breaks_the_launcher_without_a_trace_fails_alone(tmp_path):
    sweep, launcher = sweep_of(tmp_path, range(8))

    def launch(jobs, initial_job_idx, carry=launcher.launch):
        if any("seed=5" in job for job in jobs):
            raise RuntimeError("cannot be pickled")
        return carry(jobs, initial_job_idx)

    launcher.launch = launch
    assert sweep.run() == 1
    assert sweep.errors == {sweep.plan.study.run("cell", 5): "RuntimeError: cannot be pickled"}
    assert [run.seed for run in sweep.runs if run.folder.read() is None] == [5]


@pytest.mark.parametrize("runs", [1, 2, 40])
def test_a_launcher_that_begins_nothing_is_refused_and_leaves_no_plan(tmp_path, runs):
    sweep, _ = sweep_of(tmp_path, range(runs))
    sweep.rounds.launcher = broken = BrokenLauncher()
    with pytest.raises(ConfigError, match="no run began, the launcher failed: RuntimeError: no such partition"):
        sweep.run()
    assert sorted((tmp_path / "s").rglob("*")) == [tmp_path / "s" / "sweeps"]
    assert len(broken.handed_over) <= 10


def test_a_plan_that_was_there_before_stays_when_the_launcher_begins_nothing(tmp_path):
    sweep, _ = sweep_of(tmp_path, range(2))
    sweep.plan.study.write_sweep(sweep.plan.sweep)
    sweep.rounds.launcher = BrokenLauncher()
    with pytest.raises(ConfigError, match="no run began"):
        sweep.run()
    assert sweep.plan.study.sweep_ids() == [sweep.plan.sweep.id]


def test_a_process_that_died_after_its_last_record_changes_nothing_of_it(tmp_path):
    sweep, launcher = sweep_of(tmp_path, range(2))

    def launch(jobs, initial_job_idx, carry=launcher.launch):
        carry(jobs, initial_job_idx)
        launcher.leave_lock(0)
        raise RuntimeError("died on its way out")

    launcher.launch = launch
    assert sweep.run() == 0
    assert [status(run.folder) for run in sweep.runs] == [Status.finished] * 2
    assert dict(launcher.began) == {0: 1, 1: 1}


@pytest.mark.parametrize(
    ("rerun", "told"),
    [
        (Rerun.failed, "the same command continues"),
        (Rerun.stale, "the same command continues"),
        (Rerun.finished, "the same command without sweep.rerun=finished continues"),
        (Rerun.none, "the same command without sweep.rerun=none continues"),
    ],
)
def test_an_interrupted_sweep_says_which_command_goes_on(tmp_path, rerun, told):
    sweep, launcher = sweep_of(tmp_path, range(4), rerun=rerun)

    def launch(jobs, initial_job_idx, carry=launcher.launch):
        carry(jobs[:2], initial_job_idx)
        raise KeyboardInterrupt

    launcher.launch = launch
    assert sweep.run() == 130
    assert told in sweep.console.file.getvalue()


@pytest.mark.parametrize("ended", [Status.interrupted, Status.failed])
def test_a_sweep_that_goes_on_under_its_id_trains_again_what_it_left_without_a_result(tmp_path, ended):
    """As tuning does, which names its sweeps by what they are for."""
    for seed, how in enumerate([ended, Status.finished, ended]):
        sweep_of(tmp_path, range(3))[1].write(seed, how)
    sweep, launcher = sweep_of(tmp_path, range(4))
    assert sweep.run() == 0
    assert dict(launcher.began) == {0: 1, 2: 1, 3: 1}
    assert [status(run.folder) for run in sweep.runs] == [Status.finished] * 4


def test_what_a_sweep_left_running_stays_to_be_resumed_when_its_launcher_can_begin_nothing(tmp_path):
    sweep, launcher = sweep_of(tmp_path, range(1))
    launcher.write(0, Status.running)
    sweep.rounds.launcher = BrokenLauncher()
    with pytest.raises(ConfigError, match="no run began"):
        sweep.run()
    assert status(sweep.runs[0].folder) is Status.running


def test_a_sweep_that_was_killed_as_it_stopped_goes_on(tmp_path):
    sweep, launcher = sweep_of(tmp_path, range(2))
    sweep.plan.study.sweeps_path.mkdir(parents=True)
    sweep.stop_file.touch()
    assert sweep.run() == 0
    assert dict(launcher.began) == {0: 1, 1: 1}


def test_a_sweep_that_another_process_is_at_is_stopped_by_that_ones_stop_file(tmp_path):
    sweep, launcher = sweep_of(tmp_path, range(2))
    sweep.plan.study.sweeps_path.mkdir(parents=True)
    sweep.stop_file.touch()
    with locks.hold(sweep.plan.study.sweep_lock(sweep.plan.sweep.id)):
        sweep.run()
    assert not launcher.began
    assert sweep.stop_file.exists()


def test_what_a_broken_pool_took_down_is_trained_under_rerun_none_too(tmp_path):
    sweep, _ = sweep_of(tmp_path, range(6), Rerun.none, deadly={2})
    assert sweep.run() == 1
    failed = [run.seed for run in sweep.runs if status(run.folder) is Status.failed]
    assert failed == [2]
    assert {status(run.folder) for run in sweep.runs if run.seed != 2} == {Status.finished}


@pytest.mark.parametrize("fail_fast", [False, True])
def test_a_run_that_died_on_another_machine_has_a_record_once_its_lock_is_old(tmp_path, monkeypatch, fail_fast):
    monkeypatch.setattr(locks, "TAKE_OVER", 1.5)
    monkeypatch.setattr(locks, "WATCH", 0.2)
    sweep, launcher = sweep_of(tmp_path, range(2))
    sweep.plan.config.sweep.fail_fast = fail_fast

    def launch(jobs, initial_job_idx):
        launcher.write(0, Status.running)
        launcher.write(1, Status.finished)
        lock = sweep.plan.study.run("cell", 0).lock
        lock.write_text(json.dumps(vars(locks.Owner("elsewhere", 7, 7, "its own"))))
        lost = JobReturn(status=JobStatus.FAILED)
        lost.return_value = RuntimeError("NODE_FAIL")
        return [lost, JobReturn(status=JobStatus.COMPLETED)]

    launcher.launch = launch
    assert sweep.run() == 1
    record = sweep.runs[0].folder.read()
    assert (record.status, record.error["type"]) == (Status.failed, "ProcessDied")
    assert status(sweep.runs[1].folder) is Status.finished


def test_others_see_that_a_sweep_is_at_work_and_no_longer(tmp_path):
    sweep, launcher = sweep_of(tmp_path, range(1))
    seen = []

    def launch(jobs, initial_job_idx, carry=launcher.launch):
        seen.append(is_at_work(sweep.plan.study))
        return carry(jobs, initial_job_idx)

    launcher.launch = launch
    assert sweep.run() == 0
    assert seen == [True]
    assert not is_at_work(sweep.plan.study)

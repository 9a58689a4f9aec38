"""The rounds of a sweep with a launcher whose processes die: the guilty run fails, all others are trained."""

import io
from collections import Counter
from pathlib import Path

import pytest
from hydra.core.utils import JobReturn, JobStatus
from rich.console import Console

from ablate.config.schema import Progress, RunConfig, RuntimeConfig
from ablate.records import PlannedCell, RunFolder, RunRecord, Status, StudyFolder, SweepPlan
from ablate.sweep.grid import Sweep
from ablate.sweep.plan import Plan


class DyingPool:
    """Runs two jobs at a time; when a deadly seed is among them the pool breaks and takes the other down with it."""

    def __init__(self, study: StudyFolder, sweep: str, deadly: set[int], absent: set[int] = frozenset()) -> None:
        self.study, self.sweep, self.deadly, self.absent = study, sweep, deadly, absent
        self.began: Counter[int] = Counter()

    def launch(self, jobs, initial_job_idx):
        seeds = [int(next(o for o in job if o.startswith("seed=")).partition("=")[2]) for job in jobs]
        for pair in (seeds[i : i + 2] for i in range(0, len(seeds), 2)):
            for seed in pair:
                self.began[seed] += 1
                if seed not in self.absent:
                    self.write(seed, Status.running)
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


def sweep_of(folder: Path, seeds: range, **pool) -> tuple[Sweep, DyingPool]:
    study = StudyFolder(folder / "s")
    cell = PlannedCell(cell="c" * 64, label="rope", factors={}, folder="cell", overrides=[])
    plan = SweepPlan(id="20260101T000000-aa", created="", command="", study="s", cells=[cell], seeds=list(seeds))
    launcher = DyingPool(study, plan.id, **pool)
    config = RunConfig(runtime=RuntimeConfig(progress=Progress.off))
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

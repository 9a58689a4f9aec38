"""Adding seeds until decided: the blocks, who gets more seeds, the end and its reason, and going on after a stop."""

import json
import signal
from pathlib import Path

import pytest

import ablate.job
import analysis.until
from ablate.records import StudyFolder
from analysis.until import Decision, Standing

STUDY = "multirun/copy_repeat"
UNTIL = ("attention=rope,none,roper", "sweep.until=decided", "sweep.block=2")


@pytest.fixture
def script(monkeypatch):
    """Decisions by hand: what is decided after so many seeds."""

    def write(by_seeds):
        def decisions(path, sweep):
            plan = StudyFolder(Path(path)).read_sweep(sweep)
            found = by_seeds.get(len(plan.seeds), {})
            if isinstance(found, str):
                return Standing((), found)
            return Standing(
                tuple(
                    Decision(
                        cell.cell, plan.cells[0].cell, cell.label, found.get(cell.label, ""), f"{cell.label}: as told"
                    )
                    for cell in plan.cells[1:]
                )
            )

        monkeypatch.setattr(analysis.until, "decisions", decisions)

    return write


def seeds_by_label():
    found = {}
    for folder in StudyFolder(Path(STUDY)).runs():
        record = folder.read()
        found.setdefault(record.label, []).append(record.seed)
    return {label: sorted(seeds) for label, seeds in found.items()}


def newest_plan():
    study = StudyFolder(Path(STUDY))
    return study.read_sweep(study.sweep_ids()[-1])


def test_seeds_come_in_blocks_and_a_decided_variant_gets_no_more(sweep, script):
    script({2: {"none": "worse"}, 4: {}, 5: {}})
    result = sweep(*UNTIL, "sweep.max_seeds=5")
    assert result.code == 0, result
    assert (
        "3 cells, seeds in blocks of 2 until decided, at most 5 (up to 15 runs); the first block cannot decide"
        in result.out
    )
    assert seeds_by_label() == {"rope": [0, 1, 2, 3, 4], "none": [0, 1], "roper": [0, 1, 2, 3, 4]}
    said = [line.strip() for line in result.out.splitlines()]
    for line in ("after 2 seeds", "after 4 seeds", "after 5 seeds", "none: worse, stopped at 2 seeds"):
        assert line in said
    assert "stopped adding seeds: sweep.max_seeds=5 is reached; undecided: roper" in said
    plan = newest_plan()
    none = next(cell for cell in plan.cells if cell.label == "none")
    assert plan.until["stopped"] == {none.cell: {"seeds": 2, "why": "worse"}}
    assert plan.seeds_of(none.cell) == [0, 1]
    assert [sorted(map(len, look["seeds"].values())) for look in plan.looks] == [[2, 2, 2], [2, 4, 4], [2, 5, 5]]


def test_it_ends_when_every_comparison_is_decided(sweep, script):
    script({2: {"none": "worse"}, 4: {"roper": "better"}})
    result = sweep(*UNTIL)
    assert "stopped adding seeds: every comparison is decided" in result.out
    assert seeds_by_label() == {"rope": [0, 1, 2, 3], "none": [0, 1], "roper": [0, 1, 2, 3]}
    assert "Seeds added in blocks of 2 until decided, at most 40" in " ".join(result.out.split())


def test_the_same_command_again_decides_the_same_and_trains_nothing(sweep, script):
    script({2: {"none": "worse"}, 4: {"roper": "better"}})
    sweep(*UNTIL)
    again = sweep(*UNTIL)
    assert again.code == 0
    assert "finished" not in again.out.split("after 4 seeds")[0].replace("finished [", "")
    assert "stopped adding seeds: every comparison is decided" in again.out
    assert seeds_by_label() == {"rope": [0, 1, 2, 3], "none": [0, 1], "roper": [0, 1, 2, 3]}


def test_more_seeds_later_go_on_where_it_stopped(sweep, script):
    script({})
    sweep(*UNTIL, "sweep.max_seeds=2")
    before = {folder.path: folder.read() for folder in StudyFolder(Path(STUDY)).runs()}
    sweep(*UNTIL, "sweep.max_seeds=4")
    now = {folder.path: folder.read() for folder in StudyFolder(Path(STUDY)).runs()}
    assert len(now) == 12
    assert all(now[path] == record for path, record in before.items())


def test_what_cannot_be_compared_ends_it_with_the_reason(sweep, script, monkeypatch):
    script({2: "study copy_repeat has no finished run to compare (6 failed)"})
    monkeypatch.setattr(ablate.job, "build", lambda config, device: 1 / 0)
    result = sweep(*UNTIL)
    assert result.code == 1
    assert "stopped adding seeds: study copy_repeat has no finished run to compare (6 failed)" in result.out


def test_a_failed_run_is_tried_once_and_not_in_every_block(sweep, script, monkeypatch):
    build, tried = ablate.job.build, []

    def sometimes(config, device):
        tried.append(config.seed)
        if config.seed == 1:
            raise RuntimeError("seed one")
        return build(config, device)

    monkeypatch.setattr(ablate.job, "build", sometimes)
    script({})
    result = sweep(*UNTIL, "sweep.max_seeds=4")
    assert result.code == 1
    assert tried.count(1) == 3


def test_the_seeds_given_are_those_used_in_their_order(sweep, script):
    script({})
    sweep(*UNTIL, "seed=7,3,5")
    assert newest_plan().seeds == [7, 3, 5]
    sweep(*UNTIL, "seed=100", "sweep.max_seeds=3", "sweep.dry_run=true")
    sweep(*UNTIL, "seed=100", "sweep.max_seeds=3")
    assert newest_plan().seeds == [100, 101, 102]


def test_real_decisions_end_a_real_sweep(sweep):
    result = sweep(
        "attention=rope,none", "sweep.until=decided", "sweep.block=3", "sweep.max_seeds=6", "sweep.margin=2%"
    )
    assert result.code == 0, result
    assert "after 3 seeds" in result.out
    assert "stopped adding seeds: " in result.out
    plan = newest_plan()
    assert plan.question == {
        "metric": "eval/loss",
        "direction": None,
        "transform": "none",
        "threshold": None,
        "margin": "2%",
        "reference": None,
    }
    assert plan.until["ended"]
    assert "Seeds added in blocks of 3" in " ".join(result.out.split())
    json.dumps(plan.until, allow_nan=False)


def test_a_sweep_that_was_stopped_between_blocks_goes_on(sweep, script, monkeypatch):
    script({})
    train = ablate.job.build
    count = []

    def stop_at(config, device):
        count.append(config.seed)
        if len(count) == 8:
            signal.raise_signal(signal.SIGINT)
        return train(config, device)

    monkeypatch.setattr(ablate.job, "build", stop_at)
    first = sweep(*UNTIL, "sweep.max_seeds=4")
    assert first.code == 130
    assert newest_plan().until["ended"] is None
    monkeypatch.setattr(ablate.job, "build", train)
    second = sweep(*UNTIL, "sweep.max_seeds=4")
    assert second.code == 0, second
    assert seeds_by_label() == {label: [0, 1, 2, 3] for label in ("rope", "none", "roper")}

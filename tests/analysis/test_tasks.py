"""A study of several tasks taken apart: which factor selects the task, labels, what belongs to which task."""

from dataclasses import replace

import pytest
from fake_study import noise, planned, study_of, suite, write_study
from hypothesis import given
from hypothesis import strategies as st

from analysis import looks
from analysis.load import load_study
from analysis.study import Replaced, StudyError, Variant
from analysis.tasks import by_task, choose_task

ARMS = {"rope": noise(0, 4), "roper": noise(1, 4)}
SHIFTS = {"copy": 0.0, "sort": 1.0}


def variants_of(*factors, labels=()):
    """A study of these variants, one run each."""
    names = labels or [f"v{i}" for i in range(len(factors))]
    study = study_of({name: [0.4] for name in names})
    variants = {v.label: replace(v, factors=f) for v, f in zip(study.variants, factors, strict=True)}
    runs = tuple(replace(run, variant=variants[run.variant.label]) for run in study.loaded)
    return replace(study, variants=tuple(variants.values()), loaded=runs)


def labels(study):
    return [variant.label for variant in study.variants]


def test_a_study_of_one_task_is_given_back_as_it_is():
    study = study_of(ARMS)
    assert by_task(study) == {"copy_repeat": study}
    assert choose_task(study, None) is study
    assert choose_task(study, "copy_repeat") is study


def test_a_parameter_of_the_task_alone_is_a_factor_and_makes_no_tasks():
    study = variants_of({"task.substr_len": 4}, {"task.substr_len": 8}, {"task": "copy", "task.substr_len": 16})
    assert len(by_task(replace(study, variants=study.variants[:2], loaded=study.loaded[:2]))) == 1
    one_task = variants_of({"task": "copy", "task.substr_len": 4}, {"task": "copy", "task.substr_len": 8})
    (name,) = by_task(one_task)
    assert name == "copy"
    assert by_task(one_task)[name] is one_task


def test_every_task_has_its_runs_and_labels_without_its_name(tmp_path):
    suite(tmp_path / "s", ARMS, shifts=SHIFTS, looks=[16])
    whole = load_study(tmp_path / "s")
    parts = by_task(whole)
    assert list(parts) == ["copy", "sort"]
    for task, part in parts.items():
        assert labels(part) == ["rope", "roper"]
        assert part.factor_names == ["attention"]
        assert (part.seeds, part.looks, part.name) == (whole.seeds, whole.looks, whole.name)
        assert part.part.task == task
        values = [run.record.metrics["eval/loss"] for run in part.of(part.variants[0])]
        assert values == [x + SHIFTS[task] for x in ARMS["rope"]]
    assert by_task(parts["copy"]) == {"copy": parts["copy"]}


def test_the_task_may_stand_anywhere_in_a_label_or_be_all_of_it():
    parts = by_task(
        variants_of({"width": 8, "task": "a"}, {"width": 8, "task": "b"}, labels=["width=8 a", "b width=8"])
    )
    assert [labels(part) for part in parts.values()] == [["width=8"], ["width=8"]]
    parts = by_task(variants_of({"task": "a"}, {"task": "b"}, labels=["a", "b"]))
    assert [labels(part) for part in parts.values()] == [["default"], ["default"]]


def test_a_task_key_that_only_says_what_the_task_is_is_no_factor_of_it():
    found = by_task(
        variants_of(
            {"task._target_": "x.copy.Copy", "task.seq_len": 64, "attention": "rope"},
            {"task._target_": "x.copy.Copy", "task.seq_len": 64, "attention": "roper"},
            {"task._target_": "x.sort.Sort", "task.seq_len": 32, "attention": "rope"},
            labels=["copy rope", "copy roper", "sort rope"],
        )
    )
    assert {task: part.factor_names for task, part in found.items()} == {"copy": ["attention"], "sort": ["attention"]}
    assert [labels(part) for part in found.values()] == [["rope", "roper"], ["rope"]]


def test_a_task_key_that_varies_within_a_task_is_a_factor_of_it():
    levels = [{"task": task, "task.substr_len": n} for task in ("a", "b") for n in (4, 8)]
    names = [f"{one['task']} substr_len={one['task.substr_len']}" for one in levels]
    parts = by_task(variants_of(*levels, labels=names))
    assert [labels(part) for part in parts.values()] == [["substr_len=4", "substr_len=8"]] * 2
    assert parts["b"].factor_names == ["task.substr_len"]


def test_two_classes_of_one_module_keep_their_whole_names():
    parts = by_task(variants_of({"task._target_": "x.tasks.Copy"}, {"task._target_": "x.tasks.Sort"}))
    assert list(parts) == ["x.tasks.Copy", "x.tasks.Sort"]


def test_labels_that_only_the_task_told_apart_lose_what_was_added_for_that():
    copy, sort = {"task._target_": "x.copy.Copy"}, {"task._target_": "x.sort.Sort"}
    names = ["rope (_target_=x.copy.Copy)", "rope (_target_=x.sort.Sort)"]
    assert [labels(part) for part in by_task(variants_of(copy, sort, labels=names)).values()] == [["rope"], ["rope"]]


def test_variants_that_no_factor_tells_apart_keep_different_labels():
    same = [{"task": "a", "attention": "rope"}] * 2 + [{"task": "b", "attention": "rope"}]
    first, second, other = (v for part in by_task(variants_of(*same)).values() for v in labels(part))
    assert first != second
    assert other == first


def test_the_same_variant_has_one_label_and_one_place_in_all_tasks(tmp_path):
    suite(tmp_path / "s", {**ARMS, "none": noise(2, 4)}, shifts=SHIFTS, leave_out=[("copy", "roper"), ("sort", "rope")])
    parts = by_task(load_study(tmp_path / "s"))
    assert [labels(part) for part in parts.values()] == [["rope", "none"], ["roper", "none"]]
    assert parts["copy"].places == parts["sort"].places == {"rope": 0, "none": 1, "roper": 2}


def test_with_all_sweeps_the_class_selects_the_task(tmp_path):
    folder = suite(tmp_path / "s", ARMS, shifts=SHIFTS)
    for label in ("copy rope", "copy roper", "sort rope", "sort roper"):
        task, arm = label.split()
        lines = f"task:\n  _target_: my.{task}.Task\n  seq_len: {len(task)}\nmodel:\n  attention: {arm}\nsteps: 1e3\n"
        for seed in range(4):
            (folder.run(planned(label, {"task": 1, "attention": 1}).folder, seed).config).write_text(lines)
    parts = by_task(load_study(tmp_path / "s", "all"))
    assert {task: labels(part) for task, part in parts.items()} == {task: ["rope", "roper"] for task in SHIFTS}
    assert parts["copy"].factor_names == ["model.attention"]
    assert parts["sort"].config["task.seq_len"] == 4


@pytest.mark.parametrize("second", [{"attention": "none"}, {"task": "short", "attention": "none"}])
def test_with_all_sweeps_two_tasks_of_one_class_are_known_by_the_names_in_the_plans(tmp_path, second):
    lengths = {"short": 16, "long": 64}
    first = {f"{task} {arm}": {"task": task, "attention": arm} for task in lengths for arm in ("rope", "roper")}
    other = {"none": second}
    folder = write_study(
        tmp_path / "s", dict.fromkeys(first, ARMS["rope"]), factors=first, sweep="20260101T000000-aaaa"
    )
    write_study(tmp_path / "s", dict.fromkeys(other, ARMS["rope"]), factors=other, sweep="20260102T000000-bbbb")
    for label, factors in (first | other).items():
        lines = f"task:\n  _target_: my.copy.Copy\n  seq_len: {lengths[factors.get('task', 'short')]}\n"
        for seed in range(4):
            config = folder.run(planned(label, factors).folder, seed).config
            config.write_text(f"{lines}model:\n  attention: {factors['attention']}\n")
    parts = by_task(load_study(tmp_path / "s", "all"))
    assert {task: labels(part) for task, part in parts.items()} == {
        "short": ["rope", "roper", "none"],
        "long": ["rope", "roper"],
    }
    assert parts["long"].factor_names == ["model.attention"]


def test_a_damaged_run_is_a_problem_of_its_own_task(tmp_path):
    folder = suite(tmp_path / "s", ARMS, shifts=SHIFTS)
    path = folder.run(planned("sort rope", {"task": 1, "attention": 1}).folder, 2).record
    path.write_bytes(path.read_bytes()[:40])
    parts = by_task(load_study(tmp_path / "s"))
    assert parts["copy"].problems == ()
    assert len(parts["sort"].problems) == 1


def test_a_look_counts_the_runs_of_the_cells_that_are_compared(tmp_path):
    changes = {("sort", arm, seed): lambda _: None for arm in ARMS for seed in (2, 3)}
    suite(tmp_path / "s", ARMS, shifts=SHIFTS, changes=changes)
    whole = load_study(tmp_path / "s")
    part = by_task(whole)["sort"]
    cells = frozenset(variant.cell for variant in part.variants)
    assert looks.seeds_now(part, cells) == looks.seeds_now(whole, cells) == 2


def test_a_replaced_result_is_told_with_its_own_task(tmp_path):
    suite(tmp_path / "s", ARMS, shifts=SHIFTS)
    old = Replaced("sort roper", 1, "finished", "2026-01-01", differs=True)
    parts = by_task(replace(load_study(tmp_path / "s"), replaced=(old,)))
    assert parts["copy"].replaced == ()
    assert parts["sort"].replaced == (replace(old, label="roper"),)


def test_a_task_must_be_chosen_and_must_be_there(tmp_path):
    suite(tmp_path / "s", ARMS, shifts=SHIFTS)
    study = load_study(tmp_path / "s")
    with pytest.raises(StudyError, match=r"has 2 tasks, .* choose one .* of copy, sort, or report on all"):
        choose_task(study, None)
    with pytest.raises(StudyError, match="no task 'sorting' in study copy_repeat; there is: copy, sort"):
        choose_task(study, "sorting")
    with pytest.raises(StudyError, match="no task 'sort' in study copy_repeat; there is: copy_repeat"):
        choose_task(study_of(ARMS), "sort")
    assert labels(choose_task(study, "sort")) == ["rope", "roper"]


NAMES = st.text("ab _$|.é", min_size=1, max_size=4)


@given(st.lists(st.tuples(NAMES, NAMES), min_size=2, max_size=8, unique=True))
def test_every_run_is_in_one_task_and_every_label_names_one_variant(pairs):
    names = [f"{task} {arm} {i}" for i, (task, arm) in enumerate(pairs)]
    study = variants_of(*({"task": task, "attention": arm} for task, arm in pairs), labels=names)
    parts = by_task(study)
    assert list(parts) == list(dict.fromkeys(task for task, _ in pairs)) or len(parts) == 1
    found = [(run.variant.cell, run.seed) for part in parts.values() for run in part.loaded]
    assert sorted(found) == sorted((run.variant.cell, run.seed) for run in study.loaded)
    arms = {}
    for part in parts.values():
        assert len(set(labels(part))) == len(part.variants)
        for variant in part.variants:
            assert arms.setdefault(variant.label, variant.factors["attention"]) == variant.factors["attention"]
    assert all(isinstance(variant, Variant) for part in parts.values() for variant in part.variants)

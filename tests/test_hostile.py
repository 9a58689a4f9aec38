"""A study from somebody else: nothing it names is carried out, and nothing is written outside of it."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from ablate import generate
from ablate.config import trusted
from ablate.config.errors import ConfigError
from ablate.config.explain import compose_cell
from ablate.config.identity import cell_identity
from ablate.config.register import config_dir, plain, to_run_config
from ablate.job import Context, perform
from ablate.records import RunFolder, StudyFolder
from analysis import report
from analysis.load import load_study

LABELS = ["../../../escaped", "/tmp/escaped/absolute", "two\nlines\r", "x" * 300, "a\0b", "<script>alert(1)</script>"]


def run(tiny, folder: RunFolder, *overrides):
    config = compose_cell([*tiny, "runtime.device=cpu", *overrides])
    return perform(to_run_config(config), plain(config), folder, Context(label="x", factors={}, command="test"))


def edit(path: Path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def made(tmp_path_factory, request):
    """A study of two cells and two seeds."""
    place, patch = tmp_path_factory.mktemp("hostile"), pytest.MonkeyPatch()
    from hydra.core.global_hydra import GlobalHydra

    from ablate.run import main
    from tests.conftest import TINY

    patch.chdir(place)
    patch.setattr("sys.argv", ["x", "-m", "hydra/launcher=basic", *TINY, "attention=rope,none", "seed=0,1"])
    GlobalHydra.instance().clear()
    main()
    GlobalHydra.instance().clear()
    patch.undo()
    return place / "multirun" / "copy_repeat"


@pytest.mark.parametrize("label", LABELS)
def test_a_hostile_label_writes_nothing_outside_the_report(made, tmp_path, record_property, label):
    study = StudyFolder(tmp_path / "deep" / "er" / "study")
    shutil.copytree(made, study.path)
    for folder in study.runs():
        if "rope" in folder.path.parent.name:
            edit(folder.record, lambda record: record.update(label=label, factors={"attention": label}))

    def relabel(plan):
        cell = next(one for one in plan["cells"] if one["label"] == "rope")
        cell.update(label=label, factors={"attention": label})

    edit(study.sweep_file(study.sweep_ids()[0]), relabel)
    before = {path for path in tmp_path.rglob("*") if study.report not in (path, *path.parents)}
    report.main([str(study.path)])
    after = {path for path in tmp_path.rglob("*") if study.report not in (path, *path.parents)}
    assert {path for path in after - before if study.analysis_cache not in (path, *path.parents)} == set()
    assert not Path("/tmp/escaped").exists()
    page = (study.report / "report.html").read_text()
    assert "<script>alert(1)</script>" not in page
    assert (study.report / "runs.csv").exists()
    record_property("hostile labels that wrote nothing outside the study", 1)


@pytest.mark.parametrize("ended", ["../../../escaped", "/tmp/escaped", "..", "a\0b", "x" * 300])
def test_a_result_with_a_hostile_time_is_archived_within_its_own_folder(tiny, tmp_path, ended):
    folder = RunFolder(tmp_path / "a" / "b" / "run")
    run(tiny, folder)
    edit(folder.record, lambda record: record.update(ended=ended))
    run(tiny, folder, "sweep.rerun=finished")
    (archived,) = folder.superseded()
    assert archived.path.parent == folder.previous
    assert archived.read().ended == ended
    assert {path.name for path in tmp_path.iterdir()} == {"a"}
    assert not Path("/tmp/escaped").exists()


def test_yaml_that_names_python_objects_is_not_carried_out(made, tmp_path, capsys):
    study = StudyFolder(tmp_path / "study")
    shutil.copytree(made, study.path)
    done = tmp_path / "done"
    for folder in study.runs():
        folder.config.write_text(f"!!python/object/apply:os.system ['touch {done}']\n")
    load_study(study.path, "all")
    report.main([str(study.path), "--sweep", "all"])
    with pytest.raises(ConfigError, match="cannot be read"):
        generate.load(study.runs()[0], generate.choose_device(generate.Device.cpu))
    assert not done.exists()


def test_the_analysis_builds_nothing_that_a_config_names(made, tmp_path):
    study = StudyFolder(tmp_path / "study")
    shutil.copytree(made, study.path)
    done = tmp_path / "done"
    for folder in study.runs():
        values = yaml.safe_load(folder.config.read_text())
        values["model"] = {"_target_": "os.system", "command": f"touch {done}"}
        folder.config.write_text(yaml.safe_dump(values))
    report.main([str(study.path), "--sweep", "all"])
    assert not done.exists()


@pytest.mark.parametrize(
    "target",
    ["os.system", "builtins.eval", "torch.hub.load", "ablate.training.checkpoint.os.system", "ablate.tasks.no.such"],
)
def test_generate_builds_no_foreign_part_of_a_config_unless_trusted(tiny, tmp_path, target):
    folder, done = RunFolder(tmp_path / "run"), tmp_path / "done"
    run(tiny, folder)
    values = yaml.safe_load(folder.config.read_text())
    values["model"]["attention"] = {"_target_": target, "_args_": [f"touch {done}"]}
    folder.config.write_text(yaml.safe_dump(values))
    edit(folder.record, lambda record: record.update(cell=cell_identity(values)))
    with pytest.raises(ConfigError, match=f"_target_={target} is neither ablate's nor torch.optim's; --trust"):
        generate.load(folder, generate.choose_device(generate.Device.cpu))
    assert not done.exists()


def test_every_part_of_conf_is_trusted():
    for group in ("model", "attention", "task", "optimizer", "schedule"):
        for path in (config_dir() / group).glob("*.yaml"):
            trusted.check(yaml.safe_load(path.read_text()), origin=path.name)

"""Composing with shared files gives what Hydra gives, for values, files, and what Hydra notes of both."""

import pickle
from pathlib import Path

import pytest
import yaml
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from ablate.config.register import config_dir
from ablate.records import StudyFolder
from ablate.sweep.composing import SharingLoader, made_by_resolvers, settled

JOBS = [
    ["attention=rope", "seed=3"],
    ["attention=roper", "seed=3", "training.steps=7"],
    ["attention=rope", "seed=4", "optimizer.lr=3e-4", "hydra.job.name=other"],
    ["attention=rope", "seed=4", "optimizer.lr=${task.seq_len}", "optimizer.betas=[0.9,0.95]"],
    ["seed=5", "attention=none", "task=mqar", "task.seq_len=32", "study='a b'"],
    ["attention=rope", "~optimizer.betas", "seed=6"],
    ["attention=rope", "++optimizer.lr=1", "seed=6", "rope_percentage=0.5"],
]


@pytest.fixture
def loader():
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_dir()), version_base="1.3", job_name="run"):
        yield GlobalHydra.instance().config_loader()


@pytest.fixture
def master(loader):
    return loader.load_configuration("config", [], run_mode=RunMode.MULTIRUN)


def text(config) -> str:
    return OmegaConf.to_yaml(config, resolve=False)


def test_it_gives_what_hydra_gives_whatever_was_composed_before(loader, master):
    sharing = SharingLoader(loader)
    for job in JOBS + JOBS[::-1]:
        assert text(sharing.load_sweep_config(master, job)) == text(loader.load_sweep_config(master, job))


def test_files_are_read_once_for_all_seeds_and_values(loader, master, monkeypatch):
    sharing, asked = SharingLoader(loader), []
    compose = loader.load_sweep_config
    monkeypatch.setattr(loader, "load_sweep_config", lambda *given: asked.append(given) or compose(*given))
    for seed in range(5):
        sharing.load_sweep_config(master, ["attention=rope", f"seed={seed}", f"training.steps={seed + 1}"])
    assert len(asked) == 1


def test_what_is_done_to_one_config_stays_out_of_the_next(loader, master):
    sharing = SharingLoader(loader)
    sharing.load_sweep_config(master, JOBS[0]).training.steps = 1
    assert text(sharing.load_sweep_config(master, JOBS[0])) == text(loader.load_sweep_config(master, JOBS[0]))


@pytest.mark.parametrize("job", [["training.stepz=1"], ["attention=rop"], ["seed=x"], ["seed=1,2"], ["a b=1"]])
def test_it_raises_what_hydra_raises(loader, master, job):
    with pytest.raises(HydraException) as ours:
        SharingLoader(loader).load_sweep_config(master, job)
    with pytest.raises(HydraException) as theirs:
        loader.load_sweep_config(master, job)
    assert (type(ours.value), str(ours.value)) == (type(theirs.value), str(theirs.value))


def test_sent_to_a_process_again_it_is_the_one_that_is_there(loader, master):
    sent = pickle.dumps(SharingLoader(loader))
    first, again = pickle.loads(sent), pickle.loads(sent)
    assert first is again
    assert pickle.loads(pickle.dumps(SharingLoader(loader))) is not first
    assert text(first.load_sweep_config(master, JOBS[0])) == text(loader.load_sweep_config(master, JOBS[0]))


TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12).filter(lambda text: "${" not in text)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT


@given(LEAVES | st.lists(LEAVES, max_size=3))
def test_a_value_that_a_resolver_made_is_told_so_that_hydra_reads_the_same(value):
    (line,) = settled([], {"key": value})
    (override,) = OverridesParser.create().parse_overrides([line])
    assert override.value() == value


def test_what_resolvers_make_takes_their_place_and_what_was_given_stays_last():
    config = OmegaConf.create(
        {"a": "${oc.env:HOME}", "b": {"c": "x-${now:%Y}", "d": "${a}"}, "runtime": {"e": "${now:%Y}"}, "f": "${cell:}"}
    )
    values = {"a": "/root", "b": {"c": "x-2026", "d": "/root"}, "runtime": {"e": "2026"}, "f": "8"}
    made = made_by_resolvers(config, values)
    assert made == {"a": "/root", "b.c": "x-2026"}
    given = ["b.c=x-${now:%Y}", "a=other", "g=${a}"]
    assert settled(given, made) == ['a="/root"', 'b.c="x-2026"', "a=other", "g=${a}"]


@pytest.mark.parametrize("launcher", ["basic", "local"])
def test_g2_a_value_made_by_a_resolver_is_the_same_in_plan_and_run(cli, tiny, launcher):
    """A clock of microseconds says another value each time it is asked."""
    given = ["seeds.data=${now:%f}", "attention=rope,none", "seed=0,1", "study=g2"]
    result = cli("-m", f"hydra/launcher={launcher}", *tiny, *given, "runtime.device=cpu")
    assert result.code == 0, result.err
    study = StudyFolder(Path("multirun/g2"))
    plan = study.read_sweep(study.sweep_ids()[-1])
    planned = {study.run(cell.folder, seed).path for cell in plan.cells for seed in plan.seeds}
    assert {folder.path for folder in study.runs()} == planned
    assert (
        len({yaml.safe_load(folder.config.read_text())["seeds"]["data"] for folder in study.runs()}) == 2
    )  # one for each cell


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("training.steps=${hydra:job.num}", "training.steps=${hydra:job.num}: differs from job to job"),
        ("seeds.data=${hydra:job.id}", "seeds.data=${hydra:job.id}: differs from job to job"),
        ("seed=${hydra:job.num}", "seed=${hydra:job.num}: must be a whole number"),
        ("training.steps=${oc.env:ABLATE_NOWHERE}", "training.steps: Environment variable 'ABLATE_NOWHERE' not found"),
    ],
)
@pytest.mark.parametrize("mode", [["-m"], []])
def test_g2_a_config_does_not_depend_on_the_job_that_carries_it(cli, override, told, mode):
    result = cli(*mode, override, "attention=rope")
    assert result.code == 2
    if not (override.startswith("seed=") and not mode):
        assert result.err.startswith(f"ablate: {told}")
    assert result.err.count("\n") == 1
    assert not Path("multirun").exists()

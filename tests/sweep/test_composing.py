"""Composing with shared files gives what Hydra gives, for values, files, and what Hydra notes of both."""

import pickle

import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import OmegaConf

from ablate.config.register import config_dir
from ablate.sweep.composing import SharingLoader

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

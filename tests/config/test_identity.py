"""The identity of a cell: what changes it, what does not."""

import pytest

from ablate.config.explain import compose_cell
from ablate.config.identity import cell_folder, cell_identity
from ablate.config.register import plain


def identity(*overrides: str) -> str:
    return cell_identity(plain(compose_cell(overrides)))


@pytest.mark.parametrize(
    "override",
    [
        "seed=7",
        "runtime.threads=2",
        "runtime.device=cpu",
        "runtime.checkpoint_every=1",
        "runtime.output_dir=x",
        "study=other",
        "sweep.rerun=stale",
        "hydra.job.chdir=true",
        "optimizer.lr=3e-3",
        "rope_percentage=1",
    ],
)
def test_what_cannot_change_a_result_does_not_change_the_identity(override):
    assert identity(override) == identity()


@pytest.mark.parametrize(
    "override",
    [
        "attention=roper",
        "optimizer.lr=1e-3",
        "training.steps=999",
        "training.precision=bf16",
        "rope_percentage=0.5",
        "evaluation.seed=1",
        "seeds.data=3",
        "training.eval_every=100",
    ],
)
def test_what_can_change_a_result_changes_it(override):
    assert identity(override) != identity()


def test_a_value_that_the_scheme_has_no_use_for_is_not_part_of_it():
    assert identity("attention=none", "rope_percentage=0.5") == identity("attention=none")


def test_crossing_a_stream_with_the_seed_it_has_anyway_is_a_cell_of_its_own_for_every_seed():
    assert identity("seeds.init=3", "seed=3") == identity("seeds.init=3", "seed=4")


def test_the_folder_names_model_scheme_and_identity_and_is_safe():
    config = plain(compose_cell(["attention=roper_2022"]))
    assert cell_folder(config) == f"gpt-roper_2022-{cell_identity(config)[:8]}"
    config["model"]["_target_"] = "a../x y/..evil.Model"
    assert "/" not in cell_folder(config)
    assert " " not in cell_folder(config)

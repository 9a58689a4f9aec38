"""Every YAML under conf/ composes, passes the checks, and lists exactly what its constructor takes."""

import subprocess
import sys

import pytest

from ablate.config import preflight
from ablate.config.errors import ConfigError
from ablate.config.explain import compose_cell
from ablate.config.register import config_dir, plain, to_run_config
from ablate.config.signature import check_node

GROUPS = ("attention", "model", "task", "optimizer", "schedule", "experiment", "ablation")
OPTIONS = [f"{group}={file.stem}" for group in GROUPS for file in sorted((config_dir() / group).glob("*.yaml"))]


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_composes_and_passes_the_checks(option, text_file):
    config = compose_cell([option])
    if "path" in config.task:
        config.task.path = str(text_file)
    assert preflight.check(to_run_config(config)) == []


@pytest.mark.parametrize("arm", [option for option in OPTIONS if option.startswith("ablation=")])
def test_every_ablation_arm_takes_effect(arm):
    from ablate.config import ablation

    config = compose_cell([arm])
    ablation.check(config, [arm], plain(config))


def test_an_arm_that_changes_nothing_is_refused():
    from ablate.config import ablation

    overrides = ["ablation=tied_head", "model.tied=true"]
    config = compose_cell(overrides)
    with pytest.raises(ConfigError, match="ablation=tied_head: changes nothing"):
        ablation.check(config, overrides, plain(config))


def test_the_reference_experiment_has_the_published_settings():
    config = plain(compose_cell(["experiment=copy_repeat"]))
    assert {key: config["task"][key] for key in ("seq_len", "substr_len", "rnd_len")} == {
        "seq_len": 512,
        "substr_len": 16,
        "rnd_len": 12,
    }
    assert (config["model"]["width"], config["model"]["layers"], config["model"]["heads"]) == (128, 3, 4)
    assert config["optimizer"]["lr"] == 2.5e-4
    assert (config["training"]["steps"], config["training"]["batch_size"]) == (16 * 256, 16)
    assert config["rope_percentage"] == 1.0
    assert config["training"]["grad_clip"] == 1.0


class Ours:
    def __init__(self, width: int, /, *, rate: float, names: list[str], flag: bool = False) -> None: ...


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"rate": "x", "names": [], "flag": True}, r"node\.rate='x': .*number"),
        ({"rate": 1.0, "names": ["a", 1], "flag": True}, r"node\.names=\['a', 1\]: .*string"),
        ({"rate": 1.0, "names": [], "flag": 1}, r"node\.flag=1: .*boolean"),
        ({"rate": True, "names": [], "flag": True}, r"node\.rate=True: .*number"),
        ({"names": [], "flag": True}, r"node\.rate: missing; Ours needs it"),
        (
            {"rate": 1.0, "names": [], "flag": True, "nmaes": 1},
            r"node\.nmaes=1: Ours has no key 'nmaes'; did you mean names",
        ),
        ({"width": 3, "rate": 1.0, "names": [], "flag": True}, r"Ours has no key 'width'"),
    ],
)
def test_our_constructors_are_checked_for_names_and_types(node, message):
    with pytest.raises(ConfigError, match=message):
        check_node("node", {"_target_": f"{__name__}.Ours", **node})


def test_a_whole_number_is_a_valid_float():
    check_node("node", {"_target_": f"{__name__}.Ours", "rate": 1, "names": [], "flag": False})


def test_a_foreign_constructor_is_checked_for_names():
    check_node("optimizer", {"_target_": "torch.optim.Adam", "_partial_": True, "lr": 1e-3})
    with pytest.raises(
        ConfigError, match=r"optimizer\.momentun=0\.9: SGD has no key 'momentun'; did you mean momentum"
    ):
        check_node("optimizer", {"_target_": "torch.optim.SGD", "momentun": 0.9})


def test_checking_a_config_does_not_import_torchs_compiler():
    """It takes a second, at every start; a run needs it, a plan does not."""
    code = (
        "import sys\n"
        "from ablate.config import preflight\n"
        "from ablate.config.explain import compose_cell\n"
        "from ablate.config.register import to_run_config\n"
        "preflight.check(to_run_config(compose_cell(['schedule=cosine', 'optimizer=adamw'])))\n"
        "print('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

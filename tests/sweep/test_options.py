"""The options of the launchers: every bad one is told in one line before anything is written."""

import socket
from pathlib import Path

import pytest
import yaml

from ablate.config.errors import ConfigError
from ablate.sweep import options
from tests.sweep.clusters import needs_ray, needs_slurm, needs_submitit

CONF = Path(__file__).resolve().parents[2] / "conf/hydra/launcher"
COUNT = "must be a whole number of at least 1"
BAD = [
    ("local", "n_jobs=0", f"{COUNT}, or -1 for one per core"),
    ("local", "n_jobs=-2", f"{COUNT}, or -1 for one per core"),
    ("local", "n_jobs=two", "Value 'two' of type 'str' could not be converted to Integer"),
    ("local", "n_jobs=1.5", "Value '1.5' of type 'float' could not be converted to Integer"),
    ("local", "batch_size=0", f"{COUNT}, or auto"),
    ("local", "batch_size=some", f"{COUNT}, or auto"),
    ("local", "pre_dispatch=0", "must be a number of runs, n_jobs, 2*n_jobs or the like, or all"),
    ("local", "pre_dispatch=2*jobs", "must be a number of runs, n_jobs, 2*n_jobs or the like, or all"),
    ("submitit_local", "n_jobs=0", COUNT),
    ("submitit_local", "n_jobs=-1", COUNT),
    ("submitit_local", "n_jobs=true", COUNT),
    ("submitit_local", "timeout_min=0", COUNT),
    ("submitit_local", "poll_s=0", "must be a number of seconds above 0"),
    ("submitit_local", "poll_s=soon", "must be a number of seconds above 0"),
    ("submitit_local", "poll_s=.nan", "must be a number of seconds above 0"),
    ("submitit_local", "max_num_timeout=-1", "must be a whole number of at least 0"),
    ("submitit_local", "name='a b'", "must be a name without spaces and slashes"),
    ("submitit_slurm", "timeout_min=null", COUNT),
    ("submitit_slurm", "timeout_min=1h", COUNT),
    ("submitit_slurm", "signal_delay_s=-5", "must be a whole number of at least 0"),
    ("submitit_slurm", "mem_gb=0", "must be a number of GB above 0, or null"),
    ("submitit_slurm", "mem_gb=4G", "must be a number of GB above 0, or null"),
    ("submitit_slurm", "gpus_per_node=-1", "must be a whole number of at least 0, or null"),
    ("submitit_slurm", "cpus_per_task=0", f"{COUNT}, or null"),
    ("submitit_slurm", "array_parallelism=0", COUNT),
    ("submitit_slurm", "max_submitted=0", f"{COUNT}, or null"),
    ("submitit_slurm", "setup=module", "must be a list of commands, or null"),
    ("submitit_slurm", "additional_parameters=mail", "must be a mapping such as {mail-type: END}"),
    ("submitit_slurm", "partition=[a,b]", "must be text, or null"),
    ("ray", "n_jobs=0", COUNT),
    ("ray", "cpus_per_run=0", "must be above 0; above 1 a whole number"),
    ("ray", "cpus_per_run=1.5", "must be above 0; above 1 a whole number"),
    ("ray", "gpus_per_run=-1", "must be 0 or more; above 1 a whole number"),
    ("ray", "gpus_per_run=1.5", "must be 0 or more; above 1 a whole number"),
    ("ray", "address=null", "must be local, auto, HOST:PORT or ray://HOST:PORT"),
]
UNKNOWN = [
    ("local", "n_job", "did you mean hydra.launcher.n_jobs?"),
    ("submitit_local", "gpus_per_node", "did you mean"),
    ("submitit_local", "timeout_mins", "did you mean hydra.launcher.timeout_min?"),
    ("submitit_slurm", "partitions", "did you mean hydra.launcher.partition?"),
    ("ray", "num_cpus", "did you mean"),
]


@pytest.mark.parametrize(("launcher", "given", "rule"), BAD)
def test_a_bad_value_is_told_before_anything_is_written(cli, tiny, launcher, given, rule):
    result = cli("-m", f"hydra/launcher={launcher}", f"hydra.launcher.{given}", *tiny, "seed=0,1")
    key, _, value = given.partition("=")
    shown = {"null": "None", "true": "True", "'a b'": "a b", "[a,b]": "['a', 'b']"}.get(value, value)
    assert result.code == 2
    assert result.err.startswith(f"ablate: hydra.launcher.{key}={shown}: {rule}")
    assert result.err.count("\n") == 1
    assert not Path("multirun").exists()


@pytest.mark.parametrize(("launcher", "key", "hint"), UNKNOWN)
def test_an_unknown_key_is_told_with_the_nearest(cli, tiny, launcher, key, hint):
    result = cli("-m", f"hydra/launcher={launcher}", f"+hydra.launcher.{key}=1", *tiny, "seed=0,1")
    assert result.code == 2
    assert result.err.startswith(f"ablate: hydra.launcher.{key}: no such key; {hint}")
    assert result.err.count("\n") == 1
    assert not Path("multirun").exists()


def test_an_unknown_key_of_a_file_of_the_users_own_is_told_too(cli, tiny, in_tmp):
    (in_tmp / "own/hydra/launcher").mkdir(parents=True)
    (in_tmp / "own/hydra/launcher/site.yaml").write_text("defaults: [ray]\nnjobs: 4\n")
    result = cli("-m", "--config-dir=own", "hydra/launcher=site", *tiny, "seed=0")
    assert result.code == 2
    assert result.err == "ablate: hydra.launcher.njobs: no such key; did you mean hydra.launcher.n_jobs?\n"


def test_an_option_that_is_taken_away_is_missed(cli, tiny):
    result = cli("-m", "~hydra.launcher.n_jobs", "hydra/launcher=submitit_local", *tiny)
    assert result.code == 2
    assert result.err == f"ablate: hydra.launcher.n_jobs: {COUNT}\n"


def test_all_faults_are_told_at_once():
    given = {"_target_": "hydra_plugins.ablate_launchers.RayLauncher", "address": 3, "n_jobs": 0, "cpus_per_run": 1}
    with pytest.raises(ConfigError) as error:
        options.check(given)
    told = [line.partition(":")[0] for line in str(error.value).splitlines()]
    assert told == ["hydra.launcher.address=3", "hydra.launcher.n_jobs=0", "hydra.launcher.gpus_per_run"]


@pytest.mark.parametrize("path", sorted(CONF.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_launcher_of_ours_has_a_table_that_knows_its_options(path):
    """What is computed at the start is left out: its table has it among others."""
    config = yaml.safe_load(path.read_text())
    target = config.get("_target_", "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher")
    kind = options.LAUNCHERS[target]
    named = {key for key in config if key not in ("defaults", "_target_")}
    assert named <= {*kind.model_fields, *kind.more}
    options.check({"_target_": target, **{key: _resolved(config[key]) for key in named}})


def _resolved(value):
    return {"${runtime.threads}": 1, "${hydra.sweep.dir}/.submitit": "a/.submitit"}.get(
        str(value), 2 if str(value).startswith("${local_workers") else value
    )


@pytest.mark.parametrize(
    "more", [{"pre_dispatch": "all"}, {"pre_dispatch": "3 * n_jobs"}, {"pre_dispatch": 8}, {"n_jobs": -1}]
)
def test_what_joblib_takes_is_taken(more):
    target = "hydra_plugins.hydra_joblib_launcher.joblib_launcher.JoblibLauncher"
    options.check({"_target_": target, "n_jobs": 2, "batch_size": "auto", "pre_dispatch": "n_jobs", **more})


@needs_submitit
def test_what_submitit_takes_for_slurm_is_taken_too():
    target = "hydra_plugins.ablate_launchers.SubmititSlurmLauncher"
    least = {"submitit_folder": "a", "poll_s": 5, "timeout_min": 10, "signal_delay_s": 90}
    options.check({"_target_": target, **least, "comment": "x", "exclusive": True, "account": 1234, "mem_gb": 1.5})


def test_a_launcher_of_somebody_else_is_left_alone():
    options.check({"_target_": "mine.Launcher", "n_jobs": "many"})


def test_one_per_core_is_told_as_such(cli, tiny, monkeypatch, sweep):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(7)))
    sweep("attention=rope", "seed=0", "runtime.device=cpu")
    out = cli(
        "-m", "hydra/launcher=local", "hydra.launcher.n_jobs=-1", *tiny, "seed=range(9)", "sweep.dry_run=true"
    ).out
    assert "at 7 at a time" in out


# what is not here --------------------------------------------------------------------------------------------------


@needs_submitit
def test_slurm_that_is_not_installed_is_told_but_a_dry_run_needs_none(cli, tiny, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    slurm = ("-m", "hydra/launcher=submitit_slurm", *tiny, "seed=0,1")
    result = cli(*slurm)
    assert result.code == 2
    assert result.err.startswith("ablate: hydra/launcher=submitit_slurm: sbatch, squeue, scancel not found; ")
    assert not Path("multirun").exists()
    assert cli(*slurm, "sweep.dry_run=true").code == 0


@pytest.mark.parametrize(
    ("launcher", "refused"),
    [
        ("local", True),
        ("basic", True),
        pytest.param("submitit_local", True, marks=needs_submitit),
        pytest.param("submitit_slurm", False, marks=needs_submitit),
        pytest.param("ray", True, marks=needs_ray),
    ],
)
def test_a_gpu_is_asked_for_here_only_where_the_run_trains_here(cli, tiny, monkeypatch, launcher, refused):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = cli("-m", f"hydra/launcher={launcher}", *tiny, "runtime.device=cuda", "sweep.dry_run=true")
    assert result.code == (2 if refused else 0)
    assert ("torch sees no CUDA device here" in result.err) == refused


@pytest.mark.parametrize(("address", "elsewhere"), [("local", False), ("auto", True), ("head:6379", True)])
def test_a_ray_cluster_is_elsewhere(address, elsewhere):
    target = "hydra_plugins.ablate_launchers.RayLauncher"
    assert options.trains_elsewhere({"_target_": target, "address": address}) == elsewhere


@needs_slurm
@pytest.mark.xdist_group("slurm")
def test_a_run_that_asks_for_a_gpu_on_a_node_without_one_fails_there(spawn, tiny):
    given = ("-m", "hydra/launcher=submitit_slurm", "hydra.launcher.poll_s=0.5", "runtime.device=cuda", "study=gpu")
    process = spawn(*given, *tiny, "seed=0")
    out, err = process.communicate(timeout=240)
    assert process.returncode == 1, err
    assert "torch sees no CUDA device here" in out


@needs_ray
def test_gpus_for_runs_on_ray_here_must_be_here(cli, tiny, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    result = cli("-m", "hydra/launcher=ray", "hydra.launcher.gpus_per_run=2", *tiny, "seed=0")
    assert result.code == 2
    assert result.err.startswith("ablate: hydra.launcher.gpus_per_run=2: must be at most the 1 GPUs")


@needs_ray
@pytest.mark.parametrize("address", ["auto", "127.0.0.1:{port}"])
def test_no_cluster_to_join_is_told_before_anything_is_written(cli, tiny, monkeypatch, address):
    """Another test's instance may be on this machine, which `auto` would find; hence Ray's answer is made up."""

    def no_cluster(**_):
        raise ConnectionError("Could not find any running Ray instance.\nPlease specify one.")

    monkeypatch.setattr("ray.init", no_cluster)
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = address.format(port=server.getsockname()[1])
        result = cli("-m", "hydra/launcher=ray", f"hydra.launcher.address={given}", *tiny, "seed=0")
    assert result.code == 2
    told = (
        f"ablate: hydra.launcher.address={given}: no Ray cluster to join (Could not find any running Ray instance.); "
    )
    assert result.err.startswith(told)
    assert result.err.count("\n") == 1
    assert not Path("multirun").exists()

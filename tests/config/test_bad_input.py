"""Bad input: one clear line that names key, value and rule or nearest choice, exit code 2, nothing written."""

import os
import re
import shlex
from pathlib import Path

import pytest

ONE_RUN = [
    (
        ["+model.attention.rope_precentage=0.25"],
        r"model\.attention\.rope_precentage=0\.25: .*did you mean rope_percentage",
    ),
    (["hydra.swep.dir=x"], r"hydra\.swep\.dir: no such key; did you mean hydra\.sweep\.dir"),
    (["sede=1"], r"sede=1: no such key; did you mean seed"),
    (["model/atention=rope"], r"model/atention=rope: no such group; did you mean model/attention"),
    (["attention=ropre"], r"attention=ropre: no such option; did you mean rope or roper.*options: .*none, .*rope, "),
    (["model/attention=ropre"], r"attention=ropre: no such option; did you mean rope"),
    (["rope_percentage=1.5"], r"rope_percentage=1\.5: must lie between 0 and 1"),
    (["attention=none", "rope_percentage=1.5"], r"rope_percentage=1\.5: must lie between 0 and 1"),
    (["rope_percentage=-0.1"], r"rope_percentage=-0\.1: must lie between 0 and 1"),
    (["rope_percentage=0.05"], r"rope_percentage=0\.05.*0\.25"),
    (["model.width=4"], r"rope_percentage=1\.0.*head of width 1"),
    (["model.width=33"], r"model\.width=33.*model\.heads=4.*32 or 36"),
    (["model.layers=0"], r"model\.layers=0: must be at least 1"),
    (["model.heads=2.5"], r"model\.heads=2\.5: .*integer"),
    (["model.dropout=1.5"], r"model\.dropout=1\.5"),
    (["model.norm=after"], r"model\.norm='after': .*'pre' or 'post'"),
    (["model.init=normal"], r"model\.init='normal': .*'xavier' or 'he_uniform'"),
    (["model=bigrm"], r"model=bigrm: no such option; did you mean bigram"),
    (["model=bigram", "attention=rope"], r"model\.attention=.*Bigram has no key 'attention'"),
    (
        ["attention=learned", "model.attention.length=32"],
        r"model\.attention\.length=32: must be at least task.seq_len=64",
    ),
    (["attention=t5", "model.attention.buckets=1"], r"model\.attention\.buckets=1: must be at least 2"),
    (["training.steps=-1"], r"training\.steps=-1: must be at least 1"),
    (["training.steps=abc"], r"training\.steps=abc: .*Integer"),
    (["training.stepz=3"], r"training\.stepz=3: no such key; did you mean training\.steps"),
    (["+trainin.steps=3"], r"trainin: no such key; did you mean training"),
    (["training.precision=fp8"], r"training\.precision=fp8: .*float32, bf16"),
    (["training.grad_clip=-1"], r"training\.grad_clip=-1\.0: must be above 0"),
    (["task.seq_len=4"], r"task\.seq_len=4: must be at least 15"),
    (["task=copyrepeat"], r"task=copyrepeat: no such option; did you mean copy_repeat"),
    (["task=addition", "task.max_digits=0"], r"task\.max_digits=0: must be between 1 and 9"),
    (["task=addition", "task.max_digits=1"], r"evaluation\.sequences=2048: .*about 10 different problems"),
    (["task=parity", "task.seq_len=6"], r"task: only 30 different problems .*\(given seq_len=6, shortest=1\)"),
    (["task=shakespeare", "task.path=no.txt"], r"task\.path=no\.txt: cannot be read"),
    (["evaluation.sequences=0"], r"evaluation\.sequences=0: must be at least 1"),
    (["optimizer.lr=-1"], r"optimizer: Invalid learning rate: -1 \(given lr=-1"),
    (["optimizer.lr=abc"], r"optimizer\.lr='abc': must be a number"),
    (["optimizer.lrr=1"], r"optimizer\.lrr=1: no such key in optimizer=adam; did you mean optimizer\.lr"),
    (
        ["task=addition", "task.digitz=1", "training.foo=2"],
        r"task\.digitz=1: no such key in task=addition; did you mean",
    ),
    (["task=copy", "task.zzqq=1"], r"task\.zzqq=1: no such key in task=copy; valid: task\.\w+, task\."),
    (["training.lr=1"], r"training\.lr=1: no such key; did you mean optimizer\.lr\?"),
    (["width=8"], r"width=8: no such key; did you mean model\.width\?"),
    (["attention=none", "model.attention.bse=5"], r"bse=5: no such key in attention=none; there are none"),
    (["training=5"], r"training: holds keys, not a value; did you mean training\.steps"),
    (["optimizer=adan"], r"optimizer=adan: no such option; did you mean adam or adamw"),
    (["+optimizer.lrate=1"], r"optimizer\.lrate=1: Adam has no key 'lrate'"),
    (["model._target_=ablate.models.gpt.GTP"], r"model\._target_=ablate\.models\.gpt\.GTP: cannot be imported"),
    (["~model.width"], r"model\.width: missing"),
    (["seed=null"], r"seed=null"),
    (["seed=-1"], r"seed=-1: must be at least 0"),
    (["seed"], r"seed: has no value; write seed=VALUE"),
    (["study=a/b"], r"study='a/b'.*try study=a_b"),
    (["study=.."], r"study='\.\.'"),
    (["+foo=1"], r"foo: no such key; valid: evaluation, model"),
    (["hydra/launcher=locl"], r"hydra/launcher=locl: no such option; did you mean local"),
    (["sweep.metric=eval/los"], r"sweep\.metric=eval/los: no final metric of this run; did you mean eval/loss"),
    (["sweep.metric=eval/exact_match"], r"sweep\.metric=eval/exact_match: no final metric of this run"),
    (["evaluation.lengths=[64,0]"], r"evaluation\.lengths=0: must be at least 1"),
    (["evaluation.lengths=[4]"], r"evaluation\.lengths=4: not possible with this task \(task\.seq_len=4"),
    (["evaluation.lengths=[x]"], r"evaluation\.lengths.*'x'.*[Ii]nteger"),
    (["evaluation.problems=-1"], r"evaluation\.problems=-1: must be at least 0"),
    (["sweep.direction=low"], r"sweep\.direction=low: .*lower, higher"),
    (["sweep.transform=ln"], r"sweep\.transform=ln: .*none, log"),
    (["sweep.threshold=nan"], r"sweep\.threshold=nan: must be a finite number"),
    (["sweep.margin=0"], r"sweep\.margin=0: must be a number above 0, such as 0\.01, or per cent"),
    (["sweep.margin=small"], r"sweep\.margin=small: must be a number above 0"),
    (["sweep.margin=0.1", "sweep.transform=log"], r"sweep\.margin=0\.1: must be in per cent"),
    (["sweep.max_seeds=9"], r"sweep\.max_seeds=9: has no effect without sweep\.until=decided"),
    (["sweep.block=0", "sweep.until=decided"], r"sweep\.block=0: must be at least 1"),
    (["sweep.until=decide"], r"sweep\.until=decide: .*planned, decided"),
    (["sweep.until=decided"], r"sweep\.until=decided: adds seeds to a sweep; use -m"),
    (["ablation=tied_haed"], r"ablation=tied_haed: no such option; did you mean tied_head"),
    (["ablation=tied_head", "model.tied=false"], r"ablation=tied_head: model\.tied=True is cancelled"),
]


def followed(arguments, message):
    """The command that a message proposes, None where it gives a rule only."""
    if command := re.search(r"python -m ablate\.run (.+)$", message):
        return shlex.split(command[1])
    if not (proposed := re.search(r"; (?:write|try) (\S+=.+)$", message)) or proposed[1].endswith("=VALUE"):
        return None
    (right,) = shlex.split(proposed[1])
    key = right.partition("=")[0]
    wrong = [one for one in arguments if key in re.split(r"[=:]", one.strip(" \"'-"))[0]]
    return [*(one for one in arguments if one not in wrong), right]


def refused(result, message: str) -> None:
    assert result.code == 2, result
    assert message is not None
    lines = result.err.strip().splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("ablate: ")
    assert re.search(message, lines[0]), lines[0]
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"), ONE_RUN, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_one_run_refuses_before_anything_is_written(cli, arguments, message):
    result = cli(*arguments)
    refused(result, message)
    command = followed(arguments, result.err.strip())
    if command is not None:  # advice is accepted
        assert cli(*command, "sweep.dry_run=true").code == 0, command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["attention=rope,ropre"], r"attention=ropre: no such option"),
        (["seeds=range(10)"], r"seeds: holds keys, not a value; did you mean seed\?"),
        (["sede=1,2"], r"sede=1: no such key; did you mean seed"),
        (
            ["attention=rope", "model.attention.bse=500"],
            r"bse=500: no such key in attention=rope; did you mean model\.attention\.base",
        ),
        (
            ["attention=rope,none", "model.attention.base=500"],
            r"model\.attention\.base=500: no such key in attention=none",
        ),
        (["model.width=32,33"], r"model\.width=33.*model\.heads=4"),
        (["training.steps=10,abc"], r"training\.steps=abc"),
        (["seed=1,1"], r"seed=1: given more than once"),
        (["optimizer.lr=interval(0.1,0.2)"], r"a grid needs values"),
        (["hydra.launcher.n_job=2"], r"hydra\.launcher\.n_job: no such key; did you mean hydra\.launcher\.n_jobs"),
        (["attention=rope", "sweep.until=decided"], r"sweep\.until=decided: needs at least two variants"),
        (
            ["attention=rope,none", "seed=range(4)", "sweep.until=decided", "sweep.max_seeds=9"],
            r"sweep\.max_seeds=9: only 4 seeds are given",
        ),
        (["study=x,y"], r"study: these runs belong to several studies \(multirun/x, multirun/y\)"),
    ],
)
def test_a_sweep_refuses_before_the_first_job(cli, arguments, message):
    result = cli("-m", *arguments)
    result = result._replace(err=result.err.splitlines()[0])
    refused(result, message)


def test_every_wrong_cell_of_a_sweep_is_told(cli):
    result = cli("-m", "model.width=33,32,35")
    assert result.code == 2
    assert ["33" in line or "35" in line for line in result.err.splitlines()] == [True, True]


def test_several_values_without_m_get_the_corrected_command(cli):
    result = cli("attention=roper", "seed=range(3)")
    assert result.code == 2
    assert "python -m ablate.run -m attention=roper 'seed=range(3)'" in result.err


def test_text_with_special_characters_gets_the_quoted_form(cli):
    result = cli("runtime.note=50% rope #1")
    assert result.code == 2
    assert """write 'runtime.note="50% rope #1"'""" in result.err


def test_an_unwritable_study_folder_is_refused(cli, in_tmp):
    (in_tmp / "file").write_text("")
    for arguments in (["runtime.output_dir=file"], ["-m", "runtime.output_dir=file", "seed=1,2"]):
        result = cli(*arguments)
        assert result.code == 2
        assert "file" in result.err
        assert "cannot be made" in result.err
    if Path("/proc/self").exists():
        result = cli("runtime.output_dir=/proc/ablate")
        assert result.code == 2
        assert "cannot be written" in result.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(cli, in_tmp):
    (in_tmp / "locked").mkdir(mode=0o500)
    result = cli("runtime.output_dir=locked")
    assert result.code == 2
    assert "cannot be written" in result.err

"""The speed benchmark from end to end with as few steps as it can do, and the gate its clock stands at."""

import io
import json
import os

import pytest
from rich.console import Console

from benchmarks import engines, lanes, startup, throughput
from benchmarks.figures import Size, Summary
from benchmarks.lanes import Gate, Lane, Mode
from benchmarks.throughput import MATMUL, MATMUL_STEPS, OURS, PEER, Results

TINY = (
    "attention=roper",
    "model.width=8",
    "model.heads=2",
    "model.layers=1",
    "task.seq_len=24",
    "task.substr_len=3",
    "task.rnd_len=3",
    "training.batch_size=4",
    "evaluation.sequences=8",
    "evaluation.curve_sequences=8",
)
SIZE = Size(name="hand", overrides=(), batch=2, seq_len=5, width=4, layers=1, heads=2, feed_forward=4, vocabulary=5)
ALONE, TOGETHER = Mode("alone", 1, 1), Mode("together", 2, 1)


class Script:
    """A connection whose far end is written down beforehand."""

    def __init__(self, *orders):
        self.orders, self.sent = list(orders), []

    def send(self, value):
        self.sent.append(value)

    def recv(self):
        return self.orders.pop(0)


@pytest.fixture
def results():
    """Windows of 10 steps: ours 5 s and 2 s alone and 10 s and 5 s with two processes, the peer twice as long."""
    seconds = {
        "alone": {OURS: [5.0, 2.0], PEER: [10.0, 4.0], MATMUL: [1.0, 1.0]},
        "together": {OURS: [10.0, 5.0], PEER: [20.0, 10.0], MATMUL: [1.0, 1.0]},
    }
    data_seconds = {"alone": 0.1, "together": 0.2}
    return Results(size=SIZE, steps=10, modes=[ALONE, TOGETHER], seconds=seconds, data_seconds=data_seconds)


def test_a_gate_lets_through_the_warm_up_and_then_as_many_steps_as_are_ordered():
    connection = Script(3, 1, 0)
    gate = Gate(connection)
    steps = []
    while not gate():
        steps.append(len(connection.sent))
    assert steps == [0] * lanes.WARM_UP + [1] * 3 + [2]
    assert len(connection.sent) == 3
    assert all(seconds >= 0 for seconds in connection.sent)


def test_tokens_are_those_of_all_processes_together(results):
    assert results.rates(OURS, ALONE) == [2.0, 5.0]
    assert results.rates(OURS, TOGETHER) == [2.0, 4.0]
    assert results.tokens(OURS, ALONE) == Summary(35.0, 20.0, 50.0)


def test_the_matmul_share_is_the_counted_flops_over_those_of_the_matrix_engine(results):
    flops = 3 * (2 * 10 * (64 + 128 + 20) + 2 * 2 * 4 * 15 * 2)
    expected = flops * 2.0 / (MATMUL_STEPS * engines.MATMUL_FLOPS)
    assert results.matmul_share(OURS, ALONE).low == pytest.approx(expected)


def test_the_data_share_is_that_of_the_time_one_process_takes_for_a_step(results):
    assert results.data_share(ALONE) == pytest.approx(0.1 * 3.5)
    assert results.data_share(TOGETHER) == pytest.approx(0.2 * 3.0 / 2)


def test_the_table_shows_each_engine_beside_the_peer(results):
    console = Console(width=200, file=io.StringIO())
    console.print(throughput.table(results, [OURS, PEER]))
    text = console.file.getvalue()
    assert "2.00 [2.00, 2.00]" in text
    assert text.count("labml-nn ") >= 2
    assert "GFLOP/s" in text


def test_the_headline_says_what_was_trained_and_how_often(results):
    assert throughput.headline(results).startswith("hand: seq 5, batch 2, width 4, layers 1, heads 2")
    assert throughput.headline(results).endswith("10 steps a window, 2 rounds")


def test_the_modes_use_all_cores_one_core_and_each_core():
    assert [mode[1:] for mode in lanes.modes(4)] == [(1, 4), (1, 1), (4, 1)]


def test_processes_see_their_threads_and_this_one_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with lanes._environment({"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "3"}):
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "3"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_every_round_of_a_run_times_every_lane():
    results = throughput.measure(engines.size_of("tiny", TINY), 2, 2, [OURS], [TOGETHER])
    assert len(results.seconds["together"][OURS]) == 2
    assert all(seconds > 0 for seconds in results.seconds["together"][OURS])
    assert results.data_seconds["together"] > 0


def test_a_process_that_dies_is_told_and_none_is_left(capfd):
    with (
        pytest.raises(RuntimeError, match="no such engine, alone: a process died"),
        lanes.lanes(["no such engine"], SIZE, [ALONE]),
    ):
        pass
    assert "KeyError" in capfd.readouterr().err


def test_a_lane_that_is_killed_leaves_no_process():
    lane = Lane(OURS, ALONE, engines.size_of("tiny", TINY))
    lane.kill()
    assert all(process.exitcode is not None for process in lane._processes)


def test_the_peer_trains_on_the_batches_of_our_run():
    pytest.importorskip("labml_nn.transformers.rope.value_pe")
    import torch

    size = engines.size_of("tiny", TINY)
    batches = engines._peer_batches(engines.config_of(size.overrides))
    model = engines.LabmlModel(size)
    assert model(batches[0].inputs_BT).shape == (size.seq_len, size.batch, size.vocabulary)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    before = [parameter.clone() for parameter in model.parameters()]
    engines.peer_step(model, optimizer, batches[0])
    assert all(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


def test_the_peer_trains_until_its_gate_says_stop():
    pytest.importorskip("labml_nn.transformers.rope.value_pe")
    import torch

    asked = iter([False, False, True])
    engines.labml_nn(engines.size_of("tiny", TINY), torch.get_num_threads(), lambda: next(asked))
    assert next(asked, None) is None


def test_the_peer_has_as_many_parameters_as_our_model():
    pytest.importorskip("labml_nn.transformers.rope.value_pe")
    from ablate.config.build import build

    size = engines.size_of("tiny", TINY)
    ours = build(engines.config_of(size.overrides), engines.CPU).parameters
    assert sum(parameter.numel() for parameter in engines.LabmlModel(size).parameters()) == ours


def test_the_command_measures_one_size_and_writes_all_of_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(throughput.SIZES, "default", TINY)
    monkeypatch.setattr(throughput, "modes", lambda cores: [ALONE])
    monkeypatch.setattr(throughput.startup, "seconds_to_first_step", lambda: 1.5)
    monkeypatch.setattr(throughput.importlib.util, "find_spec", lambda name: None)
    throughput.main(["--size", "default", "--steps", "1", "--repeats", "1", "--json", str(tmp_path / "all.json")])
    written = json.loads((tmp_path / "all.json").read_text())
    assert written["sizes"]["default"]["size"]["width"] == 8
    assert len(written["sizes"]["default"]["seconds"]["alone"][MATMUL]) == 1
    assert written["start_up_seconds"] == [1.5]
    assert "1.50 [1.50, 1.50] s" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--steps", "0"], ["--repeats", "two"]])
def test_a_number_of_steps_or_rounds_that_makes_no_sense_is_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        throughput.main(arguments)
    assert "must be a whole number, at least 1" in capsys.readouterr().err


def test_the_start_is_timed_until_a_real_run_has_logged_its_step():
    assert startup.seconds_to_first_step(TINY) > 0


def test_a_run_that_does_not_start_is_told():
    with pytest.raises(RuntimeError, match=r"model\.widht"):
        startup.seconds_to_first_step(["model.widht=8"])

"""What a run computes, where wrong numbers looked right: scores of NaN, far positions, floors of floats, speed."""

import json
import math
from copy import copy
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from ablate.models.attention.alibi import Alibi
from ablate.models.attention.fire import Fire
from ablate.models.attention.none import NoPosition
from ablate.models.attention.sinusoidal import Sinusoidal
from ablate.models.attention.t5 import T5, bucket_starts
from ablate.models.attention.xpos import XPos
from ablate.models.cache import LayerCache
from ablate.models.exact import floor_share, fraction_of
from ablate.models.gpt import GPT
from ablate.models.rotary import Rotation, rotary_width
from ablate.records import RunRecord, Status, StudyFolder
from ablate.tasks.base import IGNORED, Batch
from ablate.tasks.copy_repeat import CopyRepeat
from ablate.training.evaluation import evaluate, score
from ablate.training.generation import NotFiniteError, Sampling, generate
from ablate.training.schedules import warmup_cosine
from ablate.training.scoring import Scorer
from ablate.training.seeds import initialise
from analysis import mixture
from analysis.compare import main as compare
from analysis.mixture import mixed_arithmetic
from benchmarks import engines, lanes, throughput
from benchmarks.figures import ImpossibleError

# W7: metrics of a model that gives NaN


class Spoilt(torch.nn.Module):
    """Logits of a bigram, spoilt by `value` at one place of the first sequence: a position and a token."""

    def __init__(self, value, place, token, vocabulary=5):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(vocabulary, vocabulary, generator=torch.Generator().manual_seed(1)))
        self.value, self.place, self.token = value, place, token

    def forward(self, tokens_BT):
        logits_BTV = self.table[tokens_BT].clone()
        logits_BTV[0, self.place, self.token] = self.value
        return logits_BTV


def data(sequences=6, length=8, vocabulary=5):
    tokens = torch.randint(0, vocabulary, (sequences, length + 1), generator=torch.Generator().manual_seed(2))
    targets = tokens[:, 1:].clone()
    targets[:, :2] = IGNORED
    return Batch(tokens[:, :-1], targets)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 7])
def test_w7_one_logit_that_is_not_finite_leaves_the_set_without_any_score(value, place):
    for batch_size in (2, 6):
        found = score(Spoilt(value, place, 3), data(), batch_size=batch_size)
        assert all(math.isnan(x) for x in found.evaluation[:4])
        assert all(math.isnan(x) for x in found.accuracy_by_position(4).values())
        assert found.evaluation.sequences == 6


def test_w7_minus_infinity_masks_a_token_and_is_infinite_only_for_the_target():
    batch = data()
    target = int(batch.targets_BT[0, 7])
    masked = evaluate(Spoilt(-math.inf, 7, (target + 1) % 5), batch, batch_size=6)
    assert all(math.isfinite(x) for x in masked)
    logits = Spoilt(-math.inf, 7, (target + 1) % 5)(batch.inputs_BT).double()
    right = [
        float(logits[b, t].argmax() == batch.targets_BT[b, t])
        for b in range(6) for t in range(8) if batch.targets_BT[b, t] != IGNORED
    ]  # fmt: skip
    assert masked.accuracy == pytest.approx(sum(right) / len(right))
    assert all(math.isnan(x) for x in evaluate(Spoilt(-math.inf, 7, target), batch, batch_size=6)[:4])


class Broken(torch.nn.Module):
    """A bigram whose rows are NaN after token `after`, so a text goes wrong once it has written that."""

    def __init__(self, after, vocabulary=5):
        super().__init__()
        table = torch.full((vocabulary, vocabulary), -5.0)
        table[torch.arange(vocabulary), (torch.arange(vocabulary) + 1) % vocabulary] = 5.0
        table[after] = math.nan
        self.table = torch.nn.Parameter(table)

    def forward(self, tokens_BT):
        return self.table[tokens_BT]


@pytest.mark.parametrize("sampling", [None, Sampling(), Sampling(top_k=2)])
def test_w7_no_token_is_chosen_among_nan(sampling):
    with pytest.raises(
        NotFiniteError, match=r"the model's output is not finite \(NaN or inf\) after 3 tokens of a text"
    ):
        generate(Broken(after=3), [[1]], 5, sampling=sampling)
    assert generate(Broken(after=3), [[3, 0]], 2) == [[1, 2]]
    # A text that has ended goes on beside one that has not; what would follow it is nobody's business.
    assert generate(Broken(after=2), [[1], [3]], 4, stop=2) == [[2], [4, 0, 1, 2]]
    assert generate(Broken(after=2), [[1], [3]], 4, stop=2, sampling=Sampling(temperature=1e-310)) == [
        [2],
        [4, 0, 1, 2],
    ]


TINY_REVERSE = (
    "task=reverse", "task.seq_len=21", "task.symbols=4", "model.width=8", "model.heads=2", "model.layers=1",
    "training.steps=4", "training.log_every=2", "training.batch_size=4",
    "evaluation.sequences=16", "evaluation.curve_sequences=8", "evaluation.problems=6", "evaluation.curve_problems=3",
    "evaluation.lengths=[31]", "attention=none,alibi", "seed=range(2)", "study=s",
)  # fmt: skip
TRUE_ATTEND = Alibi.attend


def train_alibi(cli, monkeypatch, limit, eval_every=2):
    """A sweep of which `alibi` gives NaN from position `limit` on, in evaluation; exit code, record, log, folder."""

    def attend(self, q_BHTD, k_BHSD, v_BHSD, *, start=0, dropout=0.0):
        o_BHTD = TRUE_ATTEND(self, q_BHTD, k_BHSD, v_BHSD, start=start, dropout=dropout)
        places_T = torch.arange(k_BHSD.shape[2] - q_BHTD.shape[2], k_BHSD.shape[2])
        return o_BHTD if self.training else o_BHTD.masked_fill((places_T >= limit)[:, None], math.nan)

    monkeypatch.setattr(Alibi, "attend", attend)
    code = cli("-m", "hydra/launcher=basic", *TINY_REVERSE, f"training.eval_every={eval_every}").code
    folder = next(f for f in StudyFolder(Path("multirun/s")).runs() if (r := f.read()) and r.label == "alibi")
    log = [line for line in folder.read_metrics() if line["split"] == "eval"]
    return code, json.loads(folder.record.read_text()), log, folder


def nulls(values):
    return {name for name, value in values.items() if value is None}


def test_w7_nan_at_another_length_leaves_that_length_without_scores_and_diverged_for_who_asks(cli, monkeypatch, capsys):
    code, record, log, folder = train_alibi(cli, monkeypatch, limit=21)
    assert (code, record["status"]) == (0, "finished")
    there = {name for name in record["metrics"] if "@31" in name}
    assert nulls(record["metrics"]) == there
    assert {"eval/loss@31", "eval/accuracy@31", "eval/accuracy@31_se", "eval/accuracy@31[24-31]"} <= there
    assert len(log) == 2
    assert all({f"eval/{name}" for name in nulls(line)} == there for line in log)
    assert "eval/loss@31, eval/accuracy@31: null, because the model's output is not finite" in folder.log.read_text()
    for metric, runs in (("eval/accuracy@31", "0/2 (2 diverged)"), ("eval/accuracy", "2/2")):
        compare(["multirun/s", "alibi", "none", "--metric", metric])
        assert runs in capsys.readouterr().out


def test_w7_nan_in_generation_leaves_exact_match_without_a_value(cli, monkeypatch):
    answer, everywhere = Scorer._exact_match, torch.nn.Parameter(torch.full((64, 64), math.nan))

    def of_nothing(self, prompts):
        self = copy(self)
        self.model = Broken(after=0, vocabulary=64)
        self.model.table = everywhere
        return answer(self, prompts)

    monkeypatch.setattr(Scorer, "_exact_match", of_nothing)
    code, record, log, _ = train_alibi(cli, monkeypatch, limit=1000)
    assert (code, record["status"]) == (0, "finished")
    assert nulls(record["metrics"]) == {"eval/exact_match", "eval/exact_match_se"}
    assert all(nulls(line) == {"exact_match", "exact_match_se"} for line in log)


@pytest.mark.parametrize(("eval_every", "step"), [(2, 2), (9, 4)])
def test_w7_nan_at_the_own_length_ends_the_run_as_diverged_and_no_score_is_in_its_log(
    cli, monkeypatch, eval_every, step
):
    """On the way and at the end alike; the fault is one of evaluation only."""
    code, record, log, _ = train_alibi(cli, monkeypatch, limit=5, eval_every=eval_every)
    assert (code, record["status"], record["metrics"]) == (1, "diverged", {})
    assert record["error"]["message"] == f"evaluation loss is nan at step {step}"
    (line,) = log
    counts = {"step", "tokens", "seconds", "split", "sequences", "problems"}
    assert nulls(line) == set(line) - counts
    assert {"loss", "accuracy", "accuracy@31", "exact_match"} <= nulls(line)


# W7: xPos, and other schemes far out


def xpos(width, **changes):
    settings = {"rope_percentage": 1.0, "frequencies": "partial", "base": 10000.0, "gamma": 0.4, "scale_base": 512.0}
    return XPos(width, 1, **(settings | changes))


def xpos_by_its_formula(inputs, gamma, scale_base, base=10000.0):
    """The relative form in float64: pair j of query m and key i has the factor ζ_j^((m - i)/u), always at most 1."""
    q, k, v = inputs
    queries, keys, width = q.shape[-2], k.shape[-2], q.shape[-1]
    distance = (torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)).double()
    scores = torch.zeros(queries, keys, dtype=torch.float64)
    for j in range(width // 2):
        a, b = (torch.complex(x[0, 0, :, j], x[0, 0, :, j + width // 2]) for x in (q, k))
        turned = (a[:, None] * b.conj() * torch.exp(1j * distance * base ** (-2 * j / width))).real
        zeta = (2 * j / width + gamma) / (1 + gamma)
        scores += turned * torch.exp(distance.clamp(min=0) / scale_base * math.log(zeta))
    weights = (scores / math.sqrt(width)).masked_fill(distance < 0, -math.inf).softmax(-1)
    return weights @ v[0, 0]


def draws(queries, keys, width):
    generator = torch.Generator().manual_seed(5)
    q, k, v = (3 * torch.randn(1, 1, keys, width, generator=generator, dtype=torch.float64) for _ in range(3))
    return q[:, :, keys - queries :], k, v


@pytest.mark.parametrize(
    ("queries", "keys", "gamma", "scale_base"),
    [
        (3, 36_500, 0.4, 512.0),
        (2, 100_000, 0.4, 512.0),
        (700, 700, 0.4, 8.0),
        (700, 700, 1e-3, 1.0),
        (50, 90, 0.4, 1e-320),
    ],
)
def test_w7_xpos_is_finite_and_right_wherever_it_reads(queries, keys, gamma, scale_base):
    q, k, v = draws(queries, keys, 8)
    expected = xpos_by_its_formula((q, k, v), gamma, scale_base)
    scheme = xpos(8, gamma=gamma, scale_base=scale_base)
    assert torch.allclose(scheme(q, k, v)[0, 0], expected, atol=1e-9)
    for start in (0, 1000):
        found = scheme(q.float(), k.float(), v.float(), start=start)[0, 0].double()
        assert torch.allclose(found, expected, atol=2e-3 if start else 2e-4)
    rounded = [x.bfloat16() for x in (q, k, v)]
    assert torch.isfinite(scheme(*rounded)).all()


def test_w7_xpos_trains_where_it_reads_in_several_blocks():
    q, k, v = (x.float().requires_grad_() for x in draws(120, 120, 8))
    xpos(8, scale_base=0.5)(q, k, v).square().sum().backward()
    twins = [x.detach().double().requires_grad_() for x in (q, k, v)]
    xpos_by_its_formula(twins, 0.4, 0.5).square().sum().backward()
    for x, twin in zip((q, k, v), twins, strict=True):
        assert torch.allclose(x.grad.double(), twin.grad, rtol=1e-3, atol=1e-4)


def test_w7_xpos_in_one_block_is_what_scales_by_absolute_positions_gave():
    """The normal range, as before to rounding: queries grow and keys shrink from position 0 on."""
    q, k, v = (x.float() for x in draws(300, 300, 8))
    scheme = xpos(8)
    rates = torch.tensor([math.log((2 * j / 8 + 0.4) / 1.4) / 512 for j in range(4)] * 2, dtype=torch.float64)
    scales = torch.exp(torch.arange(300).double()[:, None] * rates).float()
    rotate = scheme.score_rotation.rotate
    before = torch.nn.functional.scaled_dot_product_attention(
        rotate(q, 0) * scales, rotate(k, 0) / scales, v, is_causal=True
    )
    assert torch.allclose(scheme(q, k, v), before, atol=1e-5)


def gpt(scheme):
    model = GPT(
        7, width=8, layers=2, heads=1, feed_forward=2, dropout=0.0, tied=False, attention=lambda width, heads: scheme()
    )
    initialise(model, 3)
    return model


def test_w7_xpos_with_a_cache_goes_on_far_beyond_what_its_scale_could_hold():
    """With a scale of 1, keys scaled by their absolute position were infinite from position 71 on."""
    model = gpt(lambda: xpos(8, scale_base=1.0))
    prompt = [[0, 3, 1, 5, 2]]
    cached = generate(model, prompt, 120)
    assert cached == generate(model, prompt, 120, cached=False)
    cache, tokens = model.new_cache(), torch.tensor([[*prompt[0], *cached[0]]])
    with torch.no_grad():
        steps = torch.cat([model(tokens[:, i : i + 1], cache) for i in range(tokens.shape[1])], 1)
        assert torch.allclose(steps, model(tokens), atol=1e-4)
    assert isinstance(cache[0], LayerCache)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("start", [0, 1_000_000])
@pytest.mark.parametrize(
    "scheme",
    [
        Alibi(8, 1),
        Sinusoidal(8, 1, base=1e-100),
        Sinusoidal(8, 1, base=1e300),
        T5(8, 1, buckets=2, max_distance=2),
        T5(8, 1, buckets=9, max_distance=10**30),
        Fire(8, 1, hidden=4, scale=1e-15, threshold=1e-15),
        Fire(8, 1, hidden=4, scale=1e15, threshold=1e15),
    ],
    ids=lambda scheme: type(scheme).__name__,
)
def test_w7_the_other_schemes_are_finite_at_far_positions_and_extreme_settings(scheme, start, dtype):
    q, k, v = (x.to(dtype) for x in draws(40, 40, 8))
    embedded = scheme.embed(v[0], start=start)
    assert embedded.dtype == dtype
    assert torch.isfinite(embedded).all()
    assert torch.isfinite(scheme(q, k, v, start=start)).all()


def test_w7_relative_schemes_do_not_know_where_they_start_and_the_absolute_one_is_exact_there():
    q, k, v = (x.float() for x in draws(40, 40, 8))
    for scheme in (Alibi(8, 1), T5(8, 1, buckets=8, max_distance=64), NoPosition(8, 1)):
        assert torch.equal(scheme(q, k, v, start=10**6), scheme(q, k, v))
    found = Sinusoidal(8, 1, base=10000.0).embed(torch.zeros(1, 1, 8), start=10**6)[0, 0].tolist()
    angles = [10**6 * 10000.0 ** (-2 * j / 8) for j in range(4)]
    assert found == pytest.approx([f(angle) for angle in angles for f in (math.sin, math.cos)], abs=1e-6)


def test_w7_fire_whose_threshold_has_shrunk_to_nothing_is_finite():
    scheme = Fire(8, 1, hidden=4, scale=0.1, threshold=512.0)
    with torch.no_grad():
        scheme.threshold_change.fill_(-1.0)
    q, k, v = (x.float() for x in draws(6, 6, 8))
    found = scheme(q, k, v)
    found.sum().backward()
    assert torch.isfinite(found).all()
    assert torch.isfinite(scheme.threshold_change.grad)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Fire(8, 1, hidden=4, scale=1e-300, threshold=1.0), r"scale=1e-300: .* positive number, from 1e-15 to"),
        (lambda: Fire(8, 1, hidden=4, scale=0.1, threshold=1e40), r"threshold=1e\+40: .* from 1e-15 to 1e\+15"),
        (lambda: Sinusoidal(8, 1, base=1e-320), r"base=1e-320: must be a positive number, at least 1e-100"),
        (lambda: Rotation(8, 1, 1.0, "partial", 1e-200, name="p"), r"base=1e-200: must be a positive number, at least"),
    ],
)
def test_w7_settings_that_float32_would_lose_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# W8: floors of floats


def bucket(distance, buckets, longest):
    """By whole numbers only: the last j with (n / E)^far >= (longest / E)^j, for far = buckets - E."""
    exact = buckets // 2
    far = buckets - exact
    if distance < exact:
        return distance
    return exact + max(j for j in range(far) if distance**far * exact**j >= longest**j * exact**far)


@pytest.mark.parametrize(
    ("buckets", "longest", "begins"),
    [
        (8, 64, [1, 2, 3, 4, 8, 16, 32]),
        (16, 128, [*range(1, 9), 12, 16, 23, 32, 46, 64, 91]),
        (32, 256, None),
        (64, 512, None),
    ],
)
def test_w8_t5_buckets_of_the_report_begin_where_they_should(buckets, longest, begins):
    if begins is not None:
        assert bucket_starts(buckets, longest) == begins
    scheme = T5(2, 1, buckets=buckets, max_distance=longest)
    found = scheme._bucket(torch.arange(longest + 40)).tolist()
    assert found == [bucket(n, buckets, longest) for n in range(longest + 40)]


@pytest.mark.parametrize("buckets", range(2, 41))
def test_w8_t5_buckets_are_those_of_whole_numbers_at_all_settings(buckets):
    exact = buckets // 2
    for longest in sorted({exact + 1, exact + 2, 3 * exact, 10 * exact, 100, *(exact * 2**n for n in range(1, 6))}):
        if longest <= exact:
            continue
        distances = range(0, longest + 3, max(1, longest // 60))
        starts = bucket_starts(buckets, longest)
        edges = {n for start in starts for n in (start - 1, start)}
        scheme = T5(2, 1, buckets=buckets, max_distance=longest)
        asked = sorted({*distances, *edges})
        assert scheme._bucket(torch.tensor(asked)).tolist() == [bucket(n, buckets, longest) for n in asked]


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_w8_shares_are_those_of_whole_numbers_at_every_fraction(digits):
    scale = 10**digits
    for numerator in range(scale + 1):
        share = float(f"{numerator}e-{digits}")
        assert fraction_of(share) * scale == numerator
        steps = range(1, 1001, 7) if digits < 3 else range(numerator % 7 + 1, 1001, 90)
        assert all(floor_share(share, n) == numerator * n // scale for n in steps)


@pytest.mark.parametrize("width", [2, 8, 16, 32, 64, 96, 100, 128])
def test_w8_rotary_widths_are_those_of_whole_numbers_at_every_percentage(width):
    for thousandths in range(1001):
        expected = thousandths * width // 1000 // 2 * 2
        if expected or not thousandths:
            assert rotary_width(thousandths / 1000, width, name="p") == expected
        else:
            with pytest.raises(ValueError, match="leaves no pair"):
                rotary_width(thousandths / 1000, width, name="p")


@pytest.mark.parametrize(
    ("value", "numerator", "denominator"),
    [
        (1 / 3, 1, 3),
        (2 / 3, 2, 3),
        (1 / 7, 1, 7),
        (0.289999999999, 289999999999, 10**12),
        (1, 1, 1),
        (0.0, 0, 1),
        (1e-300, 1, 10**300),
    ],
)
def test_w8_a_float_stands_for_the_simplest_fraction_that_rounds_to_it(value, numerator, denominator):
    assert fraction_of(value).as_integer_ratio() == (numerator, denominator)


@pytest.mark.parametrize("hundredths", [29, 57, 58])
@pytest.mark.parametrize("steps", [100, 1000])
def test_w8_the_warm_up_of_the_report_is_not_a_step_short(hundredths, steps):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = warmup_cosine(optimizer, steps=steps, warmup_fraction=hundredths / 100, final_fraction=0.1)
    rates = []
    for _ in range(steps):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    warmup = hundredths * steps // 100
    assert rates[:warmup] == pytest.approx([(k + 1) / (warmup + 1) for k in range(warmup)])
    assert rates[warmup] == 1.0
    assert rates[warmup + 1] < 1.0


# W10: threads


@pytest.fixture
def threads_put_back():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_w10_a_study_whose_runs_differ_in_threads_says_so_until_all_are_trained_alike(sweep, threads_put_back, capsys):
    first = sweep("attention=none,rope", "seed=0")
    assert (first.code, "mixed arithmetic" in first.out.lower()) == (0, False)
    two = ("attention=none,rope", "seed=0,1", "runtime.threads=2")
    second = sweep(*two)
    assert second.code == 0
    assert "the runs differ in 1 and 2 threads" in " ".join(second.out.split())
    records = [folder.read() for folder in StudyFolder(Path("multirun/copy_repeat")).runs()]
    assert {(r.seed, r.threads) for r in records} == {(0, 1), (1, 2)}
    assert len({(r.label, r.cell) for r in records}) == 2
    compare(["multirun/copy_repeat", "rope", "none", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["mixed_arithmetic"] == ["1 and 2 threads"]
    assert found["caption"].startswith("MIXED ARITHMETIC: the runs differ in 1 and 2 threads.")
    assert "mixed arithmetic" in found["flags"]
    assert "mixed arithmetic" not in sweep(*two, "sweep.rerun=finished").out.lower()


def run_with(**changes):
    settings = {"label": "a", "study": "s", "cell": "c", "factors": {}, "seed": 0, "status": Status.finished}
    return RunRecord(**(settings | changes))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"threads": 4}, {"threads": 1}, ["1 and 4 threads"]),
        ({"threads": 4}, {"threads": None}, []),
        ({"device": "cuda:0 (NVIDIA H200)"}, {"device": "cuda:3 (NVIDIA H200)"}, []),
        ({"device": "cuda:0 (NVIDIA H200)"}, {"device": "cpu"}, ["cpu and cuda (NVIDIA H200)"]),
        ({"device": "cpu", "processor": "A"}, {"device": "cpu", "processor": "B"}, ["A and B"]),
        ({"device": "cuda:0 (X)", "processor": "A"}, {"device": "cuda:0 (X)", "processor": "B"}, []),
        ({"versions": {"torch": "2.8.0"}}, {"versions": {"torch": "2.9.1"}}, ["torch 2.8.0 and 2.9.1"]),
        ({"versions": {"torch": "2.8.0"}}, {}, []),
        ({"threads": 1}, {"threads": 2, "status": Status.running}, []),
        ({"threads": 1, "device": "cpu"}, {"threads": 2, "device": "mps"}, ["1 and 2 threads", "cpu and mps"]),
    ],
)
def test_w10_what_runs_differ_in_is_what_was_recorded_of_both(one, other, expected):
    assert mixed_arithmetic([run_with(**one), run_with(**other), run_with(**one)]) == expected
    assert mixture.listed([1, 2, 4]) == "1, 2 and 4"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"ablate": "1"}, {"ablate": "1", "mine": "5"}, False),
        ({"ablate": "1"}, {"ablate": "2"}, True),
        ({"ablate": "1", "mine": "5"}, {"ablate": "1", "mine": "6"}, True),
        ({"ablate": "1", "mine": "5"}, {"ablate": "1", "theirs": "6"}, False),
        ({}, {"ablate": "1"}, True),
    ],
)
def test_w10_mixed_code_is_one_module_in_two_states(one, other, expected):
    """Arms of different cells; the fingerprint of each is that of all its modules together."""
    runs = [run_with(cell=cell, source=str(code), code=code) for cell, code in (("a", one), ("b", other))]
    assert mixture.mixed_code(runs) == expected
    again = run_with(cell="a", source="edited since", code=one)
    assert mixture.mixed_code([*runs, again])


# W27: benchmarks that cannot lie


class Script:
    """The far end of a gate: its orders are written down beforehand; how many steps were trained by each answer."""

    def __init__(self, steps, *orders):
        self.steps, self.orders, self.trained = steps, list(orders), []

    def send(self, seconds):
        assert seconds >= 0
        self.trained.append(len(self.steps))

    def recv(self):
        return self.orders.pop(0)


def test_w27_windows_hold_training_steps_only_however_long_evaluation_sets_take_to_draw(monkeypatch):
    """2,560 sequences are drawn in ten parts, and before each the run asks whether to stop, which passed for steps."""
    drawn, steps, true = [], [], CopyRepeat.batch

    def slow(self, generator, size, split="train"):
        drawn.extend([split] * (split == "eval"))
        return true(self, generator, size, split)

    monkeypatch.setattr(CopyRepeat, "batch", slow)
    tiny = ("model.width=8", "model.heads=2", "model.layers=1", "task.seq_len=24", "training.batch_size=4")
    size = engines.size_of("tiny", (*tiny, "evaluation.sequences=2560", "evaluation.curve_sequences=8"))
    script = Script(steps, 5, 1, 3, 0)
    counted = register_optimizer_step_post_hook(lambda *_: steps.append(1))
    try:
        engines.ablate(size, torch.get_num_threads(), lanes.Gate(script))
    finally:
        counted.remove()
    assert len(drawn) == 10
    assert script.trained[0] >= lanes.WARM_UP
    assert [after - before for before, after in pairwise(script.trained)] == [5, 1, 3]


def measured(seconds):
    """Windows of 3 steps at the reference size beside ten matrix steps a second (of 2 · 2048³ each: 172 GFLOP/s)."""
    size = engines.size_of("reference", throughput.SIZES["reference"])
    alone = lanes.Mode("alone", 1, 1)
    times = {"alone": {throughput.OURS: seconds, throughput.MATMUL: [1.0] * len(seconds)}}
    return throughput.Results(size=size, steps=3, modes=[alone], seconds=times, data_seconds={"alone": 0.0}), alone


def test_w27_a_share_above_the_whole_matrix_rate_is_an_error_that_says_what_is_wrong(monkeypatch, capsys, tmp_path):
    found, alone = measured([3.0, 3.0, 3.0])
    flops = 3 * 2 * (3 * 12 * 128**2 + 128 * found.size.vocabulary) * 16 * 512 + 3 * 4 * 128 * 512 * 513 // 2 * 16 * 3
    assert found.matmul_share(throughput.OURS, alone).median == pytest.approx(flops / (10 * 2 * 2048**3))
    wrong, _ = measured([3.0, 0.01, 3.0])
    message = r"reference, alone, ablate: [\d,]+% of the matmul rate, which nothing can exceed: a window was timed in"
    with pytest.raises(ImpossibleError, match=message):
        wrong.matmul_share(throughput.OURS, alone)
    monkeypatch.setattr(throughput, "measure", lambda *_: wrong)
    monkeypatch.setattr(throughput.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(throughput.startup, "seconds_to_first_step", lambda: 1.0)
    with pytest.raises(SystemExit, match=r"^impossible measurement, reference, alone, ablate: ") as end:
        throughput.main(["--size", "reference", "--json", str(tmp_path / "all.json")])
    assert "\n" not in str(end.value)
    assert "tokens/s" not in capsys.readouterr().out
    assert not (tmp_path / "all.json").exists()

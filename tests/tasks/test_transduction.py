"""The tasks of one source and one answer against plain Python on the text of the source."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from task_reading import is_judged_whole, prompts, score, sequences

from ablate.tasks.base import encode
from ablate.tasks.parity import Parity
from ablate.tasks.repeat_copy import RepeatCopy
from ablate.tasks.reverse import Reverse
from ablate.tasks.sort import Sort
from ablate.tasks.unique_copy import UniqueCopy

TASKS = {
    "reverse": (Reverse(seq_len=21, shortest=1, symbols=26), lambda source: source[::-1]),
    "sort": (Sort(seq_len=21, shortest=1, symbols=5), lambda source: "".join(sorted(source))),
    "unique_copy": (UniqueCopy(seq_len=21, shortest=1, symbols=12), lambda source: source),
    "repeat_copy": (RepeatCopy(seq_len=21, shortest=1, symbols=2), lambda source: source),
    "parity": (Parity(seq_len=12, shortest=1), lambda source: str(source.count("1") % 2)),
}


@pytest.fixture(params=TASKS.values(), ids=TASKS)
def case(request):
    return request.param


def sources(task, seed=0, size=500, split="train"):
    return [text.partition(">")[0] for text, _ in sequences(task, seed, size, split)]


def test_every_sequence_is_a_source_its_answer_and_stops(case):
    task, answer_to = case
    for text, _ in sequences(task, size=300) + sequences(task, size=100, split="eval"):
        source = text.partition(">")[0]
        assert text == f"{source}>{answer_to(source)}".ljust(len(text), "#")


def test_d1_exactly_the_answer_and_its_stop_count(case):
    task, answer_to = case
    for text, counted in sequences(task, size=300):
        before = text.index(">") + 1
        answer = len(answer_to(text[: before - 1]))
        assert counted == [before <= place <= before + answer for place in range(len(text))]


def test_answers_are_judged_whole(case):
    task, answer_to = case
    assert is_judged_whole(task, lambda prompt: answer_to(prompt[:-1]) + "#", lambda answer: 0)


def test_lengths_are_uniform(case):
    task, _ = case
    task = replace(task, shortest=5)
    lengths = Counter(map(len, sources(task, size=4000)))
    assert set(lengths) == set(range(5, task.longest + 1))
    assert stats.chisquare(list(lengths.values())).pvalue > 1e-3


def test_symbols_are_uniform_at_every_place(case):
    task, _ = case
    longest = [source for source in sources(task, size=8000) if len(source) == task.longest]
    for place in range(task.longest):
        counts = Counter(source[place] for source in longest)
        assert set(counts) == set(task.letters)
        assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_the_longest_source_leaves_room_for_its_stop(case):
    task, _ = case
    assert max(map(len, sources(task, size=1000))) == task.longest
    assert all(text[-1] == "#" for text, _ in sequences(task, size=1000) if len(text) == task.seq_len + 1)


def test_no_symbol_comes_twice_in_unique_copy():
    assert all(len(set(source)) == len(source) for source in sources(TASKS["unique_copy"][0], size=2000))


def test_a_source_is_trained_on_or_evaluated_on_for_every_seed():
    task = Parity(seq_len=9, shortest=1)
    trained = {source for seed in range(4) for source in sources(task, seed, 3000)}
    evaluated = {source for seed in range(4) for source in sources(task, seed, 600, "eval")}
    assert not trained & evaluated
    assert len(trained | evaluated) == 2**8 - 2
    assert abs(len(evaluated) - task.held_out) < 15
    assert {prompt[:-1] for prompt in prompts(task, size=300)} <= evaluated


def test_longer_sequences_hold_sources_longer_than_any_trained_on(case):
    task, _ = case
    if isinstance(task, UniqueCopy):
        task = replace(task, symbols=40)
    longer = task.with_length(2 * task.seq_len)
    lengths = Counter(map(len, sources(longer, size=2000, split="eval")))
    assert set(lengths) == set(range(task.longest + 1, longer.longest + 1))
    assert set(map(len, sources(task.with_length(task.seq_len - 2), size=2000))) <= set(range(1, task.longest))


def test_a_length_with_no_longer_source_is_refused():
    task = TASKS["reverse"][0]
    with pytest.raises(ValueError, match=r"seq_len=22: the sources that fit, up to 10 symbols, .*task\.seq_len=21"):
        task.with_length(22)


def test_the_number_of_unique_sources():
    """Over 4 symbols: 4 of one, 12 of two, 24 of three, 24 of four."""
    task = UniqueCopy(seq_len=21, shortest=1, symbols=12)
    assert [UniqueCopy.number(replace(task, symbols=12), n) for n in (1, 2, 3)] == [12, 132, 1320]
    assert UniqueCopy(seq_len=9, shortest=2, symbols=6).held_out == (30 + 120 + 360) // 10


def test_d6_a_model_right_only_after_the_true_token_scores_nothing_by_generation():
    """Given the true tokens, it is right at every place of an answer but the first; generating, it goes astray."""
    task = TASKS["reverse"][0]

    def next_token(prompt, generated):
        true, place = [*prompt[-2::-1], task.stop], len(generated)
        followed = 0 < place < len(true) and generated[-1] == true[place - 1]
        return true[place] if followed else (true[0] + 1) % task.symbols

    prompt = encode(task.alphabet, "abcdefgh>")
    true = [*prompt[-2::-1], task.stop]
    forced = [next_token(prompt, true[:place]) == true[place] for place in range(len(true))]
    assert np.mean(forced) == 8 / 9
    assert score(task, next_token) == 0


def test_a_model_that_knows_the_answers_scores_all_of_them():
    task = TASKS["reverse"][0]
    assert score(task, lambda prompt, generated: [*prompt[-2::-1], task.stop][len(generated)]) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Reverse(seq_len=2, shortest=1, symbols=26), r"task\.seq_len=2: has no room for a source"),
        (lambda: Reverse(seq_len=21, shortest=0, symbols=26), r"task\.shortest=0: must be between 1 and 10"),
        (lambda: Reverse(seq_len=21, shortest=11, symbols=26), r"task\.shortest=11: .*between 1 and 10 .*seq_len=21"),
        (lambda: Reverse(seq_len=21, shortest=1, symbols=1), r"task\.symbols=1: must be between 2 and 20000"),
        (
            lambda: Reverse(seq_len=3, shortest=1, symbols=26),
            r"only 26 different problems .*use a larger task\.seq_len",
        ),
        (lambda: Sort(seq_len=21, shortest=1, symbols=20_001), r"task\.symbols=20001: .*use task\.symbols=20000"),
        (lambda: UniqueCopy(seq_len=21, shortest=5, symbols=4), r"task\.shortest=5: must be between 1 and 4"),
        (lambda: RepeatCopy(seq_len=9, shortest=1, symbols=2), r"only 30 different problems"),
        (lambda: Parity(seq_len=2, shortest=1), r"task\.seq_len=2: has no room"),
        (lambda: Parity(seq_len=7, shortest=1), r"only 62 different problems"),
    ],
)
def test_sizes_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()

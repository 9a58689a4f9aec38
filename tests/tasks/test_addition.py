"""addition against Python's own sums, from the text of the question alone."""

import re
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from task_reading import is_judged_whole, problems, prompts, sequences

from ablate.config.schema import EvaluationConfig
from ablate.tasks.addition import Addition
from ablate.tasks.base import decode
from ablate.training.evaluation import check_held_out

SETTINGS = {"seq_len": 256, "max_digits": 4, "digits": "uniform", "workings": "spaces"}
STYLES = {"spaces": (" ", "\n"), "ands": (" and ", "#")}


def answer_to(question, joiner, ending):
    """The workings and the sum by schoolbook addition on the digits as text."""
    a, b = re.fullmatch(r"\?x=(\d+)\+(\d+);", question).groups()
    width, carry, workings = max(len(a), len(b)), 0, []
    for i in range(width):
        x, y = int(a.zfill(width)[-1 - i]), int(b.zfill(width)[-1 - i])
        workings.append(f"{x}e{i}+{y}e{i}+{carry}e{i}=={x + y + carry}e{i}")
        carry = (x + y + carry) // 10
    return f" {joiner.join(workings)} x=={int(a) + int(b)}{ending}"


def pairs(task, seed, size, split):
    """Every pair of operands whose question is whole."""
    texts = (text for text, _ in sequences(task, seed, size, split))
    return [tuple(map(int, found)) for text in texts for found in re.findall(r"\?x=(\d+)\+(\d+);", text)]


def test_the_example_of_the_published_task():
    assert answer_to("?x=11+29;", " ", "\n") == " 1e0+9e0+0e0==10e0 1e1+2e1+1e1==4e1 x==40\n"


@pytest.mark.parametrize("workings", STYLES)
@pytest.mark.parametrize("digits", ["uniform", "legacy"])
@pytest.mark.parametrize("max_digits", [1, 4, 9])
def test_every_answer_is_what_schoolbook_addition_writes(workings, digits, max_digits):
    task = Addition(seq_len=512, max_digits=max_digits, digits=digits, workings=workings)
    joiner, ending = STYLES[workings]
    for text, counted in sequences(task) + sequences(task, split="eval"):
        assert counted == [False] + [True] * 512
        for problem in problems(text, ending):
            question = problem.partition(";")[0] + ";"
            if ";" in problem:
                assert (question + answer_to(question, joiner, ending)).startswith(problem)
            else:
                assert re.fullmatch(r"\?(x(=(\d+(\+\d*)?)?)?)?", problem)


@pytest.mark.parametrize("workings", STYLES)
@pytest.mark.parametrize("digits", ["uniform", "legacy"])
def test_answers_are_judged_by_what_follows_the_last_sum(workings, digits):
    task = Addition(**{**SETTINGS, "workings": workings, "digits": digits})
    assert is_judged_whole(task, lambda q: answer_to(q, *STYLES[workings]), lambda answer: answer.rindex("x=="))


def test_wrong_workings_with_a_right_sum_are_right():
    task = Addition(**SETTINGS)
    prompt = task.prompts(np.random.default_rng(0), 1)[0]
    a, b = re.findall(r"\d+", decode(task.alphabet, prompt))
    written = f" 1e0+1e0==2e0 x==7 x=={int(a) + int(b)}\n"
    assert task.is_right(prompt, [task.alphabet.index(character) for character in written])


@pytest.mark.parametrize("digits", ["uniform", "legacy"])
def test_operand_lengths_and_leading_digits_are_uniform(digits):
    task = Addition(**{**SETTINGS, "max_digits": 3, "digits": digits})
    drawn = np.array([number for pair in pairs(task, 3, 2000, "train") for number in pair])
    if digits == "uniform":
        lengths = Counter(len(str(number)) for number in drawn)
        assert stats.chisquare([lengths[n] for n in (1, 2, 3)]).pvalue > 1e-3
        assert stats.chisquare(np.bincount(drawn[drawn >= 100] // 100)[1:]).pvalue > 1e-3
    else:
        assert drawn.max() > 999  # 10 at the hundreds
        # A third is one digit of 0 to 10; of two digits, 10 = 0 + 1 * 10 = 10 + 0 * 10, and so on.
        assert abs(np.mean(drawn == 10) - (1 / 11 + 2 / 121 + 2 / 1331) / 3) < 0.005


def test_one_digit_problems_are_parted_for_every_seed_and_all_of_them_come():
    task = Addition(seq_len=64, max_digits=1, digits="uniform", workings="spaces")
    trained = set().union(*(pairs(task, seed, 500, "train") for seed in range(5)))
    evaluated = set().union(*(pairs(task, seed, 100, "eval") for seed in range(5)))
    assert not trained & evaluated
    assert trained | evaluated == {(a, b) for a in range(10) for b in range(10)}
    assert 5 <= len(evaluated) <= 15
    assert task.held_out == 10
    asked = {tuple(map(int, re.findall(r"\d+", prompt))) for prompt in prompts(task, size=500)}
    assert asked == evaluated


def test_d5_more_test_problems_than_there_are_is_refused_with_their_number():
    task = Addition(seq_len=64, max_digits=1, digits="uniform", workings="spaces")
    with pytest.raises(
        ValueError, match=r"evaluation\.sequences=1000: .*about 10 different .*use evaluation\.sequences=10"
    ):
        check_held_out(task, EvaluationConfig(sequences=1000))
    check_held_out(task, EvaluationConfig(sequences=10, curve_sequences=10))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_digits": 0}, r"task\.max_digits=0: must be between 1 and 9 .*use task\.max_digits=1"),
        ({"max_digits": 10}, r"task\.max_digits=10: must be between 1 and 9 .*use task\.max_digits=9"),
        (
            {"seq_len": 90},
            r"task\.seq_len=90: must be at least 94 \(the longest problem must fit\); use task\.seq_len=94",
        ),
        ({"digits": "legasy"}, r"task\.digits=legasy: must be uniform or legacy"),
        ({"workings": "and"}, r"task\.workings=and: must be spaces or ands"),
    ],
)
def test_parameters_out_of_range_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Addition(**{**SETTINGS, **change})


def test_the_longest_problem_just_fits():
    longest = "?x=9999+9999;" + answer_to("?x=9999+9999;", " ", "\n")
    assert Addition(**{**SETTINGS, "seq_len": len(longest) - 1}).seq_len == 94

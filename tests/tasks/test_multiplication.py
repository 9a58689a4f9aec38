"""multiplication against Python's own products, from the text of the question alone."""

import re

import numpy as np
import pytest
from scipy import stats
from task_reading import is_judged_whole, problems, sequences

from ablate.tasks.multiplication import Multiplication

SETTINGS = {"seq_len": 128, "max_digits": 4, "base": 4, "digits": "uniform"}


def answer_to(question, base):
    a, b = re.fullmatch(r"\?x=(\d+)\*(\d+);", question).groups()
    partial = [np.base_repr(int(digit) * int(b, base), base) for digit in reversed(a)]
    return f" {' '.join(partial)} x=={np.base_repr(int(a, base) * int(b, base), base)}\n"


def test_an_example_by_hand():
    """Base 4: 23 is 11 and 32 is 14; 3 * 14 = 42 is 222, 2 * 14 = 28 is 130, 11 * 14 = 154 is 2122."""
    assert answer_to("?x=23*32;", 4) == " 222 130 x==2122\n"


@pytest.mark.parametrize("digits", ["uniform", "legacy"])
@pytest.mark.parametrize(("base", "max_digits"), [(2, 4), (2, 30), (4, 8), (10, 3), (10, 9)])
def test_every_answer_is_right_and_counts_from_behind_the_question_on(base, max_digits, digits):
    task = Multiplication(seq_len=1200, base=base, max_digits=max_digits, digits=digits)
    for text, counted in sequences(task, size=16) + sequences(task, size=16, split="eval"):
        expected, inside = [False], False
        for character in text[:-1]:
            inside = character != "\n" if inside else character == ";"
            expected.append(inside)
        assert counted == expected[: len(counted)]
        for problem in problems(text, "\n"):
            if ";" in problem:
                question = problem.partition(";")[0] + ";"
                assert (question + answer_to(question, base)).startswith(problem)


@pytest.mark.parametrize("digits", ["uniform", "legacy"])
def test_answers_are_judged_by_what_follows_the_last_product(digits):
    task = Multiplication(**{**SETTINGS, "digits": digits})
    assert is_judged_whole(task, lambda question: answer_to(question, 4), lambda answer: answer.rindex("x=="))


def test_leading_digits_are_uniform():
    task = Multiplication(**SETTINGS)
    operands = [n for text, _ in sequences(task, size=1000) for n in re.findall(r"(?<=[=*])\d+(?=[*;])", text)]
    counts = np.bincount([int(n[0]) for n in operands if len(n) == 4])
    assert stats.chisquare(counts[1:]).pvalue > 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": 1}, r"task\.base=1: must be between 2 and 10 .*use task\.base=2"),
        ({"base": 11}, r"task\.base=11: must be between 2 and 10 .*use task\.base=10"),
        ({"max_digits": 0}, r"task\.max_digits=0: must be between 1 and 15 .*use task\.max_digits=1"),
        ({"max_digits": 16}, r"task\.max_digits=16: must be between 1 and 15 .*base 4 .*use task\.max_digits=15"),
        ({"seq_len": 20}, r"task\.seq_len=20: must be at least 49"),
        ({"base": 2, "max_digits": 3}, r"only 64 different problems .*use larger problems"),
        ({"digits": "x"}, r"task\.digits=x: must be uniform or legacy"),
    ],
)
def test_parameters_out_of_range_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Multiplication(**{**SETTINGS, **change})

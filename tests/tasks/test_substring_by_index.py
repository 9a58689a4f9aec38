"""substring_by_index against Python's own slices, from the text of the question alone."""

import re
from collections import Counter

import pytest
from scipy import stats
from task_reading import is_judged_whole, problems, prompts, sequences

from ablate.tasks.substring_by_index import SubstringByIndex

SETTINGS = {"seq_len": 200, "shortest": 4, "longest": 20, "first_index": 1, "shortest_suffix": 1}
QUESTION = re.compile(r"\?s='([a-z]*)'; s\[(\d+):\]==")


def answer_to(question):
    string, index = QUESTION.fullmatch(question).groups()
    return f"'{string[int(index) :]}'#"


def whole_questions(task, seed, size, split="train"):
    texts = (text for text, _ in sequences(task, seed, size, split))
    return [(string, int(index)) for text in texts for string, index in QUESTION.findall(text)]


def test_the_example_of_the_published_task():
    assert answer_to("?s='dyjeofuxvejmg'; s[8:]==") == "'vejmg'#"


@pytest.mark.parametrize(
    "change", [{}, {"first_index": 0, "shortest_suffix": 0}, {"shortest": 12, "longest": 12, "first_index": 9}]
)
def test_every_answer_is_the_suffix(change):
    task = SubstringByIndex(**{**SETTINGS, **change})
    for text, counted in sequences(task) + sequences(task, split="eval"):
        assert counted == [False] + [True] * 200
        for problem in problems(text, "#"):
            if found := QUESTION.match(problem):
                assert (found[0] + answer_to(found[0])).startswith(problem)


def test_answers_are_judged_whole():
    assert is_judged_whole(SubstringByIndex(**SETTINGS), answer_to, lambda answer: 0)


def test_lengths_and_indexes_are_uniform_over_what_is_allowed():
    # The first problem of a sequence is whole; those after it are the likelier whole the shorter they are.
    task = SubstringByIndex(**SETTINGS)
    drawn = [QUESTION.match(text).groups() for text, _ in sequences(task, size=4000)]
    lengths = Counter(len(string) for string, _ in drawn)
    assert set(lengths) == set(range(4, 21))
    assert stats.chisquare(list(lengths.values())).pvalue > 1e-3
    indexes = Counter(int(index) for string, index in drawn if len(string) == 7)
    assert set(indexes) == set(range(1, 7))
    assert stats.chisquare(list(indexes.values())).pvalue > 1e-3


def test_a_held_out_string_is_trained_on_at_no_index():
    task = SubstringByIndex(**{**SETTINGS, "shortest": 2, "longest": 2})
    trained = {string for seed in range(3) for string, _ in whole_questions(task, seed, 500)}
    evaluated = {string for seed in range(3) for string, _ in whole_questions(task, seed, 200, "eval")}
    assert not trained & evaluated
    assert len(trained | evaluated) == 26**2
    assert abs(len(evaluated) - task.held_out) < 25
    assert {QUESTION.fullmatch(prompt)[1] for prompt in prompts(task)} <= evaluated


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first_index": -1}, r"task\.first_index=-1: must be at least 0"),
        ({"shortest_suffix": -1}, r"task\.shortest_suffix=-1: must be at least 0"),
        ({"shortest": 1}, r"task\.shortest=1: must be at least 2 \(every string needs an index to ask for\)"),
        ({"longest": 3}, r"task\.longest=3: must be at least 4"),
        ({"seq_len": 30}, r"task\.seq_len=30: must be at least 57 \(the longest problem must fit\)"),
        ({"shortest": 1, "longest": 1, "first_index": 0}, r"only 26 different problems .*use larger problems"),
    ],
)
def test_parameters_out_of_range_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        SubstringByIndex(**{**SETTINGS, **change})

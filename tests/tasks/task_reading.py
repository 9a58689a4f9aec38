"""Reading sequences back as text, for tests that work the answers out from the question alone."""

import numpy as np

from ablate.tasks.base import IGNORED, decode, encode


def sequences(task, seed=0, size=32, split="train"):
    """Each sequence as its text and, for each of its characters, whether it is a counted target."""
    inputs, targets = task.batch(np.random.default_rng(seed), size, split)
    found = []
    for read, predicted in zip(inputs.tolist(), targets.tolist(), strict=True):
        last = predicted[-1:] if predicted[-1] != IGNORED else []
        counted = [False, *(target != IGNORED for target in predicted)][: len(read + last)]
        found.append((decode(task.alphabet, read + last), counted))
    return found


def problems(text, ending):
    """The problems packed in a text, the last one without its ending when it is cut off."""
    return [problem for problem in text.split(ending) if problem]


def judged(task, prompt, written):
    """Whether the task takes `written` for the answer to a prompt, both as text."""
    return task.is_right(encode(task.alphabet, prompt), encode(task.alphabet, written))


def prompts(task, seed=0, size=64):
    return [decode(task.alphabet, prompt) for prompt in task.prompts(np.random.default_rng(seed), size)]


def is_judged_whole(task, answer_to, decisive):
    """A task takes the right answer to each of its prompts, whatever follows, and no answer that is wrong in one place.

    `answer_to` works the answer out from the prompt's text, ending included; `decisive` says from which character on an
    answer must be right for it to count.
    """
    for prompt in prompts(task):
        answer = answer_to(prompt)
        assert len(answer) <= task.most_tokens
        assert judged(task, prompt, answer)
        assert judged(task, prompt, answer + answer)
        assert not judged(task, prompt, answer[:-1])
        for place in range(decisive(answer), len(answer) - 1):
            other = next(c for c in task.alphabet if c not in (answer[place], answer[-1]))
            assert not judged(task, prompt, answer[:place] + other + answer[place + 1 :])
            assert not judged(task, prompt, answer[:place] + answer[place + 1 :])
    return True


def score(task, next_token, size=32, seed=0):
    """Share of prompts answered right by greedy generation: `next_token(prompt, generated)` is asked for each token."""
    right = []
    for prompt in task.prompts(np.random.default_rng(seed), size):
        generated = []
        while len(generated) < task.most_tokens and task.stop not in generated:
            generated.append(next_token(prompt, generated))
        right.append(task.is_right(prompt, generated))
    return np.mean(right)

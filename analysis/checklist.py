"""Answers to two questions of the NeurIPS paper checklist, in plain words, from what the study recorded.

They are those on statistical significance (error bars, factors of variability, method, assumptions) and on compute
resources (workers, memory, time per run and in all). Sentences shared with the caption come from `analysis.wording`.
"""

from typing import NamedTuple

from analysis import formatting as fmt
from analysis.captions import exclusions_part, looks_part, method_part, seeds_part
from analysis.cost import cost_of
from analysis.results import Comparison
from analysis.wording import plural


class Answer(NamedTuple):
    """One question of the checklist, by its title there, with its answer."""

    title: str
    text: str


def checklist(comparison: Comparison) -> tuple[Answer, ...]:
    """The two answers, in the order of the checklist."""
    return (
        Answer("Experiment statistical significance", _significance(comparison)),
        Answer("Experiments compute resources", _compute(comparison)),
    )


def _significance(comparison: Comparison) -> str:
    parts = (
        f"{_error_bars(comparison)} {method_part(comparison)}",
        f"Factors of variability: {seeds_part(comparison)} {_fixed(comparison)}",
        _assumptions(comparison),
        looks_part(comparison),
        exclusions_part(comparison),
    )
    return " ".join(part.strip() for part in parts if part)


def _error_bars(comparison: Comparison) -> str:
    spread = "spread in parentheses" if comparison.question.scale.is_log else "spread after ±"
    return (
        f"The {spread} is between training runs and is a standard deviation, not a standard error; brackets are "
        "two-sided intervals of a mean or of a mean difference."
    )


def _fixed(comparison: Comparison) -> str:
    """What the error bars leave out."""
    sequences = comparison.study.config.get("evaluation.sequences")
    if not sequences:
        return ""
    return f"All runs are evaluated on the same {sequences} sequences, so the choice of these is in no error bar."


def _assumptions(comparison: Comparison) -> str:
    if not comparison.others:
        return "Assumed: independent runs whose values are about normal (Student t)."
    differences = [against.difference for _, against in comparison.others]
    paired = any(difference.paired for difference in differences)
    what = "differences between runs of one seed" if paired else "values"
    checks = [difference.sensitivity for difference in differences]
    found = {
        "the exact sign-flip test": any(check.sign_flip is not None for check in checks),
        "Wilcoxon's test": any(check.wilcoxon is not None for check in checks),
        "Welch's test, unpaired": any(check.welch is not None for check in checks),
    }
    beside = [name for name, there in found.items() if there]
    others = f" Beside each verdict stand tests with other assumptions: {', '.join(beside)}." if beside else ""
    return f"Assumed: seeds are independent, and {what} are about normal (Student t).{others}"


def _compute(comparison: Comparison) -> str:
    records = comparison.study.records
    cost = cost_of(records)
    if not cost.seconds:
        return "No time and no device was recorded with these runs."
    devices = ", ".join(sorted({record.device for record in records if record.device})) or "not recorded"
    return " ".join(
        [
            f"Devices: {devices}; one run uses one of them.{_memory(comparison)}",
            f"Time: {fmt.duration(cost.seconds / cost.runs)} per run on average, {fmt.duration(cost.seconds)} for "
            f"{plural(cost.runs, 'run')}, those that failed or diverged included; {fmt.scientific(cost.flops)} FLOPs "
            "(6 × parameters × tokens).",
            _beyond(comparison),
        ]
    )


def _memory(comparison: Comparison) -> str:
    peaks = [record.peak_memory_bytes for record in comparison.study.records if record.peak_memory_bytes]
    return f" Peak memory of the process that trains a run: at most {max(peaks) / 2**20:,.0f} MiB." if peaks else ""


def _beyond(comparison: Comparison) -> str:
    """What the project spent that is not counted here."""
    replaced = len(comparison.study.replaced)
    again = f" and {plural(replaced, 'result')} that a rerun replaced" if replaced else ""
    return f"Not in these numbers: other sweeps and studies of the project, trials before this one{again}."

"""comparison.json: every number of a comparison, unrounded, under names that scripts rely on."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ablate.jsonfiles import strict
from analysis.captions import caption
from analysis.comparison_table import counts, success
from analysis.factorial_tables import FactorialReport, factorial_data, factorial_report
from analysis.overall_tables import aggregate_data, ranking_data
from analysis.probabilities import probability_data
from analysis.results import Comparison, VariantResult
from analysis.scale import Scale
from analysis.statistics.intervals import Interval
from analysis.study import Replaced
from analysis.task_sets import TaskSet
from analysis.variance import variance_data
from analysis.wording import verdict_sentence

COMPARED = (
    "delta", "delta_ci", "delta_ci90", "p", "p_holm", "p_equivalence", "q_bh", "wins", "wins_ci", "pairs",
    "effect_size", "rho", "pairing_gain", "sign_flip_p", "p_better", "mde", "seeds_needed", "paired", "verdict",
    "qualifier", "sentence", "seeds_paired", "seeds_dropped", "test", "unpaired", "ratio", "ratio_ci", "success_p",
    "sensitivity", "superiority", "superiority_ci", "posterior",
)  # fmt: skip
"""What is said of a variant against the baseline; null for the baseline itself."""


def comparison_data(comparison: Comparison, factorial: FactorialReport | None = None) -> dict[str, Any]:
    """The content of comparison.json; what the data do not support is null. `factorial` spares computing it again."""
    study, question = comparison.study, comparison.question
    return {
        "study": study.name,
        **({"task": study.part.task} if study.part else {}),
        "sweep": study.sweep,
        "metric": question.metric,
        "direction": question.direction,
        "direction_assumed": question.direction_assumed,
        "baseline": question.baseline.label,
        "margin": question.margin,
        "transform": question.scale.name,
        "threshold": question.threshold,
        "alpha": question.alpha,
        "planned_seeds": len(study.seeds),
        "seeds": list(study.seeds),
        "looks": comparison.looks,
        "declared": dict(study.declared),
        "chosen_after": list(question.chosen_after),
        "until": dict(study.until) if study.until is not None else None,
        "mixed_code": study.mixed_code,
        "mixed_arithmetic": study.mixed_arithmetic,
        "caption": caption(comparison),
        "problems": list(study.problems),
        "replaced": [_replaced(one) for one in study.replaced],
        "factorial_analysis": factorial_data(factorial or factorial_report(comparison)),
        "variance": variance_data(comparison),
        "variants": [variant_data(comparison, result) for result in comparison.results],
    }


def task_set_data(task_set: TaskSet, factorials: Mapping[str, FactorialReport]) -> dict[str, Any]:
    """The content of comparison.json for one task, or for several: what they share, then task by task, then variants.

    With several tasks a variant's entry names its task, and a number on which tasks differ is null but in `by_task`.
    """
    found = {task: comparison_data(one, factorials[task]) for task, one in task_set.comparisons.items()}
    if not task_set.several:
        return found.popitem()[1]
    variants = [{"task": task, **row} for task, data in found.items() for row in data.pop("variants")]
    first = next(iter(found.values()))
    shared = {key: value if all(d[key] == value for d in found.values()) else None for key, value in first.items()}
    study = task_set.study
    return {
        **shared,
        "planned_seeds": len(study.seeds),
        "seeds": list(study.seeds),
        "looks": sorted({n for data in found.values() for n in data["looks"]}),
        "mixed_code": study.mixed_code,
        "mixed_arithmetic": study.mixed_arithmetic,
        "problems": list(study.problems),
        "replaced": [_replaced(one) for one in study.replaced],
        "tasks": list(found),
        "left_out": dict(task_set.left_out),
        "remarks": task_set.remarks,
        "by_task": found,
        "aggregate": aggregate_data(task_set),
        "over_tasks": ranking_data(task_set),
        "variants": variants,
    }


def _replaced(one: Replaced) -> dict[str, Any]:
    return {"label": one.label, "seed": one.seed, "status": one.status, "ended": one.ended, "differs": one.differs}


def _pair(bounds: Interval | None) -> list[float] | None:
    """Both ends, or None when there is no interval or it is infinite (too few pairs for an anytime-valid one)."""
    return list(bounds) if bounds is not None and all(map(math.isfinite, bounds)) else None


def _ratio(scale: Scale, value: float | None) -> float | None:
    """The exponential of a mean or difference of logarithms; None on the plain scale, and where it overflows."""
    found = scale.back(value) if scale.is_log and value is not None else math.inf
    return found if math.isfinite(found) else None


def variant_data(comparison: Comparison, result: VariantResult) -> dict[str, Any]:
    """One variant; the baseline has the same keys, null where it would be compared with itself.

    With transform log the numbers of the metric (the margin too) are on the log scale but for the threshold, the
    geometric mean, the ratio and their intervals.
    """
    summary, scale = result.summary, comparison.question.scale
    own = {
        "label": result.variant.label,
        "factors": strict(result.variant.factors),
        "cell": result.variant.cell,
        **counts(result),
        **success(result.arm),
        "mean": summary.mean,
        "sd": summary.sd,
        "ci": _pair(summary.interval),
        "median": summary.median,
        "iqm": summary.iqm,
        "min": summary.low,
        "max": summary.high,
        "geometric_mean": _ratio(scale, summary.mean),
        "geometric_ci": _pair(scale.back_interval(summary.interval)) if scale.is_log else None,
        "among_best": result.among_best,
    }
    return own | _against_data(comparison, result) | {"flags": list(result.flags)}


def _against_data(comparison: Comparison, result: VariantResult) -> dict[str, Any]:
    against = result.against
    if against is None:
        return dict.fromkeys(COMPARED)
    d, scale = against.difference, comparison.question.scale
    found = {
        "delta": d.mean,
        "delta_ci": _pair(d.interval),
        "delta_ci90": _pair(d.interval90),
        "p": d.p,
        "p_holm": against.p_holm,
        "p_equivalence": against.p_equivalence,
        "q_bh": against.q_bh,
        "wins": d.wins,
        "wins_ci": _pair(d.wins_interval),
        "pairs": d.n if d.paired else 0,
        "effect_size": d.effect,
        "rho": d.rho,
        "pairing_gain": d.gain,
        "sign_flip_p": d.sensitivity.sign_flip,
        "p_better": d.superiority,
        "mde": against.mde,
        "seeds_needed": against.seeds_needed,
        "paired": d.paired,
        "verdict": str(against.judgement.verdict),
        "qualifier": against.judgement.qualifier,
        "sentence": verdict_sentence(comparison, result, against),
        "seeds_paired": list(against.pairs.seeds),
        "seeds_dropped": list(against.pairs.dropped),
        "test": d.test.words if d.test is not None else None,
        "unpaired": against.unpaired,
        "ratio": _ratio(scale, d.mean),
        "ratio_ci": _pair(scale.back_interval(d.interval)) if scale.is_log else None,
        "success_p": against.success.p(paired=d.paired),
        "sensitivity": {**asdict(d.sensitivity), "fragile": d.fragile},
        **probability_data(comparison, result, against),
    }
    assert tuple(found) == COMPARED
    return found


def to_json(value: Any) -> str:
    """Strict, indented JSON; the same text for the same value."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

"""Captions of tables and figures: what a reader needs to judge the numbers. Verdicts in words: `analysis.wording`."""

from collections import Counter
from collections.abc import Iterable

from analysis import formatting as fmt
from analysis.results import Comparison
from analysis.statistics.paired import Difference
from analysis.statistics.t_tests import OneLook
from analysis.study import Study


def caption(comparison: Comparison) -> str:
    """What a reader needs to judge the numbers: the NeurIPS checklist's error bars and compute, in one paragraph."""
    parts = (metric_part, seeds_part, method_part, looks_part, declared_part, exclusions_part, cost_part)
    return marked(comparison.study, " ".join(text for part in parts if (text := part(comparison))))


def marked(study: Study, text: str) -> str:
    """The caption of a table; before it the task, where there are several, and how runs differ beside their cells."""
    warning = "MIXED CODE: the runs come from different states of the source code." if study.mixed_code else ""
    if study.mixed_arithmetic:
        warning += f"{' ' * bool(warning)}MIXED ARITHMETIC: the runs differ in {'; '.join(study.mixed_arithmetic)}."
    task = f"Task {study.part.task}." if study.part else ""
    return " ".join(part for part in (warning, task, text) if part)


def metric_part(comparison: Comparison) -> str:
    """The metric, where it was measured, its direction, and the baseline."""
    question, config = comparison.question, comparison.study.config
    split, _, name = question.metric.rpartition("/")
    generated = "exact_match" in question.metric
    sequences = config.get("evaluation.problems" if generated else "evaluation.sequences")
    where = f" on the {split} split" if split else ""
    noun = "held-out problems, answered by generation" if generated else "fixed sequences"
    size = f" ({sequences} {noun})" if split == "eval" and sequences else ""
    solved = f"; a run solves the task with {name} {question.threshold_text}" if question.threshold is not None else ""
    which = f"Final {name}" if comparison.study.at_step is None else f"{name} at step {comparison.study.at_step}"
    return f"{which}{where}{size}, {question.rule}{solved}; baseline {question.baseline.label}."


def seeds_part(comparison: Comparison) -> str:
    """How many runs there are per variant, their seeds, and which random streams vary between them."""
    study = comparison.study
    done = [result.counts["ok"] for result in comparison.results]
    span = str(min(done)) if min(done) == max(done) else f"{min(done)}–{max(done)}"
    which = f"{'seeds' if study.shared_seeds else 'runs'} {fmt.seed_list(study.seeds)}"
    seeds = f"n = {span}{_planned_text(comparison)} per variant ({which})"
    streams = [s for s in ("init", "data", "dropout") if f"seeds.{s}" in study.config]
    varied = [s for s in streams if study.config[f"seeds.{s}"] is None]
    named = f"; between seeds vary: {', '.join(varied)}" if varied else ""
    fixed = f"; fixed: {', '.join(s for s in streams if s not in varied)}" if len(varied) < len(streams) else ""
    return f"{seeds}{named}{fixed}."


def _planned_text(comparison: Comparison) -> str:
    """Of how many planned runs; a study without a plan has runs only."""
    planned = sorted({result.counts.total() for result in comparison.results})
    span = f"{planned[0]}–{planned[-1]}" if len(planned) > 1 else str(planned[0])
    noun = "planned run" if comparison.study.sweep else "run"
    return f" of {span} {noun}{'s' * (planned[-1] != 1)}"


def method_part(comparison: Comparison) -> str:
    """What ± and the intervals are, how they were made, and the correction for several comparisons."""
    kinds = {against.difference.paired for _, against in comparison.others}
    paired = {frozenset({True}): "paired by seed", frozenset({False}): "unpaired (Welch)"}
    how = paired.get(frozenset(kinds), "paired by seed where seeds are shared, else Welch")
    method = tests_in_words(against.difference for _, against in comparison.others)
    several = " each, not together" if comparison.family > 1 else ""
    family = f"; p Holm-corrected over {family_text(comparison)}" if comparison.family > 1 else ""
    family += ", q after Benjamini and Hochberg (exploratory; no verdict rests on it)" * comparison.exploratory
    question = comparison.question
    margin = f"; margin of interest {question.scale.size(question.margin, 3)}" if question.margin is not None else ""
    if not comparison.others:
        return f"{_scale_text(comparison)}; intervals: Student t, 95 %."
    bold = "; in bold what cannot be told from the best (p ≥ .05, Holm over all pairs)"
    return f"{_scale_text(comparison)}; differences {how}; intervals: {method}, 95 %{several}{family}{margin}{bold}."


def tests_in_words(differences: Iterable[Difference]) -> str:
    """The tests behind these intervals: Student t, or the one that allows for looks, else Student t."""
    found = {one.test.words for one in differences if one.test is not None} or {OneLook.words}
    return ", else ".join(sorted(found, key=len, reverse=True))


def family_text(comparison: Comparison) -> str:
    """Over what Holm's correction went: 3 comparisons, or 6 comparisons, those of all tasks."""
    everywhere = ", those of all tasks" if comparison.study.part and comparison.family > len(comparison.others) else ""
    return f"{comparison.family} comparisons{everywhere}"


def _scale_text(comparison: Comparison) -> str:
    if not comparison.question.scale.is_log:
        return "± is the sample SD (n − 1)"
    return (
        "Statistics on natural logarithms, shown back-transformed: geometric means and their ratios; in parentheses "
        "the sample SD of the logarithms (n − 1)"
    )


def looks_part(comparison: Comparison) -> str:
    """At how many seeds the results were looked at, and how seeds were added; empty when neither was recorded."""
    looks, until = comparison.looks, comparison.study.until
    seen = fmt.seed_list(looks).replace("–", " to ")
    if until is not None:
        ended = f" Stopped: {until['ended']}." if until["ended"] else ""
        how = f"in blocks of {until['block']} until decided, at most {until['max_seeds']}"
        return f"Seeds added {how}; looked at {seen} seeds.{ended}"
    planned = max(result.counts.total() for result in comparison.results)
    early = looks and looks[0] < planned and not any(against.looks for _, against in comparison.others)
    final = (
        " All seeds were planned before the first look and have ended: the test is that of one look." if early else ""
    )
    return f"Looked at {seen} of {planned} planned seeds.{final}" if looks else ""


def declared_part(comparison: Comparison) -> str:
    """What the plan does not declare, or declares otherwise; empty for a study without a plan's declaration."""
    after, declared = comparison.question.chosen_after, comparison.study.declared
    if not declared:
        return ""
    names = "Metric, direction, scale, threshold, margin and baseline are as the sweep's plan declared them."
    return f"Chosen after the sweep was planned: {', '.join(after)}." if after else names


def exclusions_part(comparison: Comparison) -> str:
    """The runs without a value, by kind, and the results that later ones replaced."""
    kinds = sum((result.counts for result in comparison.results), Counter[str]())
    rest = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()) if kind != "ok")
    parts = [f"Without a value, and in no mean: {rest}."] if rest else []
    if replaced := len(comparison.study.replaced):
        parts.append(f"In no mean: {replaced} earlier result{'s' * (replaced != 1)} that later ones replaced.")
    lone = {seed for _, against in comparison.others if not against.unpaired for seed in against.pairs.dropped}
    if lone:
        parts.append(f"In a mean but in no difference: seeds without a pair ({fmt.seed_list(lone)}).")
    return " ".join(parts) or "No run is excluded."


def cost_part(comparison: Comparison) -> str:
    """Devices, time per run and in all; empty when no time was recorded."""
    records = comparison.study.records
    seconds = sum(record.seconds for record in records)
    if not seconds:
        return ""
    devices = ", ".join(sorted({record.device for record in records if record.device}))
    each, total = fmt.duration(seconds / len(records)), fmt.duration(seconds)
    return f"Compute: {devices + ', ' if devices else ''}{each} per run, {total} in all, failed runs included."

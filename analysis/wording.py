"""Sentences: the verdict on each variant, the lines beside it, and the notes of a study. Captions: `analysis.captions`.

Never "no difference", "no effect" or "as good as": an inconclusive comparison says what it could have detected.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from analysis import formatting as fmt
from analysis.probabilities import improvement_text, posterior_sentence
from analysis.results import Against, Comparison, VariantResult
from analysis.statistics.verdict import Verdict
from analysis.study import EARLIER_ROW, Replaced, Study

FEW = 3
"""So many replaced results have a line each."""


def verdict_sentence(comparison: Comparison, result: VariantResult, against: Against) -> str:
    """One or two sentences on one variant, with the numbers that the verdict rests on."""
    writer, rule = _SENTENCES[against.judgement.verdict], comparison.question.rule
    sentence = f"{result.variant.label}: {writer(comparison, result, against)}"
    return sentence if rule in sentence or not comparison.question.direction_assumed else f"{sentence} ({rule})"


def verdict_sentences(comparison: Comparison) -> list[str]:
    """One entry per variant other than the baseline, in the order of the plan."""
    return [verdict_sentence(comparison, result, against) for result, against in comparison.others]


def headline(comparison: Comparison) -> str:
    """How many variants there are of each verdict: 1 better, 2 inconclusive."""
    found = Counter(against.judgement.verdict for _, against in comparison.others)
    return ", ".join(f"{found[verdict]} {verdict}" for verdict in Verdict if found[verdict])


def effect_text(comparison: Comparison, against: Against) -> str:
    """The mean difference, its interval, the number of pairs and the wins, in words."""
    d, scale = against.difference, comparison.question.scale
    if d.mean is None:
        return "there is no pair of finished runs"
    middle, bounds = scale.contrast(d.mean, d.interval, d.sd, comparison.question.margin)
    runs = f"unpaired (Welch), {against.outcomes.variant_ok} and {against.outcomes.baseline_ok} runs"
    unit = plural(d.n, "pair") if d.paired else runs
    text = f"{scale.difference_words} {middle}" + (f", 95 % interval {bounds}" if bounds else "")
    if against.p_holm is not None:
        text += f", {'Holm ' if comparison.family > 1 else ''}{fmt.p_phrase(against.p_holm, comparison.question.alpha)}"
    wins = f", {fmt.count(d.wins)} of {plural(d.n, 'seed')} won" if d.paired and d.wins is not None else ""
    chance = f", {improvement_text(against)}" if not d.paired and d.superiority is not None else ""
    return f"{text}, {unit}{wins}{chance}"


def plural(n: int, noun: str) -> str:
    """1 pair, 2 pairs."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _decided(comparison: Comparison, _: VariantResult, against: Against) -> str:
    question, judgement = comparison.question, against.judgement
    size = f" {judgement.qualifier}" if judgement.qualifier else ""
    rule = f"{question.metric}, {question.rule}"
    effect = f"{effect_text(comparison, against)}{_rates(comparison, against)}"
    return f"{judgement.verdict} than {question.baseline.label}{size} ({rule}); {effect}."


def _equivalent(comparison: Comparison, _: VariantResult, against: Against) -> str:
    question = comparison.question
    assert question.margin is not None
    margin = f"{'' if question.scale.is_log else '±'}{question.scale.size(question.margin, 3)}"
    effect = (
        f"{effect_text(comparison, against)}, p of equivalence {fmt.p_value(against.p_equivalence, question.alpha)}"
    )
    effect += _rates(comparison, against)
    return f"equivalent to {question.baseline.label} within {margin} on {question.metric}; {effect}."


def _inconclusive(comparison: Comparison, result: VariantResult, against: Against) -> str:
    reason = f" ({against.judgement.qualifier})" if against.judgement.qualifier else ""
    effect = f"{effect_text(comparison, against)}{_rates(comparison, against)}"
    head = f"inconclusive against {comparison.question.baseline.label}{reason}; {effect}."
    shares = posterior_sentence(comparison, result, against)
    return " ".join([head, *_power_sentences(comparison, against), *([shares] if shares else [])])


def _power_sentences(comparison: Comparison, against: Against) -> Iterable[str]:
    if against.mde is None:
        return
    n = against.difference.n
    unit = "pairs" if against.difference.paired else "runs per arm"
    once = " and a single look" if against.looks else ""
    family = f", corrected for {comparison.family} comparisons" if comparison.family > 1 else ""
    margin, scale = comparison.question.margin, comparison.question.scale
    effect = f"{'' if scale.is_log else 'a difference of '}{scale.size(against.mde, 2)}"
    yield f"With {n} {unit}{once} this design detects about {effect} with 80 % power{family}."
    if margin is None:
        yield "Declare the smallest difference of interest (--margin) to learn how many seeds would resolve it."
    else:
        enough = isinstance(against.seeds_needed, int) and against.seeds_needed <= n and not against.looks
        here = f", no more than the {n} here" if enough else ""
        yield f"To resolve {scale.size(margin, 3)} it needs about {against.seeds_needed} seeds{here}."


def _unstable(comparison: Comparison, result: VariantResult, against: Against) -> str:
    reason = all_failed(result) if against.outcomes.variant_ok == 0 else against.judgement.qualifier
    head = f"unstable against {comparison.question.baseline.label} ({reason}){_rates(comparison, against)}"
    if against.difference.mean is None:
        return f"{head}."
    return (
        f"{head}; on the runs that finished, {effect_text(comparison, against)}, given without a verdict on the mean."
    )


def _rates(comparison: Comparison, against: Against) -> str:
    """How many seeds of each arm succeeded, with the exact test; empty when none failed."""
    o, paired = against.success, against.difference.paired
    if not o.any_failed:
        return ""
    test = f"{'McNemar' if paired else 'Boschloo'} {fmt.p_phrase(o.p(paired=paired), comparison.question.alpha)}"
    verb = "succeeded" if comparison.question.threshold is None else f"solved it ({comparison.question.threshold_text})"
    variant = f"{o.variant_ok} of {o.variant_ok + o.variant_failed} seeds {verb}"
    return f"; {variant} against {o.baseline_ok} of {o.baseline_ok + o.baseline_failed} ({test})"


def all_failed(result: VariantResult) -> str:
    """All n diverged, or failed, or some of each."""
    failed, diverged = result.counts["failed"], result.counts["diverged"]
    if failed and diverged:
        return f"all {failed + diverged} failed ({diverged} diverged)"
    return f"all {diverged} diverged" if diverged else f"all {failed} failed"


def _insufficient(comparison: Comparison, result: VariantResult, against: Against) -> str:
    d = against.difference
    number = plural(d.n, "pair") if d.paired else f"{plural(d.n, 'run')} per arm"
    o = against.outcomes
    all_ended = min(o.variant_ok + o.variant_failed, o.baseline_ok + o.baseline_failed) > 0
    rates = _rates(comparison, against) if all_ended else ""
    ended = f"; {all_failed(result)}" if o.variant_ok == 0 and o.variant_failed else ""
    mean = f"; {effect_text(comparison, against)}" if d.mean is not None else ""
    return f"insufficient against {comparison.question.baseline.label}: {number}, 3 are needed{ended}{rates}{mean}."


_SENTENCES = {
    Verdict.better: _decided,
    Verdict.worse: _decided,
    Verdict.equivalent: _equivalent,
    Verdict.inconclusive: _inconclusive,
    Verdict.unstable: _unstable,
    Verdict.insufficient: _insufficient,
}


def flag_lines(comparison: Comparison) -> list[str]:
    """What an exploratory grid finds, then every flag once, with the variants that it is about."""
    about: dict[str, list[str]] = {}
    for result in comparison.results:
        for flag in result.flags:
            about.setdefault(flag, []).append(result.variant.label)
    return [*discoveries(comparison), *(f"{', '.join(labels)}: {flag}" for flag, labels in about.items())]


def discoveries(comparison: Comparison) -> list[str]:
    """What Benjamini and Hochberg's procedure finds in an exploratory grid, in one sentence; else nothing."""
    if not comparison.exploratory or all(against.q_bh is None for _, against in comparison.others):
        return []
    alpha, total = comparison.question.alpha, len(comparison.others)
    found = [r.variant.label for r, against in comparison.others if against.q_bh is not None and against.q_bh <= alpha]
    names = f": {', '.join(found)}" if found else ""
    rule = f"Benjamini and Hochberg at a false discovery rate of {100 * alpha:g} %"
    return [f"exploratory, {rule}: {len(found)} of {total} variants differ from the baseline{names}"]


def notes(study: Study) -> list[str]:
    """What else must be said of the study: damaged files, results that reruns replaced, mixed code and arithmetic."""
    lines = [f"damaged: {problem}" for problem in study.problems]
    lines += _replaced_lines(study.replaced)
    lines += study.remarks
    if study.mixed_code:
        lines.append("mixed code: train the older runs again with sweep.rerun=stale before believing a difference")
    if study.mixed_arithmetic:
        lines.append(
            f"mixed arithmetic: the runs differ in {'; '.join(study.mixed_arithmetic)}, and so in their last digits; "
            "train all alike with sweep.rerun=finished before believing a small difference"
        )
    return lines


def _replaced_lines(replaced: Sequence[Replaced]) -> list[str]:
    """Results that reruns replaced: a line for each of a few, one with the number of many or of a table's rows."""
    rows = [r for r in replaced if r.ended == EARLIER_ROW]
    if rows:
        first, differ = rows[0], sum(r.differs for r in rows) or "none"
        repeat = "repeats" if len(rows) == 1 else "repeat"
        which = f"{plural(len(rows), 'row')} {repeat} the variant and seed of a later row, which is used instead"
        return [f"{which}; {differ} of {len(rows)} differ in value (the first: {first.label}, seed {first.seed})"]
    if len(replaced) > FEW:
        runs = len({(r.label, r.seed) for r in replaced})
        differ = sum(r.differs for r in replaced) or "none"
        used = f"the newest of each is used, and {differ} of the earlier ones differ from it"
        return [f"replaced by reruns: {len(replaced)} earlier results of {plural(runs, 'run')}; {used}"]
    return [
        f"replaced by a rerun: {r.label}, seed {r.seed}, {r.status}, ended {r.ended or 'at an unknown time'}"
        + ("; the newest result stands and differs" if r.differs else "")
        for r in replaced
    ]


def beside(comparison: Comparison, against: Against) -> str:
    """The numbers of the second line: P(better), effect size, correlation, pairing gain, power, checks; or empty."""
    d, scale = against.difference, comparison.question.scale
    better = improvement_text(against) if d.paired else ""
    found = [
        ("d_z" if d.paired else "g", d.effect),
        ("correlation of the arms", d.rho),
        ("pairing gain", d.gain),
    ]
    parts = [better] * bool(better) + [
        f"{name} {fmt.number(value, 2, apart=(-1.0, 1.0))}" for name, value in found if value is not None
    ]
    if against.mde is not None:
        parts.append(f"detectable with 80 % power about {scale.size(against.mde, 2)}")
    if against.seeds_needed is not None:
        parts.append(f"seeds needed for the margin about {against.seeds_needed}")
    if against.welch is not None and against.welch.mean is not None and against.welch.interval is not None:
        mean, bounds = scale.contrast(against.welch.mean, against.welch.interval, None, comparison.question.margin)
        parts.append(f"Welch on all finished runs {mean} {bounds}")
    return ", ".join(parts)


def sensitivity_line(comparison: Comparison, against: Against) -> str:
    """What other tests say of the same runs, not corrected, and whether the result is fragile; empty without any."""
    d, scale = against.difference, comparison.question.scale
    checks = d.sensitivity
    tests = [
        ("t", checks.t),
        ("sign-flip", checks.sign_flip),
        ("Wilcoxon", checks.wilcoxon),
        ("Welch", checks.welch),
    ]
    parts = [f"{name} {fmt.p_phrase(p, comparison.question.alpha)}" for name, p in tests if p is not None]
    if checks.iqm_difference is not None:
        middle, _ = scale.contrast(checks.iqm_difference, d.interval, d.sd)
        parts.append(f"{'IQM ratio' if scale.is_log else 'IQM difference'} {middle}")
    fragile = [f"fragile: {d.fragile}"] if d.fragile else []
    return f"sensitivity (uncorrected): {'; '.join([', '.join(parts), *fragile])}" if parts else ""

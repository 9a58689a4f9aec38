"""A comparison as tables: the variants, the runs that did not finish, and who has which seed."""

from typing import Any

from analysis import formatting as fmt
from analysis.captions import caption, marked
from analysis.design import Arm
from analysis.question import Question
from analysis.results import Against, Comparison, VariantResult
from analysis.scale import PLAIN, Scale
from analysis.statistics.intervals import Interval, Summary
from analysis.statistics.paired import Difference
from analysis.study import LoadedRun, Outcome, Study, Variant
from analysis.tables import Cell, Column, Table

SYMBOLS = {
    "ok": "✓",
    "failed": "✗",
    "diverged": "∞",
    "running": "…",
    "interrupted": "‖",
    "missing": "·",
    "damaged": "!",
    "pruned": "✂",
}
"""One sign per outcome, for the completeness matrix."""


def comparison_table(comparison: Comparison) -> Table:
    """The table of all variants; in bold those that cannot be told from the best."""
    shown = comparison.question.threshold is not None or any(result.arm.failed for result in comparison.results)
    rows = [_row(comparison, result, success=shown) for result in comparison.results]
    assert len(rows) == len(comparison.results), "rows out must equal variants in"
    return Table("comparison", _columns(comparison, success=shown), rows, caption(comparison))


def _columns(comparison: Comparison, *, success: bool) -> tuple[Column, ...]:
    scale, threshold = comparison.question.scale, comparison.question.threshold
    title = "finished [95 % CI]" if threshold is None else f"solved ({comparison.question.threshold_text}) [95 % CI]"
    return (
        Column("variant"),
        Column("seeds ok", "right"),
        *([Column(title, "right", optional=threshold is None)] if success else []),
        Column(scale.mean_title, "right"),
        Column("95 % CI", "right", optional=True),
        Column(scale.difference_title, "right"),
        Column("wins", "right"),
        Column("p (Holm)" if comparison.family > 1 else "p", "right"),
        *([Column("q (BH)", "right")] if comparison.exploratory else []),
        Column("verdict", wraps=True),
    )


def _row(comparison: Comparison, result: VariantResult, *, success: bool) -> tuple[Cell, ...]:
    summary = result.summary
    mean, spread, interval = _mean_texts(summary, comparison.question)
    ci = list(summary.interval) if summary.interval else None
    return (
        Cell(result.variant.label, _identity(comparison, result), bold=result.among_best),
        Cell(seeds_text(result), counts(result), sort="n_ok"),
        *([_success_cell(result.arm)] if success else []),
        Cell(spread if summary.n != 1 else f"{mean} (n = 1)", {"mean": summary.mean, "sd": summary.sd}),
        Cell(interval, {"ci": ci, "median": summary.median}),
        *_against_cells(comparison, result.against),
    )


def _success_cell(arm: Arm) -> Cell:
    """How many of the runs that ended succeeded, with Wilson's interval."""
    text = f"{len(arm.solved)}/{len(arm.ended)} {fmt.interval(arm.success_interval, 2, apart=(1.0,))}"
    return Cell(text if arm.ended else fmt.NOT_AVAILABLE, success(arm), sort="success_rate")


def success(arm: Arm) -> dict[str, Any]:
    """Successes, their share of the runs that ended, and its interval, as scripts know them."""
    bounds = arm.success_interval
    return {
        "solved": len(arm.solved),
        "success_rate": arm.success_rate,
        "success_ci": list(bounds) if bounds is not None else None,
    }


def _mean_texts(summary: Summary, question: Question) -> tuple[str, str, str]:
    """The mean, the mean with its spread, and the interval of the mean; digits by the spread."""
    scale, apart = question.scale, [question.scale.back(limit) for limit in question.limits]
    middle = None if summary.mean is None else scale.back(summary.mean)
    width = summary.sd or _half_width(summary.interval)
    unit = abs(middle or 0.0) if scale.is_log else 1.0  # an SD of logarithms is relative to the geometric mean
    places = fmt.decimals(None if width is None else width * unit, middle)
    mean = fmt.number(middle, places, apart=apart)
    interval = fmt.interval(scale.back_interval(summary.interval), places, apart=apart)
    if summary.sd is None:
        return mean, mean, interval
    if scale.is_log:
        return mean, f"{mean} ({fmt.deviation(summary.sd, summary.mean)})", interval
    return mean, f"{mean} ± {fmt.deviation(summary.sd, summary.mean, places)}", interval


def _identity(comparison: Comparison, result: VariantResult) -> dict[str, Any]:
    variant = result.variant
    factors = {name: variant.factors.get(name) for name in comparison.study.factor_names}
    return {"label": variant.label, "factors": factors, "cell": variant.cell}


def counts(result: VariantResult) -> dict[str, int]:
    """Runs by outcome, as scripts know them."""
    found = result.counts
    others = ("missing", "running", "interrupted", "damaged", "pruned")
    named = {"n_planned": found.total(), "n_ok": found["ok"], "n_failed": found["failed"]}
    return named | {"n_diverged": found["diverged"]} | {f"n_{kind}": found[kind] for kind in others}


def seeds_text(result: VariantResult) -> str:
    """Seeds ok of planned, and what became of the others: 7/10 (2 diverged, 1 missing)."""
    found = result.counts
    rest = ", ".join(f"{found[kind]} {kind}" for kind in SYMBOLS if kind != "ok" and found[kind])
    return f"{found['ok']}/{found.total()}" + (f" ({rest})" if rest else "")


def _half_width(interval: Interval | None) -> float | None:
    return (interval.high - interval.low) / 2 if interval else None


def _against_cells(comparison: Comparison, against: Against | None) -> tuple[Cell, ...]:
    """The difference, the wins, p and verdict; q in a cell of its own when it is shown, else as a value only."""
    question, exploratory = comparison.question, comparison.exploratory
    if against is None:
        empty = {"delta": None, "delta_ci": None}
        return (
            Cell(fmt.DASH, empty),
            Cell(fmt.DASH, {"wins": None}),
            Cell(fmt.DASH, {"p_holm": None}),
            *([Cell(fmt.DASH, {"q_bh": None})] if exploratory else []),
            Cell("baseline"),
        )
    difference, q = against.difference, {"q_bh": against.q_bh}
    delta_ci = list(difference.interval) if difference.interval else None
    wins = fmt.DASH if difference.wins is None else f"{fmt.count(difference.wins)}/{difference.n}"
    return (
        Cell(delta_text(difference, question.scale, question.margin), {"delta": difference.mean, "delta_ci": delta_ci}),
        Cell(wins, {"wins": difference.wins, "pairs": difference.n if difference.paired else 0}),
        Cell(
            fmt.p_value(against.p_holm, question.alpha),
            {"p": difference.p, "p_holm": against.p_holm} | ({} if exploratory else q),
            sort="p_holm",
        ),
        *([Cell(fmt.p_value(against.q_bh, question.alpha), q)] if exploratory else []),
        Cell(_verdict_text(against), {"verdict": str(against.judgement.verdict)}),
    )


def _verdict_text(against: Against) -> str:
    judgement = against.judgement
    sized = judgement.qualifier if judgement.verdict in ("better", "worse") else ""
    return f"{judgement.verdict} {sized}".strip()


def delta_text(difference: Difference, scale: Scale = PLAIN, margin: float | None = None) -> str:
    """The mean difference (or ratio) with its interval: −0.052 [−0.076, −0.028]; digits by the half-width."""
    if difference.mean is None:
        return fmt.NOT_AVAILABLE
    middle, bounds = scale.contrast(difference.mean, difference.interval, difference.sd, margin)
    return f"{middle} {bounds or '[n/a]'}"


def failures_table(study: Study, metric: str) -> Table:
    """The runs without a value of the metric (failed, diverged, missing, damaged, ...), with reason and folder."""
    columns = (
        Column("variant"),
        Column("seed", "right"),
        Column("status"),
        Column("reason", wraps=True),
        Column("folder", wraps=True),
    )
    outcomes = [(run, run.outcome(metric)) for run in study.loaded]
    rows = [_failure(run, outcome) for run, outcome in outcomes if outcome.kind != "ok"]
    return Table("failures", columns, rows, marked(study, f"Runs without a value of {metric}."))


def _failure(run: LoadedRun, outcome: Outcome) -> tuple[Cell, ...]:
    folder = run.place
    return (
        Cell(run.variant.label, {"label": run.variant.label}),
        Cell(str(run.seed), {"seed": run.seed}),
        Cell(outcome.kind, {"status": outcome.kind}),
        Cell(outcome.reason or fmt.DASH, {"reason": outcome.reason}),
        Cell(folder or fmt.DASH, {"folder": folder}),
    )


def factors_table(study: Study) -> Table:
    """What each variant sets; a dash for a factor that it does not have."""
    columns = (Column("variant"), *(Column(name) for name in study.factor_names))
    rows = [
        (Cell(variant.label, {"label": variant.label}), *(_factor(study, variant, name) for name in study.factor_names))
        for variant in study.variants
    ]
    return Table("factors", columns, rows, marked(study, "Factors of each variant; a dash where a variant lacks one."))


def _factor(study: Study, variant: Variant, name: str) -> Cell:
    text = fmt.factor_value(variant.factors[name]) if name in variant.factors else fmt.DASH
    return Cell(text, {study.factor_column(name): variant.factors.get(name)})


def completeness(comparison: Comparison) -> Table:
    """Variant by seed: one sign per planned run."""
    study = comparison.study
    columns = (Column("variant"), *(Column(str(seed)) for seed in study.seeds))
    rows = []
    for variant in study.variants:
        kinds = {run.seed: run.outcome(comparison.question.metric).kind for run in study.of(variant)}
        found = [(seed, kinds.get(seed)) for seed in study.seeds]
        cells = [Cell(SYMBOLS[kind] if kind else "", {f"seed {seed}": kind}) for seed, kind in found]
        rows.append((Cell(variant.label, {"label": variant.label}), *cells))
    shown = sorted({cell.text for row in rows for cell in row[1:]} - {""})
    names = {sign: kind for kind, sign in SYMBOLS.items()}
    key = ", ".join(f"{sign} {names[sign]}" for sign in shown)
    return Table("completeness", columns, rows, marked(study, key))

"""Factorial designs: which factor, and which combination of factors, explains the differences between runs.

For a complete design (every combination of levels with the same seeds) with the seed as a fixed block,

    y ~ C(a, Sum) * C(b, Sum) * ... + C(seed, Sum)          ordinary least squares, type II sums of squares

    F         = (SS_term / df_term) / MS_residual
    omega²_p  = df_term (F - 1) / (df_term (F - 1) + N)     Keren and Lewis (1979); below 0 when F < 1
    share     = SS_term / SS_total                          sums to 1 over all terms, seed and residual included

Contrasts compare marginal means (over all other factors, equally weighted) seed by seed. What a study is, and how its
runs become a design, is not known here.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
import pandas as pd
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from analysis.statistics.cells import Levels, cell_text, listed
from analysis.statistics.intervals import Array
from analysis.statistics.multiple import holm
from analysis.statistics.paired import Difference, paired_difference


@dataclass(frozen=True)
class Design:
    """A complete design. `values` has one axis per factor, as long as its `levels`, and a last one for the seeds."""

    factors: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    seeds: tuple[int, ...]
    values: Array


@dataclass(frozen=True)
class Term:
    """One row of the analysis of variance; `factors` is empty for the seed and the residual.

    `f`, `p` and `omega` (partial omega squared) are None for the residual.
    """

    name: str
    factors: tuple[str, ...]
    df: int
    sum_squares: float
    share: float
    f: float | None = None
    p: float | None = None
    omega: float | None = None


@dataclass(frozen=True)
class Contrast:
    """The marginal mean of one level minus that of the factor's first level, paired by seed.

    `p_holm` is corrected over all contrasts of all factors; None below 3 seeds.
    """

    factor: str
    level: str
    reference: str
    difference: Difference
    p_holm: float | None


@dataclass(frozen=True)
class Factorial:
    """All that is said of a design. `interaction` is the difference of differences, for two factors of two levels.

    `withheld` names the factors of which no main effect may be claimed, each with the interaction that forbids it.
    """

    design: Design
    terms: tuple[Term, ...]
    contrasts: tuple[Contrast, ...]
    interaction: Difference | None
    withheld: Mapping[str, Term]


def complete_design(factors: Sequence[str], cells: Mapping[Levels, Mapping[int, float]]) -> Design:
    """Arrange values by cell and seed; levels are ordered as the cells first name them.

    Raises ValueError naming what is missing: fewer than two factors, a factor of one level, a combination of levels, a
    value that other cells have, a second seed, a finite value.
    """
    if len(factors) < 2:
        raise ValueError(f"a factorial analysis needs two or more factors, got {list(factors)}")
    levels = tuple(tuple(dict.fromkeys(cell[axis] for cell in cells)) for axis in range(len(factors)))
    for factor, own in zip(factors, levels, strict=True):
        if len(own) < 2:
            raise ValueError(f"factor {factor} needs two or more levels, got {list(own)}: vary it or leave it out")
    missing = math.prod(map(len, levels)) - len(cells)
    if missing:
        absent = (cell_text(factors, cell) for cell in product(*levels) if cell not in cells)
        raise ValueError(f"a factorial analysis needs every combination of levels; missing: {listed(absent, missing)}")
    seeds = _common_seeds(factors, cells)
    values = np.array([[cells[cell][seed] for seed in seeds] for cell in product(*levels)], dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("a factorial analysis needs finite values; a run that diverged has none")
    return Design(tuple(factors), levels, seeds, values.reshape(*map(len, levels), len(seeds)))


def _common_seeds(factors: Sequence[str], cells: Mapping[Levels, Mapping[int, float]]) -> tuple[int, ...]:
    """The seeds, which must be those of every cell and at least two."""
    seeds = sorted({seed for values in cells.values() for seed in values})
    lacking = {cell: [seed for seed in seeds if seed not in values] for cell, values in cells.items()}
    gaps = [f"{cell_text(factors, cell)} (seed {', '.join(map(str, lost))})" for cell, lost in lacking.items() if lost]
    if gaps:
        found = listed(gaps, len(gaps))
        raise ValueError(f"a factorial analysis needs the same seeds in every cell; without a value: {found}")
    if len(seeds) < 2:
        raise ValueError(f"a factorial analysis needs two or more seeds per cell, got {seeds}")
    return tuple(seeds)


def analyse(design: Design, *, lower_is_better: bool = True, alpha: float = 0.05) -> Factorial:
    """Analysis of variance, contrasts, interaction and the main effects that may not be claimed.

    Raises ValueError when the residual is zero but for rounding: F would then measure rounding alone.
    """
    terms = _terms(design)
    pairs = design.values.shape[:-1] == (2, 2)
    return Factorial(
        design,
        terms,
        _contrasts(design, lower_is_better=lower_is_better),
        _difference_of_differences(design, lower_is_better=lower_is_better) if pairs else None,
        _withheld(design, terms, alpha),
    )


def _terms(design: Design) -> tuple[Term, ...]:
    """The analysis of variance by statsmodels, on columns with safe names (f0, f1, ...)."""
    frame = _frame(design)
    crossed = "*".join(f"C(f{axis}, Sum)" for axis in range(len(design.factors)))
    table = anova_lm(ols(f"y ~ {crossed} + C(seed, Sum)", frame).fit(), typ=2)
    total = float(np.sum((frame["y"] - frame["y"].mean()) ** 2))
    if table.loc["Residual", "sum_sq"] <= 1e-20 * max(float(np.sum(design.values**2)), 1e-200):
        raise ValueError(
            "the values leave no residual: the seeds differ by the same amount in every cell; check that the factors "
            "take effect and the seed reaches the generator"
        )
    blocks: list[tuple[str, str, tuple[str, ...]]] = [("C(seed, Sum)", "seed", ()), ("Residual", "residual", ())]
    rows = [*_named_terms(design.factors), *blocks]
    return tuple(_term(name, own, table.loc[key], total, frame.shape[0]) for key, name, own in rows)


def _frame(design: Design) -> pd.DataFrame:
    """One row per run: y, the seed, and the place of each factor's level."""
    places = np.indices(design.values.shape).reshape(design.values.ndim, -1)
    names = [f"f{axis}" for axis in range(len(design.factors))]
    # F and the shares do not depend on origin and unit; centred and scaled values keep their digits.
    centred = design.values - design.values.mean()
    return pd.DataFrame({"y": centred.ravel(), **dict(zip([*names, "seed"], places, strict=True))})


def _named_terms(factors: tuple[str, ...]) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """Main effects, then interactions of two, three, ... factors: statsmodels' name, the name for people, factors."""
    for size in range(1, len(factors) + 1):
        for axes in combinations(range(len(factors)), size):
            own = tuple(factors[axis] for axis in axes)
            yield ":".join(f"C(f{axis}, Sum)" for axis in axes), " × ".join(own), own


def _term(name: str, factors: tuple[str, ...], row: pd.Series, total: float, n: int) -> Term:
    df, squares, f = round(row["df"]), float(row["sum_sq"]), float(row["F"])
    if name == "residual":
        return Term(name, factors, df, squares, squares / total)
    omega = df * (f - 1) / (df * (f - 1) + n)
    return Term(name, factors, df, squares, squares / total, f, float(row["PR(>F)"]), omega)


def marginal(design: Design, axes: Sequence[int]) -> Array:
    """Values averaged over all factors but those of `axes` (ascending); the seeds stay as the last axis."""
    others = tuple(axis for axis in range(len(design.factors)) if axis not in axes)
    return np.asarray(design.values.mean(axis=others))


def _contrasts(design: Design, *, lower_is_better: bool) -> tuple[Contrast, ...]:
    found = [
        Contrast(factor, level, levels[0], paired_difference(own, means[0], lower_is_better=lower_is_better), None)
        for axis, (factor, levels) in enumerate(zip(design.factors, design.levels, strict=True))
        for means in [marginal(design, [axis])]
        for level, own in zip(levels[1:], means[1:], strict=True)
    ]
    adjusted = holm([one.difference.p for one in found])
    return tuple(replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True))


def _difference_of_differences(design: Design, *, lower_is_better: bool) -> Difference:
    """(y11 - y01) - (y10 - y00) by seed: what the first factor does at the second's other level, beyond the first."""
    effect = design.values[1] - design.values[0]
    return paired_difference(effect[1], effect[0], lower_is_better=lower_is_better)


def _withheld(design: Design, terms: Iterable[Term], alpha: float) -> dict[str, Term]:
    """Factors with a significant interaction over which their effect changes sign; the first such interaction."""
    found: dict[str, Term] = {}
    for term in terms:
        if len(term.factors) > 1 and term.p is not None and term.p < alpha:
            for factor in term.factors:
                if factor not in found and crosses_sign(design, factor, term.factors):
                    found[factor] = term
    return found


def crosses_sign(design: Design, factor: str, among: Sequence[str]) -> bool:
    """Whether any two levels of a factor change places, in mean, over the levels of the others in `among`."""
    axes = [axis for axis, name in enumerate(design.factors) if name in among]
    means = marginal(design, axes).mean(axis=-1)
    own = axes.index(design.factors.index(factor))
    by_level = np.moveaxis(means, own, 0).reshape(means.shape[own], -1)
    effects = [first - second for first, second in combinations(by_level, 2)]
    return any(bool(effect.min() < 0 < effect.max()) for effect in effects)

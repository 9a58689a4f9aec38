"""The variance study: which named random stream the spread between runs comes from, as a table and sentences.

A study is one when runs differ in the levels of `seeds.init`, `seeds.data`, `seeds.dropout`; several values of `seed`
are one more stream, which drives whatever is not crossed. Runs are taken apart per variant of the other factors. The
statistics are in `analysis.statistics.variance`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis import formatting as fmt
from analysis.captions import marked
from analysis.configs import short_description
from analysis.results import Comparison, VariantResult
from analysis.statistics.cells import Levels
from analysis.statistics.variance import DRAWS, Source, complete_layout, variance_components
from analysis.streams import STREAMS, level, other_factors, stream_factors
from analysis.study import Study
from analysis.tables import Cell, Column, Table

SEED = "seed"
"""The stream of everything that is not crossed."""

COLUMNS = (
    Column("source of variance"),
    Column("df", "right"),
    Column("SD", "right"),
    Column("share of variance [95 % CI]", "right"),
)


@dataclass(frozen=True)
class VarianceReport:
    """What a report shows: one table and a sentence per variant, or sentences that say why not, or nothing at all."""

    tables: tuple[Table, ...] = ()
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Group:
    """The runs of one variant of the other factors; `name` is empty when there are no other factors."""

    name: str
    sources: tuple[Source, ...]
    n: int

    @property
    def sd(self) -> float:
        """The standard deviation over runs, all sources together."""
        return float(np.sqrt(sum(source.variance for source in self.sources)))


def variance_report(comparison: Comparison) -> VarianceReport:
    """Take the variance over runs apart; empty for a study that crosses no random stream, and for a part of one."""
    study, levels = comparison.study, _levels(comparison.study)
    if not stream_factors(study) or len(comparison.results) < len(study.variants):
        return VarianceReport()
    if len(levels) < 2:
        return VarianceReport(
            sentences=(f"No variance study: only {', '.join(levels)} varies; cross it with another stream.",)
        )
    groups, sentences = [], []
    for name, results in _by_variant(comparison).items():
        try:
            layout = complete_layout(levels, _values(results, levels))
        except ValueError as error:
            sentences.append(f"{name}: {error}." if name else f"No variance study: {error}.")
            continue
        sources = variance_components(layout, np.random.default_rng(0))
        groups.append(_Group(name, sources, layout.values.size))
        sentences.append(_sentence(comparison, groups[-1]))
    return VarianceReport((_table(comparison, groups, levels),) if groups else (), tuple(sentences))


def variance_data(comparison: Comparison) -> dict[str, Any]:
    """The same for scripts, unrounded: sentences, and the rows of the table when there is one."""
    found = variance_report(comparison)
    return {"sentences": list(found.sentences), **{table.name: table.records() for table in found.tables}}


def _by_variant(comparison: Comparison) -> dict[str, list[VariantResult]]:
    """The cells by the variant of the other factors, in the order of the plan."""
    found: dict[str, list[VariantResult]] = {}
    for result in comparison.results:
        found.setdefault(short_description(other_factors(comparison.study, result.variant)), []).append(result)
    return found


def _levels(study: Study) -> dict[str, list[str]]:
    """The planned levels of each crossed stream; that of the seed when there are several."""
    levels = {
        name: list(dict.fromkeys(level(variant, name) for variant in study.variants)) for name in stream_factors(study)
    }
    return levels | ({SEED: [str(seed) for seed in study.seeds]} if len(study.seeds) > 1 else {})


def _values(results: Iterable[VariantResult], levels: Mapping[str, list[str]]) -> dict[Levels, float]:
    """The values of the finished runs at their combination of streams."""
    streams = [name for name in levels if name != SEED]
    return {
        (*(level(result.variant, name) for name in streams), *([str(seed)] if SEED in levels else [])): value
        for result in results
        for seed, value in result.arm.values.items()
    }


def _sentence(comparison: Comparison, group: _Group) -> str:
    """The spread over runs and each source's share of it, with what was negative."""
    parts = [f"{_share(one)} from {_source_name(one, group)}" for one in group.sources]
    start = f"{group.name}: of" if group.name else "Of"
    spread = fmt.number(group.sd, fmt.decimals(group.sd))
    text = (
        f"{start} the variance of {comparison.question.label} over {group.n} runs (SD {spread}) come "
        f"{', '.join(parts[:-1])} and {parts[-1]} (with 95 % intervals)."
    )
    negative = [_source_name(one, group) for one in group.sources if one.estimate < 0]
    return text + (f" Estimated below 0, and shown as 0: {', '.join(negative)}." if negative else "")


def _source_name(source: Source, group: _Group) -> str:
    return "the rest" if source is group.sources[-1] else " × ".join(source.factors)


def _share(source: Source) -> str:
    """In per cent, with its interval: 46 % [9, 85]."""
    low, high = (fmt.percent(end) for end in source.interval)
    return f"{fmt.percent(source.share)} % [{low}, {high}]"


def _table(comparison: Comparison, groups: list[_Group], levels: Mapping[str, list[str]]) -> Table:
    named = any(group.name for group in groups)
    rows = [
        (*([Cell(group.name, {"variant": group.name})] if named else []), *_row(source, group))
        for group in groups
        for source in group.sources
    ]
    columns = (*([Column("variant")] if named else []), *COLUMNS)
    return Table("variance", columns, rows, marked(comparison.study, _caption(comparison, groups, levels)))


def _row(source: Source, group: _Group) -> tuple[Cell, ...]:
    name = _source_name(source, group)
    sd = float(np.sqrt(source.variance))
    share = _share(source).replace(", ", ",\u00a0")  # so that a narrow terminal keeps an interval in one line
    return (
        Cell(name, {"source": name, "n": group.n}),
        Cell(str(source.df), {"df": source.df}),
        Cell(fmt.number(sd, fmt.decimals(group.sd)), {"sd": sd, "estimate": source.estimate}),
        Cell(share, {"share": source.share, "share_ci": list(source.interval)}),
    )


def _caption(comparison: Comparison, groups: list[_Group], levels: Mapping[str, list[str]]) -> str:
    crossed = " × ".join(f"{len(own)} of {name}" for name, own in levels.items())
    runs = fmt.seed_list({group.n for group in groups})
    each = " per variant" if any(group.name for group in groups) else ""
    return (
        f"Where the variance of the final {comparison.question.label} over runs comes from: {runs} runs{each}, "
        f"{crossed}. "
        "Crossed random effects, ANOVA estimator, negative estimates set to 0; generalised intervals "
        f"({DRAWS} seeded draws). The rest is the interaction of {' and '.join(levels)} and what no seed decides"
        f"{_not_crossed(comparison.study, levels)}."
    )


def _not_crossed(study: Study, levels: Mapping[str, list[str]]) -> str:
    """What the seed drives when it is crossed, else what has the same seed in all runs."""
    others = [name.removeprefix("seeds.") for name in STREAMS if name not in levels]
    if not others:
        return ""
    if SEED not in levels:
        return f"; the same in all runs: {', '.join(others)}"
    driven = [name for name in others if study.config.get(f"seeds.{name}") is None]
    return f"; {SEED} drives: {', '.join(driven) or 'nothing'}"

"""Which factors of a study are named random streams: not choices to compare, but samples of chance.

What is concluded from them is in `analysis.variance`.
"""

from typing import Any

from analysis import formatting as fmt
from analysis.study import Study, Variant

STREAMS = ("seeds.init", "seeds.data", "seeds.dropout")
"""The factors that are random streams: their levels are a sample of all there could be."""


def level(variant: Variant, factor: str) -> str:
    """The level of a factor as people read it; a dash when the variant lacks the factor."""
    return fmt.factor_value(variant.factors[factor]) if factor in variant.factors else fmt.DASH


def stream_factors(study: Study) -> list[str]:
    """The random streams in which the variants of a study differ."""
    return [name for name in STREAMS if _varies(study, name)]


def other_factors(study: Study, variant: Variant) -> dict[str, Any]:
    """What a variant is but for its streams, as far as the variants differ in it."""
    return {name: value for name, value in variant.factors.items() if name not in STREAMS and _varies(study, name)}


def only_streams(study: Study) -> bool:
    """Whether the variants differ in nothing but random streams, so that comparing them has no meaning."""
    return bool(stream_factors(study)) and not any(other_factors(study, variant) for variant in study.variants)


def _varies(study: Study, factor: str) -> bool:
    return len({level(variant, factor) for variant in study.variants}) > 1

"""What a tuning is asked: which variants, which space, which seeds; its options and the rules for them.

On one command line `a,b` names variants to be tuned each by itself, and `interval(...)`, `range(...)`, `choice(...)` or
`tag(...)` what is searched for each of them. Everything else is fixed for all.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override
from omegaconf import DictConfig

from ablate.config.errors import ConfigError
from ablate.config.labels import factors_of, label_of
from ablate.sweep.plan import levels_of
from ablate.sweep.search.prepare import read_settings
from ablate.sweep.search.settings import Settings
from ablate.sweep.search.space import fixed_text, has_several, refuse_seeds, refuse_twice

FIRST_TUNING_SEED = 1000
"""Where the seeds of a tuning begin when only their number is given: far from the report's, which begin at 0."""

EVALUATION = "evaluation.seed"


@dataclass(kw_only=True)
class TuneSettings(Settings):
    """Options of a tuning: those of a search, which every variant gets, and the seeds of the report."""

    n_trials: int = 20
    seeds: int | list[int] | None = 2
    study_name: str = "tune"
    report_seeds: int | list[int] = 10

    def tuning_seeds(self) -> list[int]:
        """Return the seeds that choose; raises ConfigError."""
        return replace(self, seeds=2 if self.seeds is None else self.seeds).chosen_seeds(FIRST_TUNING_SEED)

    def fresh_seeds(self) -> list[int]:
        """Return the seeds that are reported; raises ConfigError, also for one that chooses."""
        try:
            found = replace(self, seeds=self.report_seeds).chosen_seeds(0)
        except ConfigError as error:
            raise ConfigError(str(error).replace("sweeper.seeds", "sweeper.report_seeds")) from error
        if len(found) < 2:
            raise ConfigError(f"hydra.sweeper.report_seeds={self.report_seeds}: one seed shows no spread; at least 2")
        if both := sorted(set(found) & set(self.tuning_seeds())):
            raise ConfigError(
                f"hydra.sweeper.report_seeds: seed {both[0]} is one of hydra.sweeper.seeds too; what was chosen on a "
                "seed looks better there than it is, so the two must not overlap"
            )
        return found


class Variant(NamedTuple):
    """One of what is compared: its label, its factors, their overrides, and the name of its search."""

    label: str
    factors: dict[str, Any]
    overrides: list[str]
    search: str


class Question(NamedTuple):
    """A command line taken apart: variants, the space as written, and what is fixed for all."""

    variants: list[Variant]
    space: list[str]
    fixed: list[str]

    def arguments(self, variant: Variant) -> list[str]:
        """Return the command line of one variant's search."""
        return [*self.fixed, *variant.overrides, *self.space]


def read_tuning(config: DictConfig) -> TuneSettings:
    """Return the checked options of `hydra.sweeper`; raises ConfigError, also for what would make budgets unequal."""
    settings = read_settings(config, TuneSettings)
    if isinstance(settings.metric, list):
        raise ConfigError(f"hydra.sweeper.metric={settings.metric}: a tuning chooses by one metric")
    for name in ("timeout", "max_failure_rate"):
        given = getattr(settings, name)
        if given != Settings.__dataclass_fields__[name].default:
            raise ConfigError(
                f"hydra.sweeper.{name}={given}: would end one variant's search before another's; leave it out"
            )
    settings.fresh_seeds()
    return settings


def read_question(loader: ConfigLoader | None, arguments: Sequence[str], settings: TuneSettings) -> Question:
    """Take the command line apart; raises ConfigError where it names no variants."""
    written = OverridesParser.create(config_loader=loader).parse_overrides(list(arguments))
    refuse_twice(written)
    by_key = {str(override.key_or_group): override for override in written}
    if "seed" in by_key:
        raise ConfigError(f"{by_key['seed'].input_line}: a tuning has seeds=... to choose on and report_seeds=...")
    refuse_seeds(by_key.values())
    several = {key: levels_of(one) for key, one in by_key.items() if _names_variants(one)}
    space = [str(one.input_line) for one in by_key.values() if _is_searched(one)]
    fixed = [fixed_text(one) for one in by_key.values() if not _names_variants(one) and not _is_searched(one)]
    if not several:
        raise ConfigError(
            "no variants: name what is compared, such as attention=rope,roper (what is searched for each of them is "
            "written interval(...), range(...) or choice(...)); to tune one config use hydra/sweeper=optuna"
        )
    both = next((key for key in several if key in settings.params), None)
    if both is not None:
        raise ConfigError(f"{both}: names variants, and stands in hydra.sweeper.params as well")
    combinations = [list(levels) for levels in itertools.product(*several.values())]
    return Question(_named(combinations, settings.study_name), space, fixed)


def with_default_space(question: Question, rates: Sequence[float]) -> Question:
    """Return the question with a decade on each side of the learning rate, the same for every variant.

    Raises ConfigError where the variants, whose rates are given, do not share one.
    """
    rate = rates[0]
    if set(rates) != {rate}:
        told = ", ".join(f"{one.label} {own:g}" for one, own in zip(question.variants, rates, strict=True))
        raise ConfigError(
            f"optimizer.lr: the variants begin with different ones ({told}), so say what is searched for all of them, "
            f"such as 'optimizer.lr=tag(log,interval({min(rates) / 10:g},{max(rates) * 10:g}))'"
        )
    return question._replace(space=[f"optimizer.lr=tag(log,interval({rate / 10:g},{rate * 10:g}))"])


def _names_variants(override: Override) -> bool:
    value = override.value()
    return isinstance(value, ChoiceSweep) and value.simple_form and len(value.list) > 1


def _is_searched(override: Override) -> bool:
    return has_several(override) and not _names_variants(override)


def _named(combinations: Sequence[list[str]], name: str) -> list[Variant]:
    """Give every combination its label, and a search whose name any file system takes."""
    found: list[Variant] = []
    for overrides in combinations:
        factors = factors_of(overrides)
        label = label_of(factors)
        plain = re.sub(r"[^A-Za-z0-9_.+=-]+", "-", label).strip("-.") or "variant"
        taken = {one.search for one in found}
        names = [f"{name}-{plain}", *(f"{name}-{plain}-{number}" for number in range(2, len(found) + 3))]
        found.append(Variant(label, factors, overrides, next(one for one in names if one not in taken)))
    return found

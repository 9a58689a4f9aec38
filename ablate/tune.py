"""Tune every variant alike, then compare: `python -m ablate.tune attention=rope,roper,none budget=20`.

    python -m ablate.tune VARIANTS [SPACE] [budget=20] [seeds=2] [report_seeds=10] [name=tune] [OVERRIDES]

VARIANTS  what is compared, values with commas: attention=rope,roper
SPACE     what is searched for each: 'optimizer.lr=tag(log,interval(1e-4,1e-2))' 'model.width=choice(32,64)'
          (left out: a decade on each side of the learning rate)
budget        trials of each variant's search
seeds         seeds that choose, a number or a list; the searches average over them
report_seeds  other seeds, on which the chosen configs are trained and compared
name          of the tuning, for a second one in the same study

Any other override of `ablate.run` is fixed for all; options of the searches are hydra.sweeper.NAME, as for
hydra/sweeper=optuna, which docs/search.md explains; docs/tuning.md explains this command. The same command goes on
where it was stopped.
"""

import difflib
import sys
from collections.abc import Sequence

from ablate import stdio
from ablate.config.errors import refuse

NAMES = {
    "budget": "hydra.sweeper.n_trials",
    "seeds": "hydra.sweeper.seeds",
    "report_seeds": "hydra.sweeper.report_seeds",
    "name": "hydra.sweeper.study_name",
}
"""Short names of this command, and what they are to the sweeper."""


def translate(arguments: Sequence[str]) -> list[str]:
    """Return the arguments for `ablate.run`."""
    return ["-m", "hydra/sweeper=tune", *map(_translate, arguments)]


def _translate(argument: str) -> str:
    key, equals, value = argument.partition("=")
    meant = difflib.get_close_matches(key, NAMES, 1, 0.8)
    if equals and meant and key not in (*NAMES, "seed"):
        refuse(f"{argument}: no such option; did you mean {meant[0]}?")
    return f"{NAMES[key]}={value}" if equals and key in NAMES else argument


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; exit codes are those of `ablate.run -m`."""
    stdio.make_safe()
    given = list(sys.argv[1:] if argv is None else argv)
    if {"-h", "--help"} & set(given):
        sys.stdout.write(f"{(__doc__ or '').strip()}\n")
        return
    if not given:
        refuse("no variants: python -m ablate.tune attention=rope,roper budget=20 (--help tells more)")
    from ablate.run import main as run  # noqa: PLC0415  (Hydra: help needs none of it)

    run(translate(given))


if __name__ == "__main__":
    main()

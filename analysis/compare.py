"""The command `python -m analysis.compare STUDY A B`: is variant A better than variant B? For scripts.

The exit code tells the verdict on A against B: 0 better, 10 equivalent, 11 inconclusive, 12 worse, 13 unstable,
14 insufficient; 2 for bad input, and where nothing says which way the metric is better. In a study of several tasks
--task says on which of them; labels are those within that task, without its name. It is the row of A in a report whose
baseline is B: Holm's correction goes over all comparisons with the baseline, so confirming here what stood out there
takes nothing of it away.
"""

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from ablate import stdio
from analysis import commands, sources
from analysis.export import comparison_data, to_json, variant_data
from analysis.question import find_baseline, refuse_unknown_direction
from analysis.statistics.verdict import Verdict
from analysis.study import StudyError
from analysis.task_sets import compare_tasks
from analysis.tasks import choose_task
from analysis.terminal import print_comparison

EXIT_CODES = {
    Verdict.better: 0,
    Verdict.equivalent: 10,
    Verdict.inconclusive: 11,
    Verdict.worse: 12,
    Verdict.unstable: 13,
    Verdict.insufficient: 14,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare A with B, print the result and return the exit code."""
    stdio.make_safe()
    parser = argparse.ArgumentParser(prog="python -m analysis.compare", description=__doc__)
    commands.add_common(parser)
    parser.add_argument("a", metavar="A", help="label of a variant, factor=value, or a level")
    parser.add_argument("b", metavar="B", help="the variant that A is compared with")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args(arguments)
    return commands.guarded(lambda: _compare(options))


def _compare(options: argparse.Namespace) -> int:
    whole = sources.load(options)
    refuse_unknown_direction(whole, sources.metric_of(options), options.direction)
    study = choose_task(whole, options.task)
    a, b = (find_baseline(study, name) for name in (options.a, options.b))
    if a is b:
        raise StudyError(f"{options.a!r} and {options.b!r} are the same variant, {a.label}")
    found = compare_tasks(
        whole,
        sources.metric_of(options),
        baseline=b.label,
        direction=options.direction,
        margin=options.margin,
        transform=options.transform,
        threshold=options.threshold,
        task=options.task,
    )
    comparison = found.first.narrowed([a.label])
    result, against = comparison.others[0]
    if options.json:
        shared = {key: value for key, value in comparison_data(comparison).items() if key != "variants"}
        data = shared | variant_data(comparison, result)
        sys.stdout.write(to_json(data))
        stdio.end_if_lost()
    else:
        print_comparison(comparison, Console())
    return EXIT_CODES[against.judgement.verdict]


if __name__ == "__main__":
    sys.exit(main())

"""The page put together: what goes over all tasks, then a section per task, rendered by the template."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ablate.records import RunRecord
from analysis import wording
from analysis.checklist import Answer, checklist
from analysis.formatting import factor_value
from analysis.over_tasks import sentences
from analysis.page.curves import Curves, interactive
from analysis.page.runs import Anchors, RunGroup, anchors, links_of_matrix, links_to_runs, run_groups
from analysis.page.tables import to_html
from analysis.plots.base import Drawn, Plot
from analysis.results import Comparison
from analysis.search_parts import Part
from analysis.sections import Report, Section
from analysis.streams import only_streams
from analysis.tables import Table

INTERACTIVE = {"learning_curves": interactive}
"""Figures that the page lets a reader explore, by the name of the plot; the others are pictures."""

PLACED = (
    "comparison",
    "variance",
    "factorial",
    "contrasts",
    "completeness",
    "failures",
    "factors",
    "cost",
    "cost_decided",
)
"""Tables that have their own place in the template; any other follows the comparison."""

HEADINGS = {
    "steps_to_threshold": "Steps to the threshold",
    "lengths": "Other lengths",
    "positions": "Accuracy by position",
}
"""Headings of those others that are not simply their name."""


@dataclass(frozen=True)
class Figure:
    """A figure as a picture in the page itself, and to explore where that is possible."""

    plot: Plot[Any]
    picture: str
    curves: Curves | None


@dataclass(frozen=True)
class View:
    """What the template shows of one section; every id in it begins with `id`."""

    id: str
    section: Section
    only_streams: bool
    rendered: Mapping[str, Markup]
    others: Mapping[str, str]
    figures: Sequence[Figure]
    runs: Sequence[tuple[RunGroup, Markup]]
    checklist: Sequence[Answer]


@dataclass(frozen=True)
class PartView:
    """What the template shows of a search or a tuning: tables with their captions, figures."""

    part: Part
    tables: Sequence[tuple[Markup, str]]
    figures: Sequence[Figure]


def render_page(report: Report, *, linked: bool) -> str:
    """One file that holds everything and asks nothing of the network; the same bytes for the same report.

    `linked` says that it will lie in the study's own report folder, so that each run's folder can be reached by a
    relative link.
    """
    sections, task_set = report.sections, report.task_set
    ids = [f"s{place}-" for place in range(1, len(sections) + 1)] if len(sections) > 1 else [""]
    views = [_view(section, prefix, linked=linked) for section, prefix in zip(sections, ids, strict=True)]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis"), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html.j2").render(
        title=report.title,
        several=task_set.several,
        remarks=task_set.remarks if task_set.several else [],
        over_tasks=sentences(task_set.ranking) if task_set.ranking is not None else [],
        overall={name: to_html(table, kind="sortable") for name, table in report.tables.items()},
        captions={name: table.caption for name, table in report.tables.items()},
        figures=[_figure(drawn) for drawn in report.drawn],
        views=views,
        parts=[_part_view(part) for part in report.parts],
        parts_first=report.of_a_search,
        wording=wording,
        versions=_versions(task_set.study.records),
        plotly=Markup(get_plotlyjs()) if any(figure.curves for view in views for figure in view.figures) else "",
        command=report.command,
    )


def _view(section: Section, prefix: str, *, linked: bool) -> View:
    comparison, places = section.comparison, anchors(section.comparison.study, prefix)
    groups = run_groups(comparison, places, linked=linked)
    return View(
        id=prefix,
        section=section,
        only_streams=only_streams(comparison.study),
        rendered={name: _rendered(name, comparison, table, places) for name, table in section.tables.items()},
        others={name: _heading(name) for name in section.tables if name not in PLACED},
        figures=[_figure(drawn) for drawn in section.drawn],
        runs=[(group, to_html(group.table, group.links, group.rows, "sortable")) for group in groups],
        checklist=checklist(comparison),
    )


def _part_view(part: Part) -> PartView:
    tables = [(to_html(table, kind="sortable"), table.caption) for table in part.tables]
    return PartView(part, tables, [_figure(drawn) for drawn in part.drawn])


def _heading(name: str) -> str:
    return HEADINGS.get(name) or name.replace("_", " ").capitalize()


def _rendered(name: str, comparison: Comparison, table: Table, places: Anchors) -> Markup:
    """A table of the section: the comparison can be searched, the matrix is a grid of signs, the others are plain."""
    if name == "completeness":
        return to_html(table, links_of_matrix(comparison.study, places), kind="matrix")
    words = [_words(row[0].values) for row in table.rows] if name == "comparison" else []
    return to_html(table, links_to_runs(table, places), words, "sortable")


def _words(identity: Mapping[str, object]) -> dict[str, str]:
    """What a row of the comparison is found by: its label, and each factor as name=value."""
    factors = identity["factors"]
    assert isinstance(factors, Mapping)
    named = [f"{name}={factor_value(value)}" for name, value in factors.items() if value is not None]
    return {"data-words": " ".join([str(identity["label"]), *named]).lower()}


def _figure(drawn: Drawn) -> Figure:
    explore = INTERACTIVE.get(drawn.plot.name)
    picture = f"data:image/svg+xml;base64,{base64.b64encode(drawn.files['svg']).decode()}"
    return Figure(drawn.plot, picture, explore(drawn.numbers) if explore is not None else None)


def _versions(records: Iterable[RunRecord]) -> str:
    """The versions that the runs recorded, each with all values that occur: python 3.11.7, torch 2.12, 2.13."""
    found: dict[str, set[str]] = {}
    for record in records:
        for name, version in record.versions.items():
            found.setdefault(name, set()).add(version)
    return "; ".join(f"{name} {', '.join(sorted(versions))}" for name, versions in found.items())

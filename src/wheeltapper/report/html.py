"""One self-contained page: no script, no font, no picture from elsewhere. Templates are files; Jinja escapes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from wheeltapper import __version__
from wheeltapper.report.curves import Chart
from wheeltapper.report.fix_view import PROMISE_SIGNS, FixView, FollowupView
from wheeltapper.report.svg import draw
from wheeltapper.report.text import plural
from wheeltapper.report.view import RunView

SIGNS = {"sound": "✓", "ill": "✗", "cannot-tell": "?"}


@cache
def environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("wheeltapper.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["svg"] = _svg
    environment.filters["legend"] = legend
    environment.filters["plural"] = plural
    return environment


def _svg(chart: Chart, ident: str) -> Markup:
    return Markup(draw(chart, ident))  # svg.py escapes every text itself


def legend(chart: Chart) -> list[tuple[str, str]]:
    """(class, words) of each line in a chart."""
    own = [line for line in chart.lines if line.role != "dead"]
    named = len(own) == 1 and chart.title.startswith(own[0].name)  # the title says it already
    rows: list[tuple[str, str]] = [] if named else [(f"{line.role} n{line.nth}", line.name) for line in own]
    if any(line.role == "dead" for line in chart.lines):
        rows.append(("dead", "overwritten by a later launch"))
    if chart.overlay is not None:
        rows.append(("lr", "learning rate (own scale)"))
    if chart.band is not None:
        rows.append(("band", chart.band.label))
    if chart.gates:
        rows.append(("gate", "promised"))
    if any(mark.kind == "best" for mark in chart.marks):
        rows.append(("best", "checkpoint to keep"))
    return rows


def page(views: Sequence[RunView]) -> str:
    """The report of all runs as one HTML text."""
    template = environment().get_template("report.html.j2")
    return template.render(views=views, version=__version__, signs=SIGNS)


def fix_page(view: FixView) -> str:
    """The before-and-after page of a fix."""
    template = environment().get_template("fix.html.j2")
    return template.render(view=view, version=__version__, signs=SIGNS).lstrip()


def followup_page(view: FollowupView) -> str:
    """The page of a follow-up."""
    template = environment().get_template("followup.html.j2")
    return template.render(view=view, version=__version__, promise_signs=PROMISE_SIGNS).lstrip()

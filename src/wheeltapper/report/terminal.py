"""A diagnosis in the terminal: one screen first (verdict, why, what to do), then the detail.

Every piece of text enters rich as a Text object, never as markup, so a log that says "[red]" or "[/]" is
shown as it is. Without colour the words and signs alone carry the meaning.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from wheeltapper.report.text import plural
from wheeltapper.report.view import CauseView, CurveLine, EvidenceView, RemedyView, Row, RunView, SignView

STYLE = {"sound": "bold green", "ill": "bold red", "cannot-tell": "bold yellow"}
SIGNS = {"sound": "✓", "ill": "✗", "cannot-tell": "?"}
SEVERITY = {"ill": ("✗", "red"), "watch": ("!", "yellow"), "note": ("·", "dim")}
MOST_EVIDENCE = 4  # for a cause, and as many against it
MOST_REASONS = 12
MOST_NOTES = 12
NARROW = 64  # columns: a name, a curve and its numbers need that many
MOST_FULL = 3  # above this many runs, one line each


def console(file: IO[str] | None = None, *, width: int | None = None, color: bool | None = None) -> Console:
    """A console that writes what it is given: no markup, no emoji names, no highlighting of numbers."""
    if width is None and not (file or sys.stdout).isatty() and "COLUMNS" not in os.environ:
        width = 80
    return Console(
        file=file,
        width=width,
        no_color=True if color is False else None,
        force_terminal=True if color else None,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
    )


def put(out: Console, *what: RenderableType) -> None:
    """Print; where the output is a file or a pipe, without the spaces that pad each line to the width."""
    if out.is_terminal:
        out.print(*what, sep="\n")
        return
    with out.capture() as captured:
        out.print(*what, sep="\n")
    out.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


def print_diagnoses(views: Sequence[RunView], out: Console) -> None:
    """The whole report of each run; of more than a few, one line each."""
    for view in told_one_by_one(views, out):
        put(out, Text(""), first_screen(view), detail(view))
        # The report is longer than a screen: what was asked stands where the reader looks first, at its end.
        put(out, Text(""), Text.assemble(verdict_line(view), "  ", (view.headline, "bold")))


def told_one_by_one(views: Sequence[RunView], out: Console) -> Sequence[RunView]:
    """Of several runs a table comes first; the runs that are few enough for a report each."""
    if len(views) > 1:
        put(out, _many(views))
    if len(views) > MOST_FULL:
        put(out, Text("Give one of these runs by its path for the whole report.", style="dim"))
        return ()
    return views


def _many(views: Sequence[RunView]) -> RenderableType:
    order = {"ill": 0, "cannot-tell": 1, "sound": 2}
    names = Counter(view.name for view in views)
    table = plain_table()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=2)
    table.add_column(ratio=5)
    for view in sorted(views, key=lambda v: order[v.verdict])[:200]:
        # Runs that call themselves alike are told apart by where they lie.
        called = view.name if names[view.name] == 1 else view.root
        table.add_row(verdict_line(view), Text(called), Text(view.headline))
    counts = [f"{sum(v.verdict == key for v in views):,} {word}" for key, word in _COUNT_WORDS.items()]
    return Group(Text(f"{len(views):,} runs: " + ", ".join(counts), style="bold"), table)


_COUNT_WORDS = {"ill": "ill", "cannot-tell": "cannot tell", "sound": "sound"}


def verdict_line(view: RunView) -> Text:
    return Text(f"{SIGNS[view.verdict]} {view.verdict_words.upper()}  {view.chance}", style=STYLE[view.verdict])


def first_screen(view: RunView) -> RenderableType:
    parts: list[RenderableType] = [Text.assemble(verdict_line(view), "  ", (view.name, "bold"))]
    under = " · ".join(part for part in (view.progress, view.formats) if part)
    if under:
        parts.append(Text(under, style="dim"))
    parts += [Text(""), Text(view.headline, style="bold")]
    if view.suspicion is not None:
        parts += [_heading("Leading suspicion"), indented(Text(view.suspicion.value))]
        parts += [indented(Text(view.suspicion.why, style="dim"))] if view.suspicion.why else []
    if view.why:
        parts += [_heading(view.why_words), _bullets(view.why)]
    if view.todo:
        parts += [_heading("What to do"), _numbered(view.todo)]
    if view.best is not None:
        parts.append(_heading("Checkpoint to keep"))
        name = f"{view.best.name}  " if view.best.name else ""
        parts.append(indented(Text.assemble((name, "bold"), view.best.value)))
        if view.best.why:
            parts.append(indented(Text(view.best.why, style="dim")))
    if view.curves:
        parts += [Text(""), curve_lines(view.curves)]
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class ByWidth:
    """Columns where they fit, else one thing under the other: half a curve, or half a number, would be a wrong one."""

    wide: RenderableType
    narrow: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.wide if options.max_width >= NARROW else self.narrow


def curve_lines(curves: Sequence[CurveLine]) -> RenderableType:
    stacked = [
        Group(
            Text.assemble((curve.name, "bold"), f" {curve.better}"),
            indented(Group(Text(curve.picture, style="cyan"), Text(curve.numbers))),
        )
        for curve in curves
    ]
    return ByWidth(_curve_table(curves), Group(*stacked))


def _curve_table(curves: Iterable[CurveLine]) -> Table:
    table = plain_table()
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=26)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for curve in curves:
        table.add_row(Text(curve.name), Text(curve.better or " "), Text(curve.picture), Text(curve.numbers))
    return table


def detail(view: RunView) -> RenderableType:
    parts: list[RenderableType] = []
    if view.signs:
        parts += [heading_rule("Signs"), *(_sign(sign) for sign in view.signs)]
    if view.causes:
        parts += [heading_rule("Causes, by probability"), *(_cause(cause) for cause in view.causes)]
    if view.validity:
        parts += [heading_rule("Are the numbers reliable?"), _rows(view.validity)]
    if view.ruled_out:
        parts += [heading_rule("Ruled out"), _rows(view.ruled_out, named_by_value=True)]
    if view.expected:
        parts += [heading_rule("Looks odd, is normal here"), _rows(view.expected, named_by_value=True)]
    if view.missing:
        parts += [heading_rule("What to collect next, most decisive first"), _rows(view.missing)]
    if view.prognosis:
        parts += [heading_rule("Where it is going"), _bullets(view.prognosis)]
    if view.facts:
        parts += [heading_rule("Facts"), fact_table(view.facts)]
    if view.outside:
        parts += [heading_rule("Numbers outside their healthy band"), _rows(view.outside)]
    if view.unknown or view.looked or view.inside:
        parts += [heading_rule("What was looked for"), _looked(view)]
    if view.notes:
        parts += [heading_rule("Notes from reading"), _bullets(most(view.notes, MOST_NOTES))]
    return Group(*parts)


def _sign(sign: SignView) -> RenderableType:
    mark, style = SEVERITY[sign.severity]
    head = Text.assemble((f"{mark} {sign.id}", f"bold {style}"))
    about = "  ".join(part for part in (sign.series, sign.when) if part)
    if about:
        head.append(f"  {about}")
    body: list[RenderableType] = [Text(sign.summary)]
    last = " · ".join((sign.grade_words, *sign.places))
    body.append(Text(last, style="dim"))
    return Group(head, indented(Group(*body)))


def _cause(cause: CauseView) -> RenderableType:
    head = plain_table()
    head.add_column(justify="right", min_width=6, no_wrap=True)
    head.add_row(Text(cause.share, style="bold"), Text(cause.title, style="bold"))
    body: list[RenderableType] = []
    if cause.known:
        explains = f"; explains {', '.join(cause.explains)}" if cause.explains else ""
        body.append(Text(f"{cause.id}: {cause.grade_words}{explains}", style="dim"))
    if cause.summary:
        body.append(Text(cause.summary))
    for words, items in cause.speaks:
        body += [Text(f"{words} it, in bits:", style="dim"), _evidence(items)]
    body += [_remedy(remedy) for remedy in cause.remedies]
    if cause.trial:
        body.append(Text.assemble(("trial: ", "bold"), cause.trial))
    return Group(head, Padding(Group(*body), (0, 0, 1, 8)))


def _evidence(items: Sequence[EvidenceView]) -> RenderableType:
    table = plain_table()
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for item in items[:MOST_EVIDENCE]:
        text = Text(item.text)
        if item.places:
            text.append(f"  {', '.join(item.places)}", style="dim")
        table.add_row(Text(item.bits, style="green" if item.supports else "red"), text)
    left = len(items) - MOST_EVIDENCE
    if left > 0:
        table.add_row("", Text(f"and {left} more", style="dim"))
    return table


def _remedy(remedy: RemedyView) -> RenderableType:
    text = Text.assemble((f"remedy ({remedy.safety}): ", "bold"), remedy.text)
    for edit in remedy.edits:
        text.append(f"\n  {edit}", style="cyan")
    if remedy.predicts:
        text.append(f"\n  then: {remedy.predicts}", style="dim")
    return text


def _rows(rows: Iterable[Row], *, named_by_value: bool = False) -> RenderableType:
    """Name and answer on one line, the reason under it: narrow screens need no columns."""
    parts: list[RenderableType] = []
    for row in rows:
        head = Text(row.value or row.name, style="bold") if named_by_value else Text(row.name, style="bold")
        if not named_by_value and row.value:
            head.append(f"  {row.value}", style="not bold")
        parts.append(head)
        if row.why:
            parts.append(indented(Text(row.why)))
    return Group(*parts)


def fact_table(facts: Sequence[Row]) -> RenderableType:
    return ByWidth(_fact_table(facts), _rows(facts))


def _fact_table(facts: Iterable[Row]) -> Table:
    table = plain_table()
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=28)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    before = ""
    for fact in facts:
        table.add_row(Text(fact.name), Text(fact.value), Text("" if fact.why == before else fact.why))
        before = fact.why
    return table


def _looked(view: RunView) -> RenderableType:
    parts: list[RenderableType] = []
    if view.inside:
        parts.append(Text(f"{plural(view.inside, 'number')} inside the healthy band."))
    if view.looked:
        parts.append(Text(f"{plural(view.looked, 'sign')} looked for and not there."))
    if view.unknown:
        parts.append(
            Text(f"{plural(len(view.unknown), 'number or sign', 'numbers and signs')} could not be looked for:")
        )
        by_reason: dict[str, list[str]] = {}
        for row in view.unknown:
            by_reason.setdefault(row.why, []).append(row.name)
        # The reason that most of them share comes first: to log that one thing tells most.
        reasons = sorted(by_reason.items(), key=lambda item: -len(item[1]))
        told = most([f"{', '.join(names)}: {why}" for why, names in reasons], MOST_REASONS)
        parts += [indented(Text(line, style="dim")) for line in told]
    return Group(*parts)


def plain_table() -> Table:
    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def heading_rule(text: str) -> RenderableType:
    return Padding(Rule(Text(text, style="bold"), align="left", style="dim"), (1, 0, 0, 0))


def indented(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, 2))


def _bullets(lines: Iterable[str]) -> RenderableType:
    return listed("•", lines)


def _numbered(lines: Iterable[str]) -> RenderableType:
    return listed("#", lines)


def listed(mark: str, lines: Iterable[str], indent: int = 2) -> RenderableType:
    table = plain_table()
    margin = " " * indent
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")  # a command or a path must stay whole
    for number, line in enumerate(lines, start=1):
        table.add_row(Text(f"{margin}{number}." if mark == "#" else f"{margin}{mark}"), Text(line))
    return table


def most(lines: Sequence[str], most: int) -> list[str]:
    shown = list(lines[:most])
    if len(lines) > most:
        shown.append(f"and {len(lines) - most:,} more (all of them with --json)")
    return shown

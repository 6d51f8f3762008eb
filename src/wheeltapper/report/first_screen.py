"""The brief answer: on one screen of 80 by 24 the verdict, the cause with its probability, what to do and where to look.

What must be there is put in first; curves, further reasons and further steps follow as long as there are lines left, so that
nothing that matters is ever scrolled away. The rest is one word away (`--full`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from wheeltapper.report.terminal import curve_lines, indented, listed, put, told_one_by_one, verdict_line
from wheeltapper.report.view import RunView

LINES = 22  # of 24: the line that was typed, and the next prompt
MOST_WHY, MOST_TODO, MOST_PLACES, MOST_CURVES = 3, 3, 2, 4


def print_first_screens(views: Sequence[RunView], out: Console) -> None:
    """The brief answer about each run; of more than a few, one line each."""
    for view in told_one_by_one(views, out):
        put(out, FirstScreen(view))


@dataclass(frozen=True, slots=True)
class _Shown:
    """How much of each part is shown."""

    why: int = 0
    todo: int = 0
    places: int = 0
    curves: int = 0
    best: bool = False
    under: bool = False
    airy: bool = False  # an empty line before each heading


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """Renders to as many lines as fit, and never without verdict, headline, leading cause and first step."""

    view: RunView
    lines: int = LINES

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        options = options.update(height=None)
        chosen = _Shown(why=1, todo=1)
        for more in _more(self.view):
            if len(console.render_lines(_layout(self.view, more(chosen)), options)) <= self.lines:
                chosen = more(chosen)
        yield _layout(self.view, chosen)


def _more(view: RunView) -> Iterator[_Step]:
    """What is added while there is room, the most useful first."""
    yield _Step("places", 1)
    yield _Step("under", True)
    yield _Step("curves", 2)
    for count in range(2, MOST_TODO + 1):
        yield _Step("todo", count)
        yield _Step("why", count)
    yield _Step("places", MOST_PLACES)
    yield _Step("best", True)
    for count in range(3, min(MOST_CURVES, len(view.curves)) + 1):
        yield _Step("curves", count)
    yield _Step("airy", True)


@dataclass(frozen=True, slots=True)
class _Step:
    part: str
    amount: int | bool

    def __call__(self, shown: _Shown) -> _Shown:
        return _Shown(**{name: getattr(shown, name) for name in _Shown.__slots__} | {self.part: self.amount})


def _layout(view: RunView, shown: _Shown) -> RenderableType:
    def heading(text: str) -> Text:
        return Text(f"\n{text}" if shown.airy else text, style="bold")

    parts: list[RenderableType] = [Text.assemble(verdict_line(view), "  ", (view.name, "bold"))]
    under = " · ".join(part for part in (view.progress, view.formats) if part)
    if under and shown.under:
        parts.append(Text(under, style="dim", no_wrap=True, overflow="ellipsis"))
    parts.append(Text(view.headline, style="bold"))
    if view.suspicion is not None:
        parts += [heading("Leading suspicion"), indented(Text(view.suspicion.value))]
        parts += [indented(Text(view.suspicion.why, style="dim"))] if view.suspicion.why else []
    if view.why and shown.why:
        parts += [heading(view.why_words), listed("•", view.why[: shown.why])]
    if view.todo and shown.todo:
        parts += [heading("What to do"), listed("#", view.todo[: shown.todo])]
    places = places_of(view)
    if places and shown.places:
        parts += [heading("Where to look"), listed("•", places[: shown.places])]
    if view.best is not None and shown.best and view.best.name:
        parts += [heading("Checkpoint to keep"), indented(Text.assemble((f"{view.best.name}  ", "bold"), view.best.value))]
    if view.curves and shown.curves:
        parts += [Text(""), curve_lines(view.curves[: shown.curves])]
    parts += [Text(""), Text(_rest(view), style="dim")]
    return Group(*parts)


def _rest(view: RunView) -> str:
    then = "; `wheeltapper fix` writes the change" if view.verdict == "ill" else ""
    return f"The whole report: --full, or --html FILE{then}."


def places_of(view: RunView) -> tuple[str, ...]:
    """Lines of code, settings or logs that show the leading cause; else those of the signs that make the run ill."""
    cause = next((c for c in view.causes if c.known), None)
    found = [p for e in (cause.evidence if cause else ()) if e.supports for p in e.places]
    found += [p for sign in view.signs if sign.severity == "ill" for p in sign.places]
    return tuple(dict.fromkeys(_near(place) for place in found))


def _near(place: str) -> str:
    """A path as it is shortest to write from here."""
    if not os.path.isabs(place):
        return place
    near = os.path.relpath(place)
    return near if len(near) < len(place) else place

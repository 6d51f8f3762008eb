"""Two runs in the terminal: what differs, then the curves one above the other, and where they part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.text import Text

from wheeltapper.judge.compare import Comparison, CurvePair, Difference
from wheeltapper.reading.record import ClockName
from wheeltapper.report.spark import spark
from wheeltapper.report.terminal import ByWidth, heading_rule, indented, listed, plain_table, put
from wheeltapper.report.text import clean, num, plural
from wheeltapper.report.view import base_of, nearer, value_words
from wheeltapper.run.model import Series

MOST_CURVES = 20
CURVE = 40
HEADINGS = {"knob": "Settings that differ", "key": "Other keys that differ", "environment": "Environment"}


def print_comparison(comparison: Comparison, out: Console) -> None:
    parts: list[RenderableType] = [
        Text.assemble(("A  ", "bold"), clean(comparison.a.name, 100), ("  " + clean(comparison.a.root, 200), "dim")),
        Text.assemble(("B  ", "bold"), clean(comparison.b.name, 100), ("  " + clean(comparison.b.root, 200), "dim")),
    ]
    for kind, heading in HEADINGS.items():
        rows = [d for d in comparison.differences if d.kind == kind]
        if rows:
            parts += [heading_rule(heading), _differences(rows, base_of(comparison.a), base_of(comparison.b))]
    known = bool(comparison.a.configs and comparison.b.configs)
    if known and not comparison.differences:
        parts += [Text(""), Text("No setting differs that either run states.")]
    if known:
        counts = f"{plural(comparison.same, 'setting')} the same, {comparison.hidden:,} hidden (names, folders, times)"
        parts.append(Text(f"\n{counts}", "dim"))
    if comparison.notes:
        parts.append(listed("•", [clean(note) for note in comparison.notes]))
    if comparison.curves:
        parts += [heading_rule("Curves"), *(_curve(pair) for pair in comparison.curves[:MOST_CURVES])]
        left = len(comparison.curves) - MOST_CURVES
        if left > 0:
            parts.append(Text(f"and {left:,} more with --json", style="dim"))
    put(out, *parts)


def _differences(rows: Iterable[Difference], base_a: str, base_b: str) -> RenderableType:
    stacked: list[RenderableType] = []
    table = plain_table()
    table.show_header = True
    table.header_style = "dim"
    table.add_column("", no_wrap=True, overflow="ellipsis", max_width=28)
    for title in ("A", "B", "where"):
        table.add_column(title, overflow="fold")
    for row in rows:
        both = ((row.place_a, base_a), (row.place_b, base_b))
        places = dict.fromkeys(nearer(clean(place, 300), base) for place, base in both if place is not None)
        cells = (clean(row.name, 60), _with_unit(row.a, row.unit_a), _with_unit(row.b, row.unit_b), ", ".join(places))
        table.add_row(Text(cells[0], style="bold"), Text(cells[1]), Text(cells[2]), Text(cells[3], style="dim"))
        under = (Text(f"A  {cells[1]}"), Text(f"B  {cells[2]}"), Text(cells[3], style="dim"))
        stacked += [Text(cells[0], style="bold"), indented(Group(*under))]
    return ByWidth(table, Group(*stacked))


def _with_unit(value: Any, unit: str | None) -> str:
    shown = "''" if value == "" else value_words(value)
    word = unit.removesuffix("s") if unit and value == 1 else unit
    return f"{shown} {word}" if word and value is not None else shown


def _curve(pair: CurvePair) -> RenderableType:
    table = plain_table()
    for _ in range(3):
        table.add_column(overflow="fold")
    for letter, mine, other in (("A", pair.a, pair.b), ("B", pair.b, pair.a)):
        picture = spark(mine.values, _width(pair, mine), beside=other.values)
        table.add_row(Text(f"  {letter}", style="bold"), Text(picture, style="cyan"), Text(_ends(mine)))
    head = Text.assemble((clean(pair.name, 60), "bold"), f": {pair.text}")
    lines = plain_table()
    lines.add_row(head)
    lines.add_row(table)
    return lines


def _width(pair: CurvePair, series: Series) -> int:
    """The run that went further is wider, so that equal columns are equal positions."""
    mine, longest = _last(series, pair.clock), max(_last(s, pair.clock) for s in (pair.a, pair.b))
    share = mine / longest if longest > 0 else 1.0
    return max(1, round(CURVE * share)) if 0 <= share <= 1 else CURVE  # positions of a damaged record may be anything


def _last(series: Series, clock: ClockName) -> float:
    track = series.on(clock)
    return 0.0 if track is None or not len(track) else float(np.nanmax(track))


def _ends(series: Series) -> str:
    return f"{num(float(series.values[0]))} → {num(float(series.values[-1]))}"

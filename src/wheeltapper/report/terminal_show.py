"""What a run left behind, in the terminal: curves, facts, checkpoints, events, and what was not understood."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from wheeltapper.finding import Place
from wheeltapper.reading.record import ClockName
from wheeltapper.report.terminal import ByWidth, curve_lines, fact_table, heading_rule, listed, most, plain_table, put
from wheeltapper.report.text import clean, num, plural, position, size
from wheeltapper.report.view import base_of, curve_line, facts_of, nearer, notes_of, unit_words
from wheeltapper.run.model import Checkpoint, Run, Series

MOST_SERIES = 40
MOST_ROWS = 15
MOST_RUNS = 3


def print_runs(runs: Sequence[Run], out: Console, *, everything: bool = False) -> None:
    if len(runs) > 1:
        put(out, Text(f"{len(runs):,} runs", style="bold"), _run_table(runs if everything else runs[:200]))
        if len(runs) > MOST_RUNS and not everything:
            put(out, Text("Give one of these runs by its path, or --all, to see them in full.", style="dim"))
            return
    for run in runs:
        put(out, Text(""), *_run(run, everything, out.width))


def _run_table(runs: Sequence[Run]) -> RenderableType:
    table = plain_table()
    for _ in range(4):
        table.add_column(overflow="fold")
    for run in runs:
        points = sum(len(s) for s in run.series.values())
        formats = ", ".join(clean(f, 60) for f in run.formats)
        table.add_row(
            Text(clean(run.name, 80), style="bold"),
            Text(formats),
            Text(f"{len(run.series)} series"),
            Text(plural(points, "point")),
        )
    return table


def _run(run: Run, everything: bool, width: int) -> list[RenderableType]:
    limit = 10**9 if everything else MOST_ROWS
    parts: list[RenderableType] = [Text(clean(run.name, 120), style="bold")]
    under = [", ".join(clean(f, 60) for f in run.formats), plural(len(run.files), "file")]
    if run.root not in ("", "."):
        under.append(clean(run.root, 200))
    launches = _segments(run)
    if len(launches) > 1:
        under.append(plural(len(launches), "launch", "launches"))
    parts.append(Text(" · ".join(part for part in under if part), style="dim"))
    if run.series:
        parts += [heading_rule(f"Series ({len(run.series)})"), _series_table(run, everything, width)]
    if len(launches) > 1:
        parts += [heading_rule("Launches"), listed("•", most(_near(launches, run), limit))]
    base = base_of(run)
    facts = nearer(facts_of(run, limit), base)
    if facts:
        parts += [heading_rule("Facts"), fact_table(facts)]
    if run.configs:
        lines = [_config_line(tree.file, tree.format, len(tree), tree.problems) for tree in run.configs]
        parts += [heading_rule("Configuration"), listed("•", most(_near(lines, run), limit))]
    if run.checkpoints:
        parts += [heading_rule("Checkpoints"), _checkpoints(run, limit)]
    if run.events:
        parts += [heading_rule("Events"), listed("•", most(_near(_events(run), run), limit))]
    notes = _near(notes_of(run), run)
    if notes:
        parts += [heading_rule("Not understood, repaired or left out"), listed("•", most(notes, limit))]
    return parts


def _series_table(run: Run, everything: bool, width: int) -> RenderableType:
    rows = sorted(run.series.values(), key=_series_order)
    shown = rows if everything else rows[:MOST_SERIES]
    cells = []
    for series in shown:
        line = curve_line(series, width=12)
        cells.append(
            [line.name + unit_words(series), line.better or " ", line.picture, *_three(series), _extent(series)]
        )
    titles = ["name", "", "curve", "first", "last", "best", "points"]
    others = sum(2 + max(len(row[i]) for row in [titles, *cells]) for i in range(1, len(titles)))
    table = plain_table()
    table.show_header = True
    table.header_style = "dim"
    # The name gives way where the screen is narrow; a number cut in half would be a wrong number.
    table.add_column("name", no_wrap=True, overflow="ellipsis", max_width=max(10, width - others))
    for title in titles[1:]:
        right = title in ("first", "last", "best")
        style = {"curve": "cyan", "points": "dim"}.get(title, "")
        table.add_column(title, no_wrap=True, justify="right" if right else "left", style=style)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    more = [Text(f"and {len(rows) - len(shown):,} more: --all", style="dim")] if len(rows) > len(shown) else []
    narrow = curve_lines([curve_line(series) for series in shown])
    return Group(ByWidth(table, narrow), *more)


def _three(series: Series) -> tuple[str, str, str]:
    """First, last and best value; best only where it is known which way is better."""
    good = series.values[series.finite]
    best = ""
    if good.size and series.better in ("up", "down"):
        best = num(float(good.max() if series.better == "up" else good.min()))
    if not len(series):
        return "", "", ""
    return num(float(series.values[0])), num(float(series.values[-1])), best


def _extent(series: Series) -> str:
    lost = len(series) - int(series.finite.sum())
    return f"{len(series):,} {series.clock}" + (f", {lost:,} ×" if lost else "")


def _series_order(series: Series) -> tuple[bool, bool]:
    """Known quantities first, whole before parts; else in the order of the file."""
    return (series.quantity is None, series.part is not None)


def _segments(run: Run) -> list[str]:
    lines = []
    for segment in run.segments:
        if segment.beside:  # told by another file already
            continue
        reach = f"{position(segment.start, segment.clock)} to {num(segment.end)}"
        dead = "" if segment.dead_from is None else f"; overwritten from {num(segment.dead_from)}"
        place = Place(file=segment.file, line=segment.line)
        lines.append(clean(f"{segment.kind}: {reach}{dead} ({segment.why}, {place})"))
    return lines


def _near(lines: Sequence[str], run: Run) -> tuple[str, ...]:
    near: tuple[str, ...] = nearer(tuple(lines), base_of(run))
    return near


def _config_line(file: str, form: str, leaves: int, problems: tuple[str, ...]) -> str:
    trouble = f"; {plural(len(problems), 'problem')}: {problems[0]}" if problems else ""
    return clean(f"{file} ({form}, {plural(leaves, 'value')}){trouble}")


def _checkpoints(run: Run, limit: int) -> RenderableType:
    base = base_of(run)
    rows = [tuple(nearer(cell, base) for cell in _checkpoint(c)) for c in run.checkpoints[:limit]]
    table = plain_table()
    # Names of one folder differ at their end: only long ones are folded.
    table.add_column(overflow="fold", no_wrap=max(len(row[0]) for row in rows) <= 36)
    for _ in range(3):
        table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    left = len(run.checkpoints) - limit
    more = [Text(f"and {left:,} more: --all", style="dim")] if left > 0 else []
    narrow = listed("•", ["; ".join(filter(None, row)) for row in rows])
    return Group(ByWidth(table, narrow), *more)


def _checkpoint(c: Checkpoint) -> tuple[str, str, str, str]:
    """Name, position, state on disk, and what is known of its content."""
    clock: ClockName = "epoch" if c.step is None else "step"
    at = c.epoch if c.step is None else c.step
    about = [", ".join(clean(k, 20) for k in c.kinds)]
    if c.metric is not None:
        about.append(f"{clean(c.metric[0], 40)} = {num(c.metric[1])}")
    if c.note:
        about.append(clean(c.note, 200))
    return (
        clean(c.path, 200),
        "" if at is None else position(at, clock),
        size(c.size) if c.exists else "not on disk",
        "; ".join(filter(None, about)),
    )


def _events(run: Run) -> list[str]:
    lines = []
    for event in run.events:
        at = f" at {position(event.at, event.clock)}" if event.at is not None else ""
        times = f" ({event.count:,} times)" if event.count > 1 else ""
        text = clean(event.text, 200)
        lines.append(f"{event.kind}{at}: {text}{times}  {clean(Place(file=event.file, line=event.line), 120)}")
    return lines

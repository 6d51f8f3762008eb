"""Where one launch of a run ends and the next begins, from falling positions and from what the log says."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np

from wheeltapper.reading.record import Event, Floats, Points
from wheeltapper.run.model import Segment, same_values
from wheeltapper.run.names import meaning_of

LEAST = 3  # values that two files must have in common: two may agree by chance, or be a first and a last row
MACHINE = {"duration", "throughput", "memory"}  # what a row took is told of training and of evaluations alike
MOST_BEFORE = 3  # files before a file that it is compared with: the launch it goes on from is one of the last


def find_launches(points: list[Points], events: tuple[Event, ...]) -> tuple[dict[str, Any], tuple[Segment, ...]]:
    """Per file, the lines at which a new launch begins; and the segments they make."""
    by_file: dict[str, list[Points]] = defaultdict(list)
    for p in points:
        by_file[p.file].append(p)
    starts: dict[str, Any] = {}
    segments: list[Segment] = []
    for file, members in by_file.items():
        cuts = _cut_lines(members)
        first_line = min(int(p.lines[0]) for p in members)
        last_line = max(int(p.lines[-1]) for p in members)
        words = {
            int(e.line): e
            for e in events
            if e.file == file and e.kind in ("resume", "start") and first_line < e.line <= last_line
        }
        known = np.sort(np.concatenate([p.lines for p in members]))
        gaps = set(np.searchsorted(known, cuts).tolist())
        for line in words:  # a launch that says so; unless a fall between the same two points already marks it
            gap = int(np.searchsorted(known, line))
            if gap not in gaps:
                gaps.add(gap)
                cuts.append(line)
        lines = np.unique(np.asarray([first_line, *cuts], dtype=np.int64))
        starts[file] = (lines, len(segments))
        segments += _segments_of(file, members, lines, len(segments))
    return starts, tuple(segments)


def _cut_lines(members: list[Points]) -> list[int]:
    """Lines where positions fall. A fall in one series tells only that a launch began between two of its
    lines; the fewest lines that explain every fall are taken (interval stabbing)."""
    falls: list[tuple[int, int]] = []
    results = [p for p in members if meaning_of(p.name, p.split, p.unit).quantity not in MACHINE]
    for p in results or members:
        falls += [(int(p.lines[i - 1]), int(p.lines[i])) for i in _falls(p.at, p.values)]
    falls.sort(key=lambda gap: gap[1])
    cuts: list[int] = []
    for before, line in falls:
        if not cuts or cuts[-1] <= before:
            cuts.append(line)
    return cuts


def _falls(at: Floats, values: Floats) -> list[int]:
    """Indices where a new launch begins: the position falls, and not merely by lines out of order; or the
    first position comes again with another value."""
    steps = np.diff(at)
    again = (steps == 0) & (at[1:] == at[0]) & (values[1:] != values[:-1])
    if np.any(at[np.isfinite(at)] % 1) or not np.any(steps) or np.mean((steps == 0)[at[1:] != at[0]]) > 0.5:
        again[:] = False  # epochs printed with two digits, or many rows of every epoch: the first stands on many, or on all
    spots = np.flatnonzero((steps < 0) | again) + 1
    if not len(spots):
        return []
    usual = float(np.median(np.abs(steps[steps != 0]))) if np.any(steps != 0) else 1.0
    kept = []
    for i in spots.tolist():
        swapped = steps[i - 1] < 0 and (
            at[i - 1] - at[i] <= usual and i + 1 < len(at) and at[i + 1] > at[i - 1] and (i < 2 or at[i] > at[i - 2])
        )
        if not swapped and not _told_before(at, values, i):
            kept.append(i)
    return kept


def _told_before(at: Floats, values: Floats, i: int) -> bool:
    """The last row tells an earlier one again: "best iteration is [90]"."""
    if i != len(at) - 1:
        return False
    return bool(np.any((at[:i] == at[i]) & (values[:i] == values[i])))


def _segments_of(file: str, members: list[Points], lines: Any, base: int) -> list[Segment]:
    main = max(members, key=lambda p: len(p.at))
    clock = main.clock
    out: list[Segment] = []
    begin: float | None = None
    at = np.concatenate([p.at for p in members if p.clock == clock])
    launch = np.searchsorted(lines, np.concatenate([p.lines for p in members if p.clock == clock]), side="right") - 1
    sound = np.isfinite(at) & (launch >= 0)
    lows, highs = np.full(len(lines), np.inf), np.full(len(lines), -np.inf)
    np.minimum.at(lows, launch[sound], at[sound])
    np.maximum.at(highs, launch[sound], at[sound])
    for line, low, high in zip(lines.tolist(), lows.tolist(), highs.tolist(), strict=True):
        if low > high:  # no position in it
            continue
        begin = low if begin is None else begin
        if not out:
            kind, why = "first", "the first line with values"
        else:
            spacing = (out[0].end - out[0].start) / max(len(main.at) - 1, 1)
            again = low <= begin + spacing
            kind = "relaunch" if again else "resume"
            why = (
                f"{clock} falls from {out[-1].end:g} to {low:g}"
                if low <= out[-1].end
                else f"the log says so, at {clock} {low:g}"
            )
        out.append(Segment(base + len(out), clock, low, high, kind, file, int(line), why))  # type: ignore[arg-type]
    return out


def between_files(segments: tuple[Segment, ...], stories: list[list[Points]]) -> tuple[Segment, ...]:
    """What the first launch of a later file is to the files before it: the same launch told again, another part of its
    record, or one that goes on or begins again. `stories` are the points of each series, in the order of the files."""
    first = {s.file: s for s in segments if s.kind == "first"}
    if len(first) < 2:
        return segments
    order = {file: i for i, file in enumerate(first)}
    shared: dict[str, list[tuple[Points, Points]]] = defaultdict(list)
    for members in stories:
        for p in members:
            before = [q for q in members if order[q.file] < order[p.file] and q.clock == p.clock and not q.woven]
            shared[p.file] += [(q, p) for q in before[-MOST_BEFORE:]]
    out = []
    for segment in segments:
        if segment.kind == "first" and order[segment.file]:
            segment = _after(segment, [pair for pair in shared[segment.file] if pair[1].clock == segment.clock])
        out.append(segment)
    return tuple(out)


def _after(segment: Segment, pairs: list[tuple[Points, Points]]) -> Segment:
    told = [t for q, p in pairs if (t := told_alike(q, p)) is not None]
    if any(t >= 0.5 for t in told) or not pairs:
        return replace(segment, beside=True)
    begin, end = min(float(q.at[0]) for q, _ in pairs), max(float(q.at[-1]) for q, _ in pairs)
    usual = max(max(spacing(q.at), spacing(p.at)) for q, p in pairs)
    if begin + 1.5 * usual < segment.start <= end + 3 * usual:  # a row or two may be lost where it was stopped
        why = f"{segment.clock} {segment.start:g} follows on {end:g} of the file before"
        return replace(segment, kind="resume", why=why)
    if segment.start <= begin + 1.5 * usual and told:
        return replace(
            segment, kind="relaunch", why=f"begins again at {segment.clock} {segment.start:g} with other values"
        )
    return segment


def told_alike(p: Points, q: Points, shift: float = 0.0) -> float | None:
    """The share of the positions of both (those of `q` shifted) at which two files tell the same value, to the digits
    they print and as a fraction or in percent. None: they have too few."""
    _, i, j = np.intersect1d(p.at, q.at + shift, return_indices=True)
    if len(i) < LEAST:
        return None
    a, b = p.values[i], q.values[j]
    share = 0.0
    for scale in (1.0, 100.0, 0.01):
        coarse = 0.6 * 10.0 ** -min(decimals(a * scale), decimals(b))
        with np.errstate(invalid="ignore", over="ignore"):
            close = (np.abs(a * scale - b) <= coarse) | same_values(a * scale, b)
        share = max(share, float(np.mean(close)))
    return share


def decimals(values: Floats) -> int:
    """Decimals that the values were printed with."""
    sound = values[np.isfinite(values)]
    return next((d for d in range(7) if np.allclose(sound, np.round(sound, d), rtol=1e-9, atol=1e-12)), 7)


def spacing(at: Floats) -> float:
    """The usual distance of two positions."""
    steps = np.abs(np.diff(at))
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else 1.0

"""A Chart as inline SVG. Colours are CSS classes, so the page decides light or dark; text is escaped here.

The view box is small (440 units), so that the labels stay readable when a phone scales the picture.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from wheeltapper.report.curves import Chart, Gate, Line, Mark
from wheeltapper.report.text import num

WIDTH, HEIGHT = 440.0, 220.0
LEFT, RIGHT, BOTTOM = 48.0, 10.0, 26.0
ROW, MOST_ROWS = 11.0, 3  # labels of marks stand in rows above the curves, never on them
GATE, CAP = 2.5, 5.0  # half widths of a promise and of its limit
GLYPH = 6.8  # width of a bold label character at the page's 11-unit font, for keeping labels apart


def element(name: str, *children: str, text: str | None = None, **attributes: object) -> str:
    """One element. Attribute values and `text` are escaped, `children` are elements already.

    >>> element("text", text="a < b", class_="tick", x=1.25)
    '<text class="tick" x="1.2">a &lt; b</text>'
    """
    written = []
    for key, value in attributes.items():
        shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
        written.append(f' {key.rstrip("_").replace("_", "-")}="{escape(shown)}"')
    inner = "".join(children) + ("" if text is None else escape(text))
    return f"<{name}{''.join(written)}>{inner}</{name}>" if inner else f"<{name}{''.join(written)}/>"


def draw(chart: Chart, ident: str = "c") -> str:
    """The chart as one <svg> element. `ident` keeps the pattern ids of several charts on a page apart."""
    scale = _Scale(chart)
    hatch = element("line", class_="hatch", x1=0, y1=0, x2=0, y2=5)
    pattern = f'<pattern id="nan-{ident}" width="5" height="5" patternUnits="userSpaceOnUse" '
    parts = [f'<defs>{pattern}patternTransform="rotate(45)">{hatch}</pattern></defs>', *_axes(chart, scale)]
    parts += _shades(chart, scale, ident)
    if chart.overlay is not None:
        parts += _overlay(chart.overlay, scale)
    if chart.band is not None:
        low, high = scale.y(chart.band.low), scale.y(chart.band.high)
        x = scale.x(chart.band.x)
        outline = [*zip(x, high, strict=True), *zip(x[::-1], low[::-1], strict=True)]
        title = element("title", text=chart.band.label)
        parts.append(element("polygon", title, class_="band", points=_points(outline)))
    for line in chart.lines:
        parts += _line(line, scale)
    parts += [part for gate in chart.gates for part in _gate(gate, scale)]
    parts += _marks(chart, scale)
    box = f'<svg class="chart" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img"'
    return f'{box} aria-label="{escape(_spoken(chart))}">{"".join(parts)}</svg>'


class _Scale:
    """Data to picture. Values are divided before they are subtracted: a diverged loss may be near the
    largest float."""

    def __init__(self, chart: Chart) -> None:
        self.log = chart.log
        low, high = chart.low, chart.high
        if chart.band is not None:
            low = min(low, float(np.min(chart.band.low)))
            high = max(high, float(np.max(chart.band.high)))
        limits = [limit for gate in chart.gates for limit in (gate.low, gate.high) if limit is not None]
        low, high = min([low, *limits]), max([high, *limits])
        self.log = self.log and low > 0
        self.low, self.high = self._warp(low), self._warp(high)
        self.unit = max(abs(self.low), abs(self.high), 1e-300)
        if self.high == self.low:
            pad = abs(self.low) * 0.1 or 1.0
        else:
            pad = 0.06 * (self.high / self.unit - self.low / self.unit) * self.unit
        if math.isfinite(self.high + pad) and math.isfinite(self.low - pad):
            self.low, self.high = self.low - pad, self.high + pad
        self.unit = max(abs(self.low), abs(self.high), 1e-300)
        self.start = chart.start
        self.width = (chart.end - chart.start) or 1.0
        self.labels = _place_labels(chart, self)
        rows = 1 + max((row for _, _, row in self.labels), default=-1)
        self.top = 8.0 + ROW * rows

    def _warp(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def x(self, at: Any) -> Any:
        return LEFT + (np.asarray(at, float) - self.start) / self.width * (WIDTH - LEFT - RIGHT)

    def y(self, value: Any) -> Any:
        warped = np.log10(value) if self.log else np.asarray(value, float)
        low, high = self.low / self.unit, self.high / self.unit
        share = (warped / self.unit - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - self.top - BOTTOM)


def _points(pairs: Any) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


def _line(line: Line, scale: _Scale) -> list[str]:
    out = []
    for xs, ys in line.pieces:
        pairs = list(zip(scale.x(xs), scale.y(ys), strict=True))
        if len(pairs) == 1:
            x, y = pairs[0]
            out.append(element("circle", class_=f"dot {line.role} n{line.nth}", cx=float(x), cy=float(y), r=2))
        else:
            out.append(element("polyline", class_=f"line {line.role} n{line.nth}", points=_points(pairs)))
    return out


def _gate(gate: Gate, scale: _Scale) -> list[str]:
    """A bar over what is allowed at one position, with a cap at each limit; a side without one runs to the edge."""
    x, kind = float(scale.x(gate.at)), f"{gate.role} n{gate.nth}"
    top = scale.top if gate.high is None else float(scale.y(gate.high))
    bottom = HEIGHT - BOTTOM if gate.low is None else float(scale.y(gate.low))
    title = element("title", text=gate.label)
    bar = element(
        "rect", title, class_=f"gate {kind}", x=x - GATE, y=top, width=2 * GATE, height=max(0.5, bottom - top)
    )
    caps = [y for y, limit in ((top, gate.high), (bottom, gate.low)) if limit is not None]
    return [bar, *(element("line", class_=f"cap {kind}", x1=x - CAP, y1=y, x2=x + CAP, y2=y) for y in caps)]


def _overlay(line: Line, scale: _Scale) -> list[str]:
    """The learning rate behind the curves, on its own scale from 0 to its peak at 90 % of the height."""
    peak = max((float(ys.max()) for _, ys in line.pieces), default=0.0)
    if peak <= 0:
        return []
    floor, height = HEIGHT - BOTTOM, 0.9 * (HEIGHT - scale.top - BOTTOM)
    return [
        element("polyline", class_="line lr", points=_points(zip(scale.x(xs), tops, strict=True)))
        for xs, tops in ((xs, floor - ys / peak * height) for xs, ys in line.pieces)
    ]


def _shades(chart: Chart, scale: _Scale, ident: str) -> list[str]:
    def box(start: float, end: float, least: float, **attributes: str) -> str:
        left, right = max(LEFT, float(scale.x(start))), min(WIDTH - RIGHT, float(scale.x(end)))
        if right - left < least:
            left, right = (left + right - least) / 2, (left + right + least) / 2
        height = HEIGHT - scale.top - BOTTOM
        return element("rect", x=left, y=scale.top, width=right - left, height=height, **attributes)

    spans = {(m.at, m.end): m for m in sorted(chart.marks, key=lambda m: m.kind == "ill") if m.end is not None}
    grave = any(m.kind == "ill" for m in spans.values())
    # Shades lie over each other and would darken: one per stretch, and only the gravest kind.
    out = [
        box(at, end, 1.0, class_=f"shade {mark.kind}")
        for (at, end), mark in spans.items()
        if end is not None and mark.kind == ("ill" if grave else "watch")
    ]
    for line in chart.lines:
        out += [box(start, end, 3.0, class_="nan", fill=f"url(#nan-{ident})") for start, end in line.broken]
    return out


def _marks(chart: Chart, scale: _Scale) -> list[str]:
    out: list[str] = []
    top = dict.fromkeys(chart.marks, scale.top)
    for mark, left, row in scale.labels:
        y = 10 + ROW * row
        top[mark] = y - 7
        out.append(element("text", text=mark.label, class_=f"label {mark.kind}", x=left, y=y))
    for mark in chart.marks:
        x = float(scale.x(mark.at))
        title = element("title", text=f"{mark.label} at {num(mark.at)}")
        if mark.y is not None:
            out.append(element("circle", title, class_="mark best", cx=x, cy=float(scale.y(mark.y)), r=4.5))
            continue
        out.append(element("line", title, class_=f"mark {mark.kind}", x1=x, y1=top[mark], x2=x, y2=HEIGHT - BOTTOM))
    broken = [stretch for line in chart.lines for stretch in line.broken]
    if broken:
        widest = max(broken, key=lambda stretch: stretch[1] - stretch[0])
        x = min(max(float(scale.x(sum(widest) / 2)), LEFT + 28), WIDTH - RIGHT - 28)
        where = {"x": x, "y": HEIGHT - BOTTOM - 5, "text_anchor": "middle"}
        out.append(element("text", text="not finite", class_="label nan", **where))
    return out


def _place_labels(chart: Chart, scale: _Scale) -> list[tuple[Mark, float, int]]:
    """Each label beside its line, on the first row that is free there; the gravest marks choose first."""
    order = {"ill": 0, "watch": 1, "restart": 2, "stage": 3}
    placed: list[tuple[Mark, float, int]] = []
    taken: list[tuple[float, float, int]] = []
    marks = sorted((m for m in chart.marks if m.y is None), key=lambda m: (order.get(m.kind, 9), m.at))
    for mark in marks:
        x, width = float(scale.x(mark.at)), GLYPH * len(mark.label)
        left = x + 3 if x + 3 + width < WIDTH - RIGHT else x - 3 - width
        for row in range(MOST_ROWS):
            if all(r != row or left > end + 3 or left + width + 3 < start for start, end, r in taken):
                taken.append((left, left + width, row))
                placed.append((mark, left, row))
                break
    return placed


def _axes(chart: Chart, scale: _Scale) -> list[str]:
    out = []
    floor, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in _y_ticks(scale):
        y = float(scale.y(value))
        out.append(element("line", class_="grid", x1=LEFT, y1=y, x2=right, y2=y))
        powers = scale.log and value >= 1e4
        out.append(_tick(_power(value) if powers else _short(value), LEFT - 5, y + 3.4, "end"))
    for value in nice_ticks(chart.start, chart.end, 5):
        x = float(scale.x(value))
        out.append(_tick(_short(value), x, floor + 13, "end" if x > right - 12 else "middle"))
    out.append(element("line", class_="axis", x1=LEFT, y1=floor, x2=right, y2=floor))
    out.append(_tick(chart.clock, LEFT - 5, HEIGHT - 3, "end"))
    return out


def _tick(text: str, x: float, y: float, anchor: str) -> str:
    return element("text", text=text, class_="tick", x=x, y=y, text_anchor=anchor)


def _y_ticks(scale: _Scale) -> list[float]:
    if not scale.log:
        return nice_ticks(scale.low, scale.high, 4)
    first, last = max(-300, math.ceil(scale.low)), min(300, math.floor(scale.high))  # 10.0**e must exist
    if last - first >= 2:
        stride = max(1, (last - first) // 4)
        return [10.0**e for e in range(first, last + 1, stride)]
    exponents = range(math.floor(scale.low), math.ceil(scale.high) + 1)
    candidates = [m * 10.0**e for e in exponents for m in (1, 2, 5)]
    return [value for value in candidates if scale.low <= math.log10(value) <= scale.high]


def nice_ticks(low: float, high: float, about: int) -> list[float]:
    """Round positions between low and high.

    >>> nice_ticks(0, 97, 5), nice_ticks(0.31, 0.34, 4)
    ([0.0, 20.0, 40.0, 60.0, 80.0], [0.31, 0.32, 0.33, 0.34])
    """
    width = high - low
    if not (math.isfinite(width) and width > 0):
        return [low]
    raw = width / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / raw)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def _short(value: float) -> str:
    """A tick label: 25k, 1.5M, 3e-4."""
    size = abs(value)
    if size >= 1e9 or (0 < size < 1e-3):
        return _power(value)
    for limit, suffix in ((1e6, "M"), (1e3, "k")):
        if size >= limit:
            return f"{value / limit:.4g}{suffix}"
    return f"{value:.4g}"


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def _spoken(chart: Chart) -> str:
    """The chart in words, for who cannot see it."""
    names = ", ".join(line.name for line in chart.lines if line.role != "dead")
    marks = "; ".join(f"{m.label} at {num(m.at)}" for m in chart.marks)
    spoken = f"{names} over {chart.clock}, from {num(chart.low)} to {num(chart.high)}"
    return f"{spoken}. {marks}" if marks else spoken

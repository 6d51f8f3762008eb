"""A curve in text, drawn with braille dots: two by four to a character, with bands, marks and what is not finite.

Every column shows the lowest and the highest value that falls into it, so a spike is never averaged away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.text import Text

from wheeltapper.reading.record import Floats
from wheeltapper.report.text import num

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a character
LABEL = 9  # columns for the numbers at the left
CROWD = 6.0  # a range so many times that of the middle 96 % is cut to it, else one spike flattens the curve


@dataclass(frozen=True, slots=True)
class Look:
    """Colours of one ground."""

    curve: str
    band: str  # behind the characters
    ahead: str
    bad: str
    mark: str
    axis: str


DARK = Look("#7dcfff", "on #24314f", "#9d8cff", "bold #ff6b6b", "#7ee787", "#7a8290")
LIGHT = Look("#0550ae", "on #dbe7ff", "#6639ba", "bold #cf222e", "#1a7f37", "#6e7781")


@dataclass(frozen=True, slots=True)
class Band:
    """What is expected ahead."""

    at: Floats
    low: Floats
    middle: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class Plot:
    at: Floats
    values: Floats
    band: Band | None = None
    target: float | None = None
    onsets: tuple[float, ...] = ()  # where alarms began
    end: float | None = None  # the planned end, if the axis shall reach it
    log: bool = False


def draw(plot: Plot, width: int, height: int, look: Look = DARK) -> list[Text]:
    """`height` lines of at most `width` characters; the last holds the positions."""
    with np.errstate(all="ignore"):  # values near the largest float are drawn at the edge
        return _draw(plot, width, height, look)


def _draw(plot: Plot, width: int, height: int, look: Look) -> list[Text]:
    columns, rows = width - LABEL, height - 1
    good = np.isfinite(plot.values) & np.isfinite(plot.at)
    if plot.log:
        good &= plot.values > 0
    if columns < 8 or rows < 2 or not good.any():
        said = "nothing to draw yet" if not len(plot.values) else "no finite value to draw"
        return [Text(said[:width], style=look.axis)]
    left, right = _across(plot)
    low, high = _range(plot, good)
    x = _Scale(left, right, 2 * columns)
    y = _Scale(high, low, 4 * rows)  # from the top
    dots = np.zeros((4 * rows, 2 * columns), dtype=bool)
    _curve(dots, x.dots(plot.at[good]), y.dots(_shown(plot, plot.values[good])))
    ahead = np.zeros_like(dots)
    shaded = np.zeros((rows, columns), dtype=bool)
    if plot.band is not None:
        _ahead(plot, x, y, ahead, shaded)
    cells = _characters(dots | ahead)
    styles = np.full((rows, columns), look.curve, dtype=object)
    only_ahead = _any(ahead) & ~_any(dots)
    styles[only_ahead] = look.ahead
    chars = [[chr(0x2800 + int(c)) if c else " " for c in row] for row in cells]
    if plot.target is not None:
        row = int(y.dots(_shown(plot, np.array([plot.target])))[0]) // 4
        if low <= float(_shown(plot, np.array([plot.target]))[0]) <= high:
            _fill_row(chars, styles, row, "╌", look.mark)
    for onset in plot.onsets:
        if left <= onset <= right:
            _fill_column(chars, styles, int(x.dots(np.array([onset]))[0]) // 2, "┊", look.bad)
    for at in plot.at[~np.isfinite(plot.values) & np.isfinite(plot.at)]:
        column = int(x.dots(np.array([at]))[0]) // 2
        chars[rows - 1][column], styles[rows - 1, column] = "×", look.bad
    labels = {0: high, rows - 1: low, rows // 2: (high + low) / 2} if rows > 4 else {0: high, rows - 1: low}
    out = []
    for r in range(rows):
        value = labels.get(r)
        line = Text(f"{_label(plot, value):>{LABEL - 2}} " if value is not None else " " * (LABEL - 1), style=look.axis)
        line.append("┤" if value is not None else "│", style=look.axis)
        for c in range(columns):
            line.append(chars[r][c], style=f"{styles[r, c]} {look.band}" if shaded[r, c] else str(styles[r, c]))
        out.append(line)
    first, last = num(left), num(right)
    gap = max(1, columns - len(first) - len(last))
    out.append(Text(f"{' ' * LABEL}{first}{' ' * gap}{last}"[:width], style=look.axis))
    return out


class _Scale:
    """Values to dots, from 0 to n - 1."""

    def __init__(self, first: float, last: float, n: int) -> None:
        self.first, self.span, self.n = first, (last - first) or 1.0, n

    def dots(self, values: Floats) -> np.ndarray:
        place = np.round((values - self.first) / self.span * (self.n - 1))
        return np.clip(place, 0, self.n - 1).astype(np.int64)

    def values(self) -> Floats:
        return self.first + np.arange(self.n) / (self.n - 1) * self.span


def _across(plot: Plot) -> tuple[float, float]:
    at = plot.at[np.isfinite(plot.at)]
    ends = [float(at.max())]
    if plot.band is not None and len(plot.band.at):
        ends.append(float(plot.band.at[-1]))
    if plot.end is not None:
        ends.append(plot.end)
    return float(at.min()), max(ends)


def _shown(plot: Plot, values: Floats) -> Floats:
    return np.log10(np.maximum(values, 1e-300)) if plot.log else values


def _range(plot: Plot, good: np.ndarray) -> tuple[float, float]:
    values = _shown(plot, plot.values[good])
    low, high = float(values.min()), float(values.max())
    a, b = (float(q) for q in np.quantile(values, [0.02, 0.98]))
    if b > a and high - low > CROWD * (b - a):
        room = 0.5 * (b - a)
        low, high = max(low, a - room), min(high, b + room)
    more = [] if plot.band is None else [*_shown(plot, plot.band.low), *_shown(plot, plot.band.high)]
    if plot.target is not None:
        more += _shown(plot, np.array([plot.target])).tolist()
    span = high - low
    for value in more:  # room for what is ahead, unless it would flatten what is known
        if low - span <= value <= high + span:
            low, high = min(low, float(value)), max(high, float(value))
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _label(plot: Plot, value: float) -> str:
    return num(10**value if plot.log else value)[: LABEL - 2]


def _curve(dots: np.ndarray, xs: np.ndarray, ys: np.ndarray) -> None:
    """Each column from its lowest to its highest, joined with the one before."""
    order = np.argsort(xs, kind="stable")
    xs, ys = xs[order], ys[order]
    edges = np.flatnonzero(np.diff(xs)) + 1
    before: tuple[int, int] | None = None
    for part in np.split(np.arange(len(xs)), edges):
        column, here = int(xs[part[0]]), ys[part]
        dots[int(here.min()) : int(here.max()) + 1, column] = True
        if before is not None:
            x0, y0 = before
            n = max(column - x0, abs(int(here[0]) - y0)) + 1
            dots[np.linspace(y0, int(here[0]), n).round().astype(int), np.linspace(x0, column, n).round().astype(int)] = True
        before = (column, int(here[-1]))


def _ahead(plot: Plot, x: _Scale, y: _Scale, ahead: np.ndarray, shaded: np.ndarray) -> None:
    band = plot.band
    assert band is not None
    where = x.values()
    inside = np.flatnonzero((where >= band.at[0]) & (where <= band.at[-1] + abs(x.span) / x.n))
    if not len(inside):
        return
    low, middle, high = (
        y.dots(_shown(plot, np.interp(where[inside], band.at, track))) for track in (band.low, band.middle, band.high)
    )
    for column, a, m, b in zip(inside.tolist(), high.tolist(), middle.tolist(), low.tolist(), strict=True):
        if column % 4 < 2:  # a broken line: it is not yet so
            ahead[m, column] = True
        shaded[min(a, b) // 4 : max(a, b) // 4 + 1, column // 2] = True


def _characters(dots: np.ndarray) -> np.ndarray:
    out = np.zeros((dots.shape[0] // 4, dots.shape[1] // 2), dtype=np.int64)
    for r in range(4):
        for c in range(2):
            out |= np.where(dots[r::4, c::2], DOTS[r][c], 0)
    return out


def _any(dots: np.ndarray) -> np.ndarray:
    return _characters(dots) > 0


def _fill_row(chars: list[list[str]], styles: np.ndarray, row: int, char: str, style: str) -> None:
    for column, there in enumerate(chars[row]):
        if there == " ":
            chars[row][column], styles[row, column] = char, style


def _fill_column(chars: list[list[str]], styles: np.ndarray, column: int, char: str, style: str) -> None:
    for row, line in enumerate(chars):
        if line[column] == " ":
            line[column], styles[row, column] = char, style

"""A line chart in characters: braille dots for the first line, marks for the second where it is elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from wheeltapper.report.text import num

Array = np.ndarray[Any, Any]
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bits of a braille cell: 4 rows of 2


def plot(
    x: Array, y: Array, *, width: int = 70, height: int = 10, over: tuple[Array, Array] | None = None, mark: str = "o"
) -> list[str]:
    """The chart as lines of text. `over` is drawn with `mark` on top.

    >>> print("\\n".join(plot(np.arange(9.0), np.arange(9.0), width=20, height=3)))
    8 ┤           ⢀⣀⠤⠔⠒⠉
      │     ⢀⣀⠤⠔⠒⠉⠁
    0 ┤⣀⠤⠔⠒⠉⠁
      └─────────────────
       0               8
    """
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if not len(x):
        return ["(nothing finite to draw)"]
    others = _finite(over)
    ys = np.concatenate([y, others[1]])
    xs = np.concatenate([x, others[0]])
    low, high = float(ys.min()), float(ys.max())
    start, end = float(xs.min()), float(xs.max())
    labels = (num(high), num(low))
    margin = max(len(label) for label in labels) + 2
    columns = max(8, width - margin)
    cells = np.zeros((height, columns), dtype=np.int64)

    def place(px: Array, py: Array, across: int, down: int) -> tuple[Array, Array]:
        share_x = (px - start) / (end - start) if end > start else np.zeros(len(px))
        share_y = (py - low) / (high - low) if high > low else np.full(len(py), 0.5)
        return np.rint(share_x * (across - 1)).astype(int), np.rint((1 - share_y) * (down - 1)).astype(int)

    dense_x = np.linspace(float(x[0]), float(x[-1]), max(4 * columns, 2))
    order = np.argsort(x, kind="stable")
    dense_y = np.interp(dense_x, x[order], y[order])
    col, row = place(np.concatenate([dense_x, x]), np.concatenate([dense_y, y]), 2 * columns, 4 * height)
    n = len(dense_x)
    dots = set(zip(col.tolist(), row.tolist(), strict=True))
    for (c, r), after in zip(zip(col[: n - 1], row[: n - 1], strict=True), row[1:n], strict=True):
        dots |= {(int(c), between) for between in range(min(r, after) + 1, max(r, after))}  # a cut is a vertical line
    for c, r in dots:
        cells[r // 4, c // 2] |= DOTS[r % 4][c % 2]
    grid = [[chr(0x2800 + int(cell)) if cell else " " for cell in line] for line in cells]
    if len(others[0]):
        every = max(1, len(others[0]) // (columns // 4))
        col, row = place(others[0][::every], others[1][::every], columns, height)
        for c, r in zip(col.tolist(), row.tolist(), strict=True):
            grid[r][c] = mark
    lines = []
    for index, line in enumerate(grid):
        label = labels[0] if index == 0 else labels[1] if index == height - 1 else ""
        lines.append(f"{label:>{margin - 2}} {'┤' if label else '│'}{''.join(line)}".rstrip())
    lines.append(f"{'':>{margin - 2}} └{'─' * columns}")
    left, right = num(start), num(end)
    lines.append(f"{'':>{margin}}{left}{right:>{columns - len(left)}}")
    return lines


def _finite(over: tuple[Array, Array] | None) -> tuple[Array, Array]:
    if over is None:
        return np.empty(0), np.empty(0)
    keep = np.isfinite(over[0]) & np.isfinite(over[1])
    return over[0][keep], over[1][keep]

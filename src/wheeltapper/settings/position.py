"""From offsets in a text to leaves that know their line and column. Every parser makes its leaves here."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

from wheeltapper.settings.tree import Leaf, Path

_NEWLINE = re.compile(r"\r\n|\n|\r")
_INT = re.compile(r"[-+]?(?:0|[1-9]\d*)\Z")
_FLOAT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z")
_SPECIAL = {
    "nan": float("nan"),
    "inf": float("inf"),
    "+inf": float("inf"),
    "-inf": float("-inf"),
    "infinity": float("inf"),
    "-infinity": float("-inf"),
}
MAX_DIGITS = 4000  # CPython refuses to read longer integers; no setting has them
EXPRESSION = "an expression, not a literal"  # note of a leaf whose value only running the code would tell


class Source:
    """A text, its file, and the line number its first line has there (a block inside a log starts later)."""

    def __init__(self, text: str, file: str, first_line: int = 1) -> None:
        self.text = text
        self.file = file
        self.first_line = first_line
        self._starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]

    def line(self, offset: int) -> int:
        return self.first_line + bisect_right(self._starts, offset) - 1

    def column(self, offset: int) -> int:
        return offset - self._starts[bisect_right(self._starts, offset) - 1] + 1

    def spot(self, offset: int) -> str:
        return f"{self.file}:{self.line(offset)}:{self.column(offset)}"

    def bounds(self, offset: int) -> tuple[int, int]:
        """Start and end of the line that holds `offset`, without its line break."""
        index = bisect_right(self._starts, offset) - 1
        start = self._starts[index]
        match = _NEWLINE.search(self.text, start)
        return start, match.start() if match else len(self.text)

    def offset_of(self, line: int) -> int:
        """Offset of the start of the `line`-th line of the text, counted from 0."""
        return self._starts[line] if 0 <= line < len(self._starts) else len(self.text)

    def leaf(self, path: Path, value: Any, start: int, end: int, note: str | None = None) -> Leaf:
        return Leaf(
            path=path,
            value=value,
            raw=self.text[start:end],
            file=self.file,
            line=self.line(start),
            column=self.column(start),
            start=start,
            end=end,
            note=note,
        )


def number(text: str) -> int | float | None:
    """The number a Python program would read from this text, or None.

    >>> number("1e-6"), number("64"), number("007"), number("v2")
    (1e-06, 64, None, None)
    """
    if len(text) <= MAX_DIGITS:
        if _INT.match(text):
            return int(text)
        leading_zero = len(text) > 1 and text[0] == "0" and text.isdecimal()
        if _FLOAT.match(text) and not leading_zero:
            return float(text)
    return _SPECIAL.get(text.lower())


def word_value(text: str) -> Any:
    """The value of a bare word: a number, true or false, else the text itself."""
    value = number(text)
    if value is not None:
        return value
    return {"true": True, "false": False}.get(text.lower(), text)

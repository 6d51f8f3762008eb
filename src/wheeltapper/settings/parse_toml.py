"""TOML with the place of every value.

tomllib judges the file and reads each single value; this scanner only finds where the values stand.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from wheeltapper.settings.position import Source
from wheeltapper.settings.tree import ConfigTree, Leaf, Path

MAX_DEPTH = 60
MAX_LEAVES = 50_000

_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRINGS = (
    re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}', re.S),
    re.compile(r"'''.*?'{3,5}", re.S),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_ATOM = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]+|[^\s,\]}#]+")


class _StopError(Exception):
    """The scanner cannot go on from here; the line is left out."""


def parse_toml(source: Source) -> ConfigTree:
    scanner = _Scanner(source)
    problems: list[str] = []
    try:
        tomllib.loads(source.text.replace("\r\n", "\n").lstrip("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        told = re.fullmatch(r"(.*?) \(at line (\d+), column (\d+)\)", str(error), re.S)
        spot = f"{source.file}:{source.first_line + int(told.group(2)) - 1}:{told.group(3)}" if told else source.file
        problems.append(f"{spot}: not TOML: {told.group(1) if told else error}")
    scanner.run()
    return ConfigTree(source.file, "toml", tuple(scanner.leaves), source.text, (*problems, *scanner.problems))


class _Scanner:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.at = 1 if source.text.startswith("\ufeff") else 0
        self.leaves: list[Leaf] = []
        self.problems: list[str] = []
        self.tables: dict[Path, int] = {}  # how many [[array of tables]] entries each path has
        self.prefix: Path = ()

    def run(self) -> None:
        while True:
            self._gap()
            if self.at >= len(self.text) or len(self.leaves) > MAX_LEAVES:
                return
            start = self.at
            try:
                if self.text[self.at] == "[":
                    self._header()
                else:
                    self._pair(self.prefix, 0)
                self._end_of_line()
            except _StopError as stop:
                end = self.source.bounds(max(self.at, start))[1]
                self.problems.append(f"{self.source.spot(min(self.at, len(self.text)))}: {stop}; this line is left out")
                self.at = max(end, start + 1)

    def _gap(self) -> None:
        match = _GAP.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _end_of_line(self) -> None:
        self._blank()
        if self._peek() not in ("", "\n", "\r", "#"):
            raise _StopError("text after the value")

    def _header(self) -> None:
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        keys = self._keys()
        close = "]]" if array else "]"
        if not self.text.startswith(close, self.at):
            raise _StopError(f"{close} was expected")
        self.at += len(close)
        path = self._real_path(keys[:-1])
        if array:
            index = self.tables.get((*path, keys[-1]), 0)
            self.tables[(*path, keys[-1])] = index + 1
            self.prefix = (*path, keys[-1], index)
        else:
            self.prefix = self._real_path(keys)

    def _real_path(self, keys: list[str]) -> Path:
        """A dotted header, stepping into the last entry of any array of tables on the way."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            if path in self.tables:
                path = (*path, self.tables[path] - 1)
        return path

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._blank()
            if self._peek() in ('"', "'"):
                start = self.at
                keys.append(str(self._single(start, self._string(start), report=False)))
            else:
                match = _BARE.match(self.text, self.at)
                if not match:
                    raise _StopError("a key was expected")
                keys.append(match.group())
                self.at = match.end()
            self._blank()
            if self._peek() != ".":
                return keys
            self.at += 1

    def _pair(self, prefix: Path, depth: int) -> None:
        keys = self._keys()
        if self._peek() != "=":
            raise _StopError("= was expected")
        self.at += 1
        self._blank()
        self._value((*prefix, *keys), depth)

    def _value(self, path: Path, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise _StopError(f"nested deeper than {MAX_DEPTH}")
        start, char = self.at, self._peek()
        if char == "[":
            self._list(path, depth)
        elif char == "{":
            self._inline_table(path, depth)
        elif char in ('"', "'"):
            end = self._string(start)
            self.leaves.append(self.source.leaf(path, self._single(start, end), start, end))
        else:
            match = _ATOM.match(self.text, start)
            if not match:
                raise _StopError("a value was expected")
            self.at = match.end()
            self.leaves.append(self.source.leaf(path, self._single(start, match.end()), start, match.end()))

    def _list(self, path: Path, depth: int) -> None:
        start, index = self.at, 0
        self.at += 1
        while True:
            self._gap()
            if self._peek() == "]":
                self.at += 1
                break
            self._value((*path, index), depth + 1)
            index += 1
            self._gap()
            if self._peek() == ",":
                self.at += 1
            elif self._peek() != "]":
                raise _StopError("] was expected")
        if not index:
            self.leaves.append(self.source.leaf(path, [], start, self.at))

    def _inline_table(self, path: Path, depth: int) -> None:
        start, empty = self.at, True
        self.at += 1
        while True:
            self._gap()
            if self._peek() == "}":
                self.at += 1
                break
            self._pair(path, depth + 1)
            empty = False
            self._gap()
            if self._peek() == ",":
                self.at += 1
            elif self._peek() != "}":
                raise _StopError("} was expected")
        if empty:
            self.leaves.append(self.source.leaf(path, {}, start, self.at))

    def _string(self, start: int) -> int:
        """End of the string at `start`; the cursor moves there."""
        for pattern in _STRINGS:
            match = pattern.match(self.text, start)
            if match and (match.end() - start > 2 or not self.text.startswith(match.group()[0] * 3, start)):
                self.at = match.end()
                return match.end()
        raise _StopError("this string is not closed")

    def _single(self, start: int, end: int, *, report: bool = True) -> Any:
        """One scalar, read by tomllib itself; its text when tomllib refuses it."""
        raw = self.text[start:end]
        try:
            return tomllib.loads("x = " + raw.replace("\r\n", "\n"))["x"]
        except (tomllib.TOMLDecodeError, ValueError):
            if report:
                self.problems.append(f"{self.source.spot(start)}: {raw[:60]} is not a TOML value; kept as text")
            return raw

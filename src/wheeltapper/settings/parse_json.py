"""JSON with the place of every value; tolerant of what hand-edited files hold, and saying so.

Own scanner, since json.loads gives no positions. It uses a stack, so nesting cannot exhaust recursion.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from wheeltapper.settings.position import MAX_DIGITS, Source
from wheeltapper.settings.tree import ConfigTree, Leaf, Path

MAX_LEAVES = 50_000
MAX_DEPTH = 100

_SKIP = re.compile(r"[ \t\r\n\ufeff]*")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)", re.S)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"', re.S)
_ATOM = re.compile(r"[^\s,\]}:\"\[{]+")
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
_INT = re.compile(r"-?\d+\Z")


@dataclass(slots=True)
class _Open:
    path: Path
    is_map: bool
    start: int
    count: int = 0
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)  # key -> line, index of its first leaf


def parse_json(source: Source) -> ConfigTree:
    """One JSON value. Comments, trailing commas and a cut tail are survived and reported."""
    return _Scanner(source).run()


class _Scanner:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.at = 0
        self.leaves: list[Leaf] = []
        self.problems: list[str] = []
        self.stack: list[_Open] = []
        self.commented = False
        self.dropped: set[int] = set()

    def run(self) -> ConfigTree:
        self._skip()
        path: Path | None = ()
        while self.at < len(self.text):
            if path is None:  # the top value is complete
                self._problem(self.at, "text after the end of the JSON value is left out")
                break
            if len(self.leaves) >= MAX_LEAVES:
                self._problem(self.at, f"more than {MAX_LEAVES} values; the rest is left out")
                self.stack.clear()
                break
            path = self._value(path)
            while path is None and self.stack:
                path = self._next_in(self.stack[-1])
                if path is None and self.at >= len(self.text):
                    break
            self._skip()
        for opened in self.stack[:1]:
            if self.at >= len(self.text):
                line = self.source.line(opened.start)
                self._problem(len(self.text), f"the file ends inside the value begun on line {line}")
        leaves = tuple(leaf for index, leaf in enumerate(self.leaves) if index not in self.dropped)
        return ConfigTree(self.source.file, "json", leaves, self.text, tuple(self.problems))

    def _problem(self, at: int, text: str) -> None:
        self.problems.append(f"{self.source.spot(at)}: {text}")

    def _skip(self) -> None:
        while True:
            match = _SKIP.match(self.text, self.at)
            self.at = match.end() if match else self.at
            comment = _COMMENT.match(self.text, self.at)
            if not comment:
                return
            if not self.commented:
                self.commented = True
                self._problem(self.at, "a comment; strict JSON readers refuse this file")
            self.at = comment.end()

    def _value(self, path: Path) -> Path | None:
        """Read the value at the cursor. Returns the path of the next value when it opened a container."""
        start, char = self.at, self.text[self.at]
        if char in "{[":
            self.at += 1
            if len(self.stack) >= MAX_DEPTH:
                self._problem(start, f"nested deeper than {MAX_DEPTH}; the rest is left out")
                self.stack.clear()
                self.at = len(self.text)
                return None
            self.stack.append(_Open(path, char == "{", start))
            return self._next_in(self.stack[-1])
        if char == '"':
            text, end = self._string()
            self.leaves.append(self.source.leaf(path, text, start, end))
            return None
        atom = _ATOM.match(self.text, start)
        if atom is None:
            self._problem(start, f"a value was expected, not {char!r}")
            self.at += char not in ",]}"
            return None
        self.at = atom.end()
        value, note = _atom(atom.group())
        if note:
            self._problem(start, f"{note}")
        self.leaves.append(self.source.leaf(path, value, start, atom.end(), note))
        return None

    def _string(self) -> tuple[str, int]:
        match = _STRING.match(self.text, self.at)
        if match is None:
            end = self.source.bounds(self.at)[1]
            self._problem(self.at, "this string is not closed")
            text, self.at = self.text[self.at + 1 : end], end
            return text, end
        self.at = match.end()
        try:
            return str(json.loads(match.group(), strict=False)), match.end()
        except ValueError:
            self._problem(match.start(), "a broken escape in this string")
            return match.group()[1:-1], match.end()

    def _next_in(self, opened: _Open) -> Path | None:
        """After a value or an opening bracket: the path of the next member, or None once closed."""
        close = "}" if opened.is_map else "]"
        while True:
            comma_at = self._past_comma(opened)
            if self.at >= len(self.text):
                return None
            char = self.text[self.at]
            if char in "}]":
                if char != close:
                    self._problem(self.at, f"{char!r} where {close!r} was expected")
                elif comma_at is not None and opened.count:
                    self._problem(comma_at, f"a comma before {close!r}; strict JSON refuses it")
                self.at += 1
                self.stack.pop()
                if not opened.count:
                    value: Any = {} if opened.is_map else []
                    self.leaves.append(self.source.leaf(opened.path, value, opened.start, self.at))
                return None
            if not opened.is_map:
                opened.count += 1
                return (*opened.path, opened.count - 1)
            key = self._key()
            if key is not None:
                opened.count += 1
                self._note_duplicate(opened, key)
                return (*opened.path, key)

    def _past_comma(self, opened: _Open) -> int | None:
        self._skip()
        where = None
        if self.text[self.at : self.at + 1] == ",":
            where = self.at
            self.at += 1
            self._skip()
        elif opened.count and self.at < len(self.text) and self.text[self.at] not in "}]":
            self._problem(self.at, "a comma is missing before this")
        return where

    def _key(self) -> str | None:
        """A key and its colon; None when what stands here is not one (the cursor moves on)."""
        start = self.at
        if self.text[start] == '"':
            key, _ = self._string()
        else:
            atom = _ATOM.match(self.text, start)
            if atom is None:
                self._problem(start, f"a key was expected, not {self.text[start]!r}")
                self.at += 1
                return None
            key, self.at = atom.group(), atom.end()
            self._problem(start, f"the key {key} has no quotes")
        self._skip()
        if self.text[self.at : self.at + 1] != ":":
            self._problem(start, f"the key {key[:60]!r} has no value")
            return None
        self.at += 1
        self._skip()
        if self.at >= len(self.text) or self.text[self.at] in ",}]":
            self._problem(start, f"the key {key[:60]!r} has no value")
            return None
        return key

    def _note_duplicate(self, opened: _Open, key: str) -> None:
        before = opened.seen.get(key)
        if before is not None:
            line, first = before
            self.problems.append(
                f"{self.source.spot(self.at)}: the key `{key}` is written twice in one block (first on line {line}); "
                "the last one wins"
            )
            depth = len(opened.path)
            self.dropped.update(
                i for i in range(first, len(self.leaves)) if self.leaves[i].path[: depth + 1] == (*opened.path, key)
            )
        opened.seen[key] = (self.source.line(self.at), len(self.leaves))


def _atom(text: str) -> tuple[Any, str | None]:
    if text in _WORDS:
        return _WORDS[text], None  # bare NaN is data: Python's json writes it
    if _INT.match(text) and len(text) < MAX_DIGITS:
        return int(text), None
    try:
        if "_" not in text and text[-1].isdecimal():
            return float(text), None
    except ValueError:
        pass
    return text, f"{text[:60]} is not JSON; kept as text"

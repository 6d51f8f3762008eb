"""Prints of Python objects in logs: `Namespace(a=1, norm=<class 'x'>)`, `{'lr': 0.1}`, `lr0=0.01, lrf=0.2`.

A print is not always valid Python (`<class ...>`, `gpu(0)`, a cut end), so this scanner takes what it can.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

from wheeltapper.settings.position import EXPRESSION, Source, number
from wheeltapper.settings.tree import ConfigTree, Leaf, Path

MAX_DEPTH = 60
MAX_LEAVES = 50_000

_GAP = re.compile(r"[\s\\]*")
# Names are bounded, so that a long run of letters cannot cost quadratic time.
_NAME = re.compile(r"[A-Za-z_][\w.\-/]{0,200}")
_STRING = re.compile(r"[bBuUrR]{0,2}('''(?:[^\\]|\\.)*?'''|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")", re.S)
_PAIR = re.compile(r"\s{0,200}[A-Za-z_][\w.\-/]{0,200}\s{0,200}=(?!=)")
_CALL = re.compile(r"[A-Za-z_][\w.]{0,200}\s{0,20}\(|\{")
_WORDS: dict[str, Any] = {"True": True, "False": False, "None": None, "true": True, "false": False}
_PATHS = ("PosixPath", "WindowsPath", "Path", "PurePosixPath")
_CLOSE = {"(": ")", "[": "]", "{": "}", "<": ">"}


def parse_namespace(source: Source) -> ConfigTree:
    """The first printed object of the text, as a configuration."""
    scanner = _Scanner(source)
    scanner.run()
    return ConfigTree(source.file, "namespace", tuple(scanner.leaves), source.text, tuple(scanner.problems))


def printed_value(source: Source, path: Path, start: int, end: int) -> list[Leaf]:
    """Leaves of one printed value that fills text[start:end], such as `[0.9, 0.95]`."""
    scanner = _Scanner(source, end)
    scanner.at = start
    scanner.value(path, 0)
    if scanner.text[scanner.at : end].strip():
        return [source.leaf(path, source.text[start:end], start, end)]
    return scanner.leaves


class _Scanner:
    def __init__(self, source: Source, end: int | None = None) -> None:
        self.source = source
        self.text = source.text if end is None else source.text[:end]
        self.at = 0
        self.leaves: list[Leaf] = []
        self.problems: list[str] = []

    def run(self) -> None:
        match = _CALL.search(self.text)
        pair = _PAIR.search(self.text)
        if match and (pair is None or match.start() <= pair.start()):
            self.at = match.end()
            self._members((), "}" if match.group() == "{" else ")", 0)
        elif pair:
            start = pair.start()
            self.at = start
            self._members((), "", 0)
        elif self.text.strip():
            self.problems.append(f"{self.source.spot(0)}: no printed object here")

    def _gap(self) -> str:
        match = _GAP.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def _members(self, path: Path, close: str, depth: int) -> int:
        """`k=v` or `'k': v` or plain members up to `close`; how many there were."""
        count = 0
        while True:
            char = self._gap()
            if char == "":
                if close:
                    spot = self.source.spot(len(self.text))
                    self.problems.append(f"{spot}: the print is cut before its {close!r}")
                return count
            if char == close or (not close and char in ")]}"):
                self.at += 1
                return count
            if char in ",;" or char in ")]}":
                self.at += 1
                continue
            if len(self.leaves) > MAX_LEAVES:
                spot = self.source.spot(self.at)
                self.problems.append(f"{spot}: more than {MAX_LEAVES} values; the rest is left out")
                self.at = len(self.text)
                return count
            before = self.at
            key = self._key(close)
            self.value((*path, count if key is None else key), depth + 1)
            count += 1
            if self.at == before:
                self.at += 1

    def _key(self, close: str) -> str | None:
        pair = _PAIR.match(self.text, self.at)
        if pair and close in (")", ""):
            name = _NAME.match(self.text, self.at)
            self.at = pair.end()
            return name.group() if name else None
        if close != "}":
            return None
        start = self.at
        quoted = _STRING.match(self.text, start)
        plain = re.compile(r"[^\s,:{}\[\]'\"]+").match(self.text, start)
        match = quoted or plain
        if match is None:
            return None
        self.at = match.end()
        if self._gap() != ":":
            self.at = start
            return None
        self.at += 1
        return str(_literal(match.group())[0])

    def value(self, path: Path, depth: int) -> None:
        """Append the leaves of the value at the cursor."""
        char = self._gap()
        start = self.at
        quoted = _STRING.match(self.text, start)
        if quoted:
            self.at = quoted.end()
            self.leaves.append(self.source.leaf(path, _literal(quoted.group())[0], start, self.at))
        elif char in ("[", "(", "{") and depth < MAX_DEPTH:
            self.at += 1
            if not self._members(path, _CLOSE[char], depth):
                self.leaves.append(self.source.leaf(path, {} if char == "{" else [], start, self.at))
        elif char == "<":
            self.at = self._balanced(start)
            self.leaves.append(self.source.leaf(path, self.text[start : self.at], start, self.at, EXPRESSION))
        else:
            self._word(path, start, depth)

    def _word(self, path: Path, start: int, depth: int) -> None:
        name = _NAME.match(self.text, start)
        if name and self.text[name.end() : name.end() + 1] == "(":
            inner = name.end() + 1
            if _PAIR.match(self.text, inner) and depth < MAX_DEPTH:
                self.at = inner
                self._members(path, ")", depth)
                return
            end = self._balanced(name.end())
            self.at = end
            quoted = _STRING.match(self.text, inner)
            if name.group() in _PATHS and quoted and quoted.end() == end - 1:
                value = _literal(quoted.group())[0]
                self.leaves.append(self.source.leaf(path, value, start, end, "a path object"))
                return
            self.leaves.append(self.source.leaf(path, self.text[start:end], start, end, EXPRESSION))
            return
        match = re.compile(r"[^,()\[\]{}\n]*").match(self.text, start)
        end = match.end() if match else start
        self.at = end
        while end > start and self.text[end - 1] in " \t\r\\":
            end -= 1
        value, note = _literal(self.text[start:end])
        self.leaves.append(self.source.leaf(path, value, start, end, note))

    def _balanced(self, start: int) -> int:
        """Just past the bracket that closes the one at `start`; the end of the text when none does."""
        open_, close = self.text[start], _CLOSE[self.text[start]]
        depth, at = 0, start
        while at < len(self.text):
            quoted = _STRING.match(self.text, at) if self.text[at] in "'\"" else None
            if quoted:
                at = quoted.end()
                continue
            depth += (self.text[at] == open_) - (self.text[at] == close)
            at += 1
            if depth == 0:
                return at
        return at


def _literal(text: str) -> tuple[Any, str | None]:
    if text in _WORDS:
        return _WORDS[text], None
    value = number(text)
    if value is not None:
        return value, None
    if text[-1:] in "'\"" and text:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.literal_eval(text), None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return text.strip("'\""), None
    return text, None

"""Printed settings that are no format, and INI files: `key: value`, `key = value`, `key ........ value`, one a line."""

from __future__ import annotations

import re
from typing import Any

from wheeltapper.settings.parse_repr import printed_value
from wheeltapper.settings.position import Source, number
from wheeltapper.settings.tree import ConfigTree, Leaf

MAX_LEAVES = 50_000

_KEY = r"[A-Za-z_][\w/\-\[\]]*(?:\.\w[\w/\-\[\]]*)*(?: [\w(][\w/\-()#]*){0,4}"
_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
_DOTS = re.compile(rf"({_KEY})[ \t]*\.{{3,}}[ \t]*(\S.*)?\Z")
_PLAIN = re.compile(rf"[ \t|*#>\-]*['\"]?({_KEY})['\"]?[ \t]*(?::|=|\|)[ \t]*(\S.*)?\Z")
_AFTER_PREFIX = re.compile(rf"(?:[\]|>:-]|INFO|DEBUG)[ \t]+({_KEY})[ \t]*[:=][ \t]+(\S.*)\Z")
# "key: [default: x]" and the like: what the program was not told stands in brackets after the value.
_DEFAULT_TAIL = re.compile(r"[ \t]+\[default: [^\]]*\][ \t]*\Z")
_SECTION = re.compile(r"[ \t]*\[([A-Za-z][\w .:/-]{0,60})\][ \t]*\Z")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+\Z")
_GIN = re.compile(r"@[A-Za-z_][\w./]*(?:\(\))?\Z")  # gin's way to name a class
_WORDS: dict[str, Any] = {"True": True, "False": False, "true": True, "false": False, "None": None, "null": None}


def parse_keyvalue(source: Source) -> ConfigTree:
    """Every line that says `name, separator, value`; other lines are left out without complaint."""
    leaves: dict[tuple[str, ...], list[Leaf]] = {}
    total = 0
    section: tuple[str, ...] = ()
    for start, end in _lines(source):
        if heading := _SECTION.match(source.text, start, end):
            section = (heading[1],)
            continue
        found = _line(source, start, end)
        if found is None:
            continue
        key, begin, finish = (*section, found[0]), found[1], found[2]
        made = _leaves(source, key, begin, finish)
        leaves.pop(key, None)
        leaves[key] = made
        total += len(made)
        if total > MAX_LEAVES:
            break
    flat = tuple(leaf for group in leaves.values() for leaf in group)
    return ConfigTree(source.file, "keyvalue", flat, source.text)


def _lines(source: Source) -> list[tuple[int, int]]:
    out, at = [], 0
    for line in source.text.splitlines(keepends=True):
        if len(line) < 10_000:
            out.append((at, at + len(line.rstrip())))
        at += len(line)
    return out


def _line(source: Source, start: int, end: int) -> tuple[str, int, int] | None:
    text = source.text[start:end]
    match = _DOTS.search(text)
    if match is None:
        logged = _CLOCK.search(text)  # a log prefix has colons of its own
        match = None if logged else _PLAIN.match(text)
        match = match or _AFTER_PREFIX.search(text, logged.end() if logged else 0)
    if match is None:
        return None
    if match.group(2) is None:
        return match.group(1).strip(), end, end
    begin, finish = match.span(2)
    tail = _DEFAULT_TAIL.search(text, begin)
    if tail:
        finish = tail.start()
    finish = begin + len(text[begin:finish].partition("|")[0].rstrip(" \t,") if text.lstrip().startswith("|") else text[begin:finish].rstrip(" \t,"))
    return match.group(1).strip(), start + begin, start + finish


def _leaves(source: Source, path: tuple[str, ...], start: int, end: int) -> list[Leaf]:
    raw = source.text[start:end]
    if raw in _WORDS:
        return [source.leaf(path, _WORDS[raw], start, end)]
    value = number(raw)
    if value is not None:
        return [source.leaf(path, value, start, end)]
    if _THOUSANDS.match(raw):
        return [source.leaf(path, int(raw.replace(",", "")), start, end, "written with thousands commas")]
    if raw[:1] in ("[", "(", "{", "'", '"'):
        return printed_value(source, path, start, end)
    if _GIN.match(raw):
        return [source.leaf(path, raw.removesuffix("()").rpartition("/")[2].lstrip("@"), start, end)]
    return [source.leaf(path, raw, start, end)]

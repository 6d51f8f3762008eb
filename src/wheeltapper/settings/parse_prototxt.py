"""Protocol buffers in text: `name: value`, `name { ... }`, as Caffe's solvers and TensorFlow's pipelines are written."""

from __future__ import annotations

import re
from collections import Counter

from wheeltapper.settings.position import Source, word_value
from wheeltapper.settings.tree import ConfigTree, Leaf, Path

MAX_DEPTH = 60
MAX_LEAVES = 50_000

_GAP = re.compile(r"(?:[\s,;]|#[^\n]*)*")
_NAME = re.compile(r"[A-Za-z_][\w.]{0,120}")
_OPEN = re.compile(r"\s*:?\s*[{<]")
_VALUE = re.compile(r"\s*:\s*(\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|\[[^\]]{0,5000}\]|[^\s,;{}#]+)")
_BLOCK = re.compile(r"^[ \t]*+[A-Za-z_]\w*+[ \t]*+:?[ \t]*+\{[ \t]*+(?:#.*)?$", re.M)
_PAIR = re.compile(r"^[ \t]*+[A-Za-z_]\w*+[ \t]*+:[ \t]*+[^\s{\[]", re.M)


def looks_like_prototxt(text: str) -> bool:
    """Blocks `name {` that are closed by `}` around pairs `name: value`, and no quotes around the names."""
    return bool(_BLOCK.search(text)) and bool(_PAIR.search(text)) and text.count("{") == text.count("}")


def parse_prototxt(source: Source) -> ConfigTree:
    """Every pair, under the names of its blocks; a name that stands more than once in a block is a list."""
    text, at = source.text, 0
    path: list[Path] = []
    leaves: list[Leaf] = []
    seen: list[Counter[str]] = [Counter()]
    repeated = _repeated(text)
    while len(leaves) < MAX_LEAVES:
        at = _end(_GAP, text, at)
        if at >= len(text):
            break
        if text[at] in "}>":
            path, seen = path[:-1], seen[:-1] or [Counter()]
            at += 1
            continue
        name = _NAME.match(text, at)
        if name is None:
            at += 1
            continue
        at, key = name.end(), name.group()
        here: Path = (*(part for parts in path for part in parts), key)
        if key in repeated:
            here = (*here, seen[-1][key])
        seen[-1][key] += 1
        opened = _OPEN.match(text, at)
        value = None if opened else _VALUE.match(text, at)
        if opened and len(path) < MAX_DEPTH:
            path, seen, at = [*path, here[-2:] if key in repeated else here[-1:]], [*seen, Counter()], opened.end()
        elif value:
            leaves += _leaves(source, here, value)
            at = value.end()
    return ConfigTree(source.file, "prototxt", tuple(leaves), source.text)


def _repeated(text: str) -> set[str]:
    """Names of blocks that are written more than once, such as `layer`."""
    names = Counter(m.group(1) for m in re.finditer(r"([A-Za-z_]\w*)\s*:?\s*\{", text))
    return {name for name, count in names.items() if count > 1 and name in ("layer", "layers", "step", "schedule", "data_augmentation_options")}


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _leaves(source: Source, path: Path, value: re.Match[str]) -> list[Leaf]:
    raw, start = value.group(1), value.start(1)
    if raw[:1] in "\"'":
        return [source.leaf(path, raw[1:-1], start, value.end(1))]
    if raw[:1] == "[":
        parts = list(re.finditer(r"[^\s,\[\]]+", raw))
        return [source.leaf((*path, i), word_value(m.group()), start + m.start(), start + m.end()) for i, m in enumerate(parts)]
    return [source.leaf(path, word_value(raw), start, value.end(1))]

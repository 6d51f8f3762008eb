"""YAML as PyYAML (YAML 1.1) reads it, with the place of every value.

Built from parser events, not from compose(): events need no recursion, so a hostile file costs bounded
time, and what came before an error is kept. Tags are never constructed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from wheeltapper.settings.position import Source
from wheeltapper.settings.tree import ConfigTree, Leaf, Path

MAX_DEPTH = 100  # a hand-written config is rarely deeper than 10; recursion below must stay small
MAX_NODES = 50_000  # after aliases are expanded; ten times the largest config we met, a bomb stops within a second
MAX_REPAIRS = 12  # lines left out after a syntax error before giving up

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_UNREADABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ANCHOR = re.compile(r"&[^\s,\[\]{}]+\s*")
_TAG_THEN_ANCHOR = re.compile(r"![^\s]*\s+&[^\s,\[\]{}]+\s*")
_BOOL_WORDS = {"yes", "no", "on", "off"}


@dataclass(slots=True)
class _Node:
    kind: str  # scalar | list | map | alias
    start: int
    end: int
    tag: str | None = None
    value: str = ""
    implicit: tuple[bool, bool] = (True, False)
    items: list[_Node] = field(default_factory=list)  # of a map: key, value, key, value, ...
    anchor: str | None = None
    flow: bool = False
    target: _Node | None = None  # of an alias; None when no such anchor


def parse_yaml(source: Source) -> ConfigTree:
    """All documents of the text. A syntax error costs its line, not the file."""
    problems: list[str] = []
    text = source.text
    bad = _UNREADABLE.search(text, 1 if text.startswith("\ufeff") else 0)
    if bad:
        problems.append(f"{source.spot(bad.start())}: a character YAML forbids ({bad.group()!a})")
        mark = text[:1] if text[0] == "\ufeff" else ""
        text = mark + _UNREADABLE.sub("\ufffd", text[len(mark) :])
    documents, error = _documents(text, problems, source)
    best = documents
    for _ in range(MAX_REPAIRS):
        if error is None:
            break
        problems.append(_describe(error, source))
        repaired = _without_bad_line(text, error, source)
        if repaired is None:
            break
        text = repaired
        documents, error = _documents(text, problems, source)
        if _size(documents) >= _size(best):
            best = documents
    leaves: list[Leaf] = []
    documents = [d for d in best if d.items or d.value]
    for index, document in enumerate(documents):
        head: Path = () if index == 0 else (f"document {index + 1}",)
        _Flatten(source, leaves, problems).run(document, head)
    if len(documents) > 1:
        problems.append(f"{source.spot(documents[1].start)}: a second document starts here; most programs refuse that")
    tree = ConfigTree(source.file, "yaml", tuple(leaves), source.text, tuple(dict.fromkeys(problems)))
    return _unwrap_wandb(tree)


def _documents(text: str, problems: list[str], source: Source) -> tuple[list[_Node], yaml.YAMLError | None]:
    """The node trees of the text, up to the first syntax error."""
    roots: list[_Node] = []
    stack: list[_Node] = []
    anchors: dict[str, _Node] = {}
    shift = 1 if text.startswith("\ufeff") else 0  # libyaml does not count the byte order mark
    loader = _LOADER(text[shift:])
    skipping = 0
    error: yaml.YAMLError | None = None
    seen = 0
    try:
        while loader.check_event():
            event = loader.get_event()
            seen += 1
            start, end = event.start_mark.index + shift, event.end_mark.index + shift
            if isinstance(event, yaml.events.CollectionEndEvent):
                if skipping:
                    skipping -= 1
                elif stack:
                    stack.pop().end = end
                continue
            if not isinstance(event, yaml.events.NodeEvent):
                if isinstance(event, yaml.events.DocumentStartEvent):
                    anchors = {}
                continue
            collection = isinstance(event, yaml.events.CollectionStartEvent)
            if skipping or len(stack) >= MAX_DEPTH or seen > MAX_NODES:
                if not skipping:
                    what = "nested deeper than" if len(stack) >= MAX_DEPTH else "more values than"
                    limit = MAX_DEPTH if len(stack) >= MAX_DEPTH else MAX_NODES
                    problems.append(f"{source.spot(start)}: {what} {limit}; the rest is left out")
                break
            node = _node(event, start, end, anchors)
            if node.anchor and node.kind != "alias":
                anchors[node.anchor] = node
            (stack[-1].items if stack else roots).append(node)
            if collection:
                stack.append(node)
    except yaml.YAMLError as caught:
        error = caught
    except (ValueError, RecursionError) as caught:  # e.g. a \U escape beyond Unicode
        problems.append(f"{source.file}: {caught}")
    finally:
        loader.dispose()
    for node in stack:
        node.end = max(node.end, node.items[-1].end if node.items else node.end)
        if node.kind == "map" and len(node.items) % 2:
            node.items.pop()
    return roots, error


def _node(event: Any, start: int, end: int, anchors: dict[str, _Node]) -> _Node:
    if isinstance(event, yaml.events.AliasEvent):
        return _Node("alias", start, end, anchor=event.anchor, target=anchors.get(str(event.anchor)))
    if isinstance(event, yaml.events.ScalarEvent):
        return _Node("scalar", start, end, event.tag, event.value, event.implicit, anchor=event.anchor)
    kind = "map" if isinstance(event, yaml.events.MappingStartEvent) else "list"
    return _Node(kind, start, end, event.tag, anchor=event.anchor, flow=bool(event.flow_style))


def _size(documents: list[_Node]) -> int:
    total, pending = 0, list(documents)
    while pending:
        node = pending.pop()
        total += 1
        pending.extend(node.items)
    return total


def _marks(error: yaml.YAMLError) -> list[Any]:
    """Where the parser stopped and where the trouble began; first the one whose line is at fault."""
    marks = [getattr(error, "problem_mark", None), getattr(error, "context_mark", None)]
    if "simple key" in str(getattr(error, "context", "")):  # it only notices on the line after
        marks.reverse()
    return marks


def _describe(error: yaml.YAMLError, source: Source) -> str:
    mark = _marks(error)[0]
    said = getattr(error, "problem", None) or str(error).split("\n")[0]
    context = getattr(error, "context", None)
    text = f"{said} {context}" if context else said
    if mark is None:
        return f"{source.file}: not YAML: {text}"
    return f"{source.file}:{source.first_line + mark.line}:{mark.column + 1}: not YAML: {text}"


def _without_bad_line(text: str, error: yaml.YAMLError, source: Source) -> str | None:
    """The text with the line of the error blanked (same length), or None when there is nothing to blank."""
    for mark in _marks(error):
        if mark is None:
            continue
        start, end = source.bounds(source.offset_of(mark.line))
        line = text[start:end]
        if not line.strip():
            continue
        inner_tab = "\t" in line.lstrip()
        indent = len(line) - len(line.lstrip())
        # A tab between key and value is only refused by the parser, not ambiguous: read it as a space.
        new = line[:indent] + line[indent:].replace("\t", " ") if inner_tab else " " * len(line)
        return text[:start] + new + text[end:]
    return None


class _Flatten:
    """Node tree to leaves: aliases and merge keys expanded, within the limits."""

    def __init__(self, source: Source, leaves: list[Leaf], problems: list[str]) -> None:
        self.source = source
        self.leaves = leaves
        self.problems = problems
        self.visited = 0
        self.open: list[_Node] = []  # the collections we are inside of
        self.constructor = yaml.constructor.SafeConstructor()
        self.resolver: Any = yaml.resolver.Resolver()

    def run(self, node: _Node, path: Path) -> None:
        self._walk(node, path, None, 0)
        if self.visited > MAX_NODES:
            told = f"aliases expand to more than {MAX_NODES} values; the rest is left out"
            self.problems.append(f"{self.source.file}: {told}")

    def _walk(self, node: _Node, path: Path, note: str | None, depth: int) -> None:
        self.visited += 1
        if self.visited > MAX_NODES:
            return
        if depth > MAX_DEPTH:
            self.problems.append(f"{self.source.spot(node.start)}: nested deeper than {MAX_DEPTH}; left out")
            return
        if node.kind == "alias":
            self._alias(node, path, depth)
        elif node.kind == "scalar":
            self._scalar(node, path, note)
        elif any(node is held for held in self.open):
            self.problems.append(f"{self.source.spot(node.start)}: this block contains itself; left out")
        else:
            self.open.append(node)
            self._collection(node, path, note, depth)
            self.open.pop()

    def _collection(self, node: _Node, path: Path, note: str | None, depth: int) -> None:
        if node.kind == "list":
            for index, item in enumerate(node.items):
                self._walk(item, (*path, index), note, depth + 1)
            if not node.items:
                self._empty(node, path, [], note)
        else:
            pairs = self._pairs(node, depth)
            for key, value, came_from in pairs.values():
                self._walk(value, (*path, key), came_from or note, depth + 1)
            if not pairs:
                self._empty(node, path, {}, note)

    def _pairs(self, node: _Node, depth: int) -> dict[str, tuple[str, _Node, str | None]]:
        """Keys of a map in order; a later key replaces an earlier one, `<<` only fills what is missing."""
        pairs: dict[str, tuple[str, _Node, str | None]] = {}
        merges: list[_Node] = []
        where: dict[str, _Node] = {}
        for key_node, value in zip(node.items[::2], node.items[1::2], strict=False):
            if key_node.kind == "scalar" and key_node.value == "<<" and key_node.implicit[0]:
                merges.append(value)
                continue
            key = self._key(key_node)
            if key in where:
                first = self.source.line(where[key].start)
                self.problems.append(
                    f"{self.source.spot(key_node.start)}: the key `{key}` is written twice in one block (first on "
                    f"line {first}); the last one wins"
                )
            where[key] = key_node
            pairs[key] = (key, value, None)
        for merge in merges:
            for base in self._merged(merge):
                name = f"&{base.anchor}" if base.anchor else "a merged block"
                note = f"comes from {name}, line {self.source.line(base.start)}, by <<"
                self.visited += len(base.items)
                if depth < MAX_DEPTH and self.visited <= MAX_NODES:
                    for key, value, came_from in self._pairs(base, depth + 1).values():
                        pairs.setdefault(key, (key, value, came_from or note))
        return pairs

    def _merged(self, node: _Node) -> list[_Node]:
        target = node.target if node.kind == "alias" else node
        if target is None:
            return []
        if target.kind == "list":
            inner = [item.target if item.kind == "alias" else item for item in target.items]
            return [item for item in inner if item is not None and item.kind == "map"]
        return [target] if target.kind == "map" else []

    def _key(self, node: _Node) -> str:
        if node.kind == "alias" and node.target is not None:
            node = node.target
        if node.kind == "scalar":
            return node.value
        return self.source.text[node.start : min(node.end, node.start + 200)]

    def _alias(self, node: _Node, path: Path, depth: int) -> None:
        target = node.target
        if target is None:
            self.problems.append(f"{self.source.spot(node.start)}: the alias *{node.anchor} has no anchor")
            return
        line = self.source.line(target.start)
        if target.kind == "scalar":
            value, _ = self._value(target)
            note = f"alias of &{node.anchor}, line {line}"
            self.leaves.append(self.source.leaf(path, value, node.start, node.end, note))
        else:
            self._walk(target, path, f"comes from &{node.anchor}, line {line}", depth + 1)

    def _empty(self, node: _Node, path: Path, value: Any, note: str | None) -> None:
        start, end = self._span(node)
        self.leaves.append(self.source.leaf(path, value, start, end, note))

    def _scalar(self, node: _Node, path: Path, note: str | None) -> None:
        value, trap = self._value(node)
        start, end = self._span(node)
        self.leaves.append(self.source.leaf(path, value, start, end, "; ".join(filter(None, (trap, note))) or None))

    def _span(self, node: _Node) -> tuple[int, int]:
        """The text of a value: its tag belongs to it, its anchor does not (an edit must not lose it)."""
        start, end = node.start, node.end
        if node.anchor:
            text = self.source.text
            match = _ANCHOR.match(text, start, end) or _TAG_THEN_ANCHOR.match(text, start, end)
            if match:
                start = match.end()
        while end > start and self.source.text[end - 1] in " \t\r\n":  # a block scalar runs to the next key
            end -= 1
        return start, end

    def _value(self, node: _Node) -> tuple[Any, str | None]:
        """What PyYAML's safe loader makes of a scalar, and the trap it is, if it is one."""
        plain = node.implicit[0]
        tag = node.tag
        if tag is None or tag == "!":
            tag = self.resolver.resolve(yaml.nodes.ScalarNode, node.value, node.implicit)
        kind = tag.removeprefix(_CORE)
        if not tag.startswith(_CORE) or kind.startswith("python/"):
            return node.value, f"the tag {_short(tag)} is not constructed; this is its text"
        if kind == "str":
            return node.value, _string_trap(node.value) if plain else None
        try:
            value = self.constructor.construct_object(yaml.nodes.ScalarNode(tag, node.value))
        except (yaml.YAMLError, ValueError, OverflowError, TypeError, KeyError, IndexError):
            return node.value, f"cannot be read as {kind}; this is its text"
        return value, _odd_value_trap(node.value, value) if plain else None


def _short(tag: str) -> str:
    return "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag


def _string_trap(text: str) -> str | None:
    if text in ("None", "none", "NONE"):
        return f"YAML reads {text} as a string; null or ~ is the empty value"
    if not text or len(text) > 64 or text[0] not in "0123456789+-.niNI":
        return None
    try:
        float(text)
    except ValueError:
        return None
    return f"YAML 1.1 reads {text} as a string, not a number (write {safe_float(text)})"


def safe_float(text: str) -> str:
    """The same number as YAML 1.1 reads it: a dot in the mantissa and a sign in the exponent."""
    number = float(text)
    if number != number or number in (float("inf"), float("-inf")):
        return {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}[str(number)]
    mantissa, _, exponent = text.lower().replace("_", "").partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    mantissa = re.sub(r"^([-+]?)\.", r"\g<1>0.", mantissa)
    if not exponent:
        return mantissa
    return f"{mantissa}e{exponent if exponent[0] in '+-' else '+' + exponent}"


def _odd_value_trap(text: str, value: Any) -> str | None:
    if isinstance(value, bool) and text.lower() in _BOOL_WORDS:
        return f"YAML 1.1 reads {text} as {value}"
    if isinstance(value, (int, float)) and ":" in text:
        return f"YAML 1.1 reads {text} in base 60, as {value}"
    if isinstance(value, int) and re.match(r"[-+]?0[0-7_]+\Z", text) and value != int(text.replace("_", "")):
        return f"YAML 1.1 reads {text} in base 8, as {value}"
    return None


def _unwrap_wandb(tree: ConfigTree) -> ConfigTree:
    """W&B writes each key as {desc, value}; what the program configured is the value."""
    tops: dict[str | int, set[str | int]] = {}
    for leaf in tree:
        if leaf.path:
            tops.setdefault(leaf.path[0], set()).add(leaf.path[1] if len(leaf.path) > 1 else "")
    wrapped = {top for top, keys in tops.items() if "value" in keys and keys <= {"desc", "value"}}
    marked = "wandb_version" in tops or "_wandb" in wrapped
    if not wrapped or not (marked or len(wrapped) == len(tops) > 1):
        return tree
    leaves = []
    for leaf in tree:
        if leaf.path and leaf.path[0] in wrapped:
            if leaf.path[1] != "value":
                continue
            path = (leaf.path[0], *leaf.path[2:])
            leaf = Leaf(path, leaf.value, leaf.raw, leaf.file, leaf.line, leaf.column, leaf.start, leaf.end, leaf.note)
        leaves.append(leaf)
    return ConfigTree(tree.file, tree.format, tuple(leaves), tree.text, tree.problems, kind="W&B config")

"""A setting that is not written yet, put into its section in the section's own manner; and one taken out.

Each function offers texts; edit.py keeps the first that parses to the one new setting and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from wheeltapper.settings.insert_argv import command_insertions
from wheeltapper.settings.keys import NewKey
from wheeltapper.settings.spell import spell
from wheeltapper.settings.splice import Piece, Splice, whole_option
from wheeltapper.settings.tree import ConfigTree, Leaf, Path

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# `lr: `, `"lr": `, `lr = `, `cfg.lr = `, `--lr=` just before a value: quote, name, separator.
_KEY = re.compile(r"(?P<quote>[\"']?)(?P<name>[\w.\-/]+)(?P=quote)(?P<sep>[ \t]*[:=][ \t]*(?:&\S+[ \t]+)?)\Z")


def insertions(key: NewKey, value: Any, dialect: str) -> Iterator[Splice]:
    """Texts with the setting added, the best place first."""
    tree, path = key.tree, key.path
    if tree.text is None:
        return
    if tree.format in ("shell", "argv"):
        yield from command_insertions(key, value, dialect)
        return
    text = spell(value, None, tree.format, like=tree.text)
    for sibling in _siblings(tree, path[:-1]):
        yield from _beside(tree, sibling, path, text)
    if tree.format == "yaml":
        yield from _into_yaml(tree, path, value)
    elif tree.format == "toml":
        yield from _into_toml(tree, path, text)
    elif tree.format == "json":
        yield from _into_json(tree, path, value)
    elif tree.format in ("python", "keyvalue") and len(path) == 1:
        end = "" if not tree.text or tree.text.endswith("\n") else _newline(tree.text)
        sep = " = " if tree.format == "python" else ": "
        yield Splice((path,), ((len(tree.text), len(tree.text), f"{end}{path[0]}{sep}{text}{_newline(tree.text)}"),))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _siblings(tree: ConfigTree, section: Path) -> list[Leaf]:
    """Settings that stand directly in the section, the last one first; not those merged in from elsewhere."""
    out = [
        leaf
        for leaf in tree
        if leaf.path and leaf.path[:-1] == section and isinstance(leaf.path[-1], str) and "by <<" not in (leaf.note or "")
    ]
    return out[::-1][:8]


def _beside(tree: ConfigTree, sibling: Leaf, path: Path, value: str) -> Iterator[Splice]:
    """After a setting of the same section: on a line of its own, or behind a comma."""
    text = tree.text or ""
    if sibling.start is None or sibling.end is None:
        return
    line = text.rfind("\n", 0, sibling.start) + 1
    key = _KEY.search(text, line, sibling.start)
    if key is None or not key.group("name").endswith(str(sibling.path[-1])):
        return
    stem = key.group("name")[: len(key.group("name")) - len(str(sibling.path[-1]))]
    quote = key.group("quote")
    sep = re.sub(r"&\S+[ \t]+", "", key.group("sep"))
    sep = re.sub(r"^[ \t]{2,}", " ", sep) if "=" in sep else sep.lstrip()  # columns of other lines are not ours
    new = f"{quote}{stem}{path[-1]}{quote}{sep.rstrip() + ' ' if sep.rstrip() == ':' else sep}{value}"
    stop = re.compile(r"\r?\n|\Z").search(text, sibling.end)
    end = stop.start() if stop else len(text)
    before = text[line : key.start()]
    tail = text[sibling.end : end]
    indent = before if not before.strip() else re.sub(r"\S", " ", before)
    if tree.format in ("json", "python", "yaml") or "{" in before:
        comma = re.match(r"[ \t]*,", tail)
        alone = not before.strip() or not before.strip("- \t")
        if alone and (comma or tree.format == "json") and not tail.lstrip(" \t,").startswith(("}", ")", "]")):
            rest = tail[comma.end() :] if comma else tail
            if not rest.strip() or re.match(r"[ \t]*(#|//)", rest):
                pieces: tuple[Piece, ...] = ((end, end, f"{_newline(text)}{indent}{new}{',' if comma else ''}"),)
                if not comma:
                    pieces = ((sibling.end, sibling.end, ","), *pieces)
                yield Splice((path,), pieces)
    if tree.format != "json" and not before.strip("- \t") and "{" not in before:
        yield Splice((path,), ((end, end, f"{_newline(text)}{indent}{new}"),))
    yield Splice((path,), ((sibling.end, sibling.end, f", {new.rstrip()}"),))


# -- YAML ----------------------------------------------------------------------------------------------


def _into_yaml(tree: ConfigTree, path: Path, value: Any) -> Iterator[Splice]:
    """Into a section without plain settings, an empty one, or a new one."""
    text = tree.text or ""
    shift = 1 if text.startswith("\ufeff") else 0
    try:
        root = yaml.compose(text[shift:], Loader=_LOADER)
    except (yaml.YAMLError, RecursionError, ValueError):
        return
    for depth in range(len(path) - 1, -1, -1):
        found = _node_at(root, path[:depth])
        if found is None:
            continue
        node, key = found
        rest = path[depth:]
        if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
            first = node.value[0][0].start_mark
            at, column = first.index + shift, first.column
            line = text.rfind("\n", 0, at) + 1
            lead = text[line:at] if not text[line:at].strip() else " " * column
            block = _yaml_block(rest, value, lead, tree)
            yield Splice((path,), ((at, at, f"{block.lstrip()}{_newline(text)}{lead}"),))
        elif isinstance(node, yaml.MappingNode) and node.flow_style:
            start = text.index("{", node.start_mark.index + shift) + 1  # behind an anchor, if there is one
            inner = spell(value, None, "yaml", like=text)
            for part in reversed(rest[1:]):
                inner = f"{{{part}: {inner}}}"
            yield Splice((path,), ((start, start, f"{rest[0]}: {inner}{', ' if node.value else ''}"),))
        elif isinstance(node, yaml.ScalarNode) and not node.value and key is not None:
            end = re.compile(r"\r?\n|\Z").search(text, key.end_mark.index + shift)
            lead = " " * (key.start_mark.column + _step(text))
            at = end.start() if end else len(text)
            yield Splice((path,), ((at, at, f"{_newline(text)}{_yaml_block(rest, value, lead, tree)}"),))
        return


def _node_at(root: Any, path: Path) -> tuple[Any, Any] | None:
    """The node at a path and the key above it; None when there is none."""
    node, above = root, None
    for part in path:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node, above = node.value[part], None
            continue
        if not isinstance(node, yaml.MappingNode):
            return None
        pair = next(((k, v) for k, v in node.value if k.value == str(part)), None)
        if pair is None:
            return None
        above, node = pair
    return node, above


def _step(text: str) -> int:
    """How far the file indents a block."""
    found = re.search(r"^( +)\S.*$", text, re.M)
    return len(found.group(1)) if found and len(found.group(1)) <= 8 else 2


def _yaml_block(parts: Path, value: Any, lead: str, tree: ConfigTree) -> str:
    """`a:` / `  b: value`, one line a part."""
    text = tree.text or ""
    step = " " * _step(text)
    lines = [f"{lead}{step * depth}{part}:" for depth, part in enumerate(parts)]
    return _newline(text).join(lines) + " " + spell(value, None, "yaml", like=text)


# -- TOML and JSON -------------------------------------------------------------------------------------


def _into_toml(tree: ConfigTree, path: Path, value: str) -> Iterator[Splice]:
    text = tree.text or ""
    section, newline = ".".join(str(part) for part in path[:-1]), _newline(text)
    header = re.search(rf"^[ \t]*\[[ \t]*{re.escape(section)}[ \t]*\][^\r\n]*", text, re.M) if section else None
    if header:
        yield Splice((path,), ((header.end(), header.end(), f"{newline}{path[-1]} = {value}"),))
    elif not section:
        at = 1 if text.startswith("\ufeff") else 0
        yield Splice((path,), ((at, at, f"{path[-1]} = {value}{newline}"),))
    else:
        gap = newline if text.endswith("\n") else newline * 2
        yield Splice((path,), ((len(text), len(text), f"{gap}[{section}]{newline}{path[-1]} = {value}{newline}"),))


def _into_json(tree: ConfigTree, path: Path, value: Any) -> Iterator[Splice]:
    """Just behind the opening brace of the nearest section that exists."""
    text = tree.text or ""
    opened = _json_objects(text)
    for depth in range(len(path) - 1, -1, -1):
        if path[:depth] not in opened:
            continue
        inner = spell(value, None, "json")
        for part in reversed(path[depth + 1 :]):
            inner = f'{{"{part}": {inner}}}'
        at, empty = opened[path[:depth]]
        after = re.compile(r"\s*").match(text, at)
        lead = after.group() if after and not empty else ""
        comma = "" if empty else ","
        tail = "" if lead or empty else " "
        yield Splice((path,), ((at, at, f'{lead}"{path[depth]}": {inner}{comma}{tail}'),))
        return


_JSON_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\],:]|[^\s{}\[\],:"]+', re.S)


def _json_objects(text: str) -> dict[Path, tuple[int, bool]]:
    """Where each object of a JSON text opens (just behind its brace), and whether it is empty."""
    out: dict[Path, tuple[int, bool]] = {}
    stack: list[tuple[Path, bool]] = []
    here: Path = ()
    count: list[int] = []
    held = ""
    for match in _JSON_TOKEN.finditer(text):
        token = match.group()
        if token[:2] in ("//", "/*"):
            continue
        if token in "{[":
            where = here if not stack or stack[-1][1] else (*here, count[-1])
            if token == "{":
                out[where] = (match.end(), text[match.end() :].lstrip()[:1] == "}")
            stack.append((here, token == "{"))
            count.append(0)
            here = where
        elif token in "}]":
            if not stack:
                break
            here, _ = stack.pop()
            count.pop()
        elif token == ",":
            if count:
                count[-1] += 1
        elif token == ":":
            if stack:
                here = (*_object_path(stack, here), held)
            continue
        else:
            held = token[1:-1] if token[0] == '"' else token
        if token == "," and stack and stack[-1][1]:
            here = _object_path(stack, here)
    return out


def _object_path(stack: list[tuple[Path, bool]], here: Path) -> Path:
    depth = sum(1 for _ in stack) - 1
    return here[:depth]


# -- taking out ----------------------------------------------------------------------------------------


def removals(tree: ConfigTree, leaf: Leaf) -> Iterator[Splice]:
    """Texts without this setting: its line, its option, or its member between commas."""
    text = tree.text or ""
    if leaf.start is None or leaf.end is None:
        return
    if tree.format in ("shell", "argv"):
        start = leaf.start
        if not leaf.raw.startswith("-"):
            option = re.search(r"(?:-{1,2}|\+{0,2})[\w.\-/]+(?:=|[ \t]+)[\"']?\Z", text[: leaf.start])
            if option is None:
                return
            start = option.start()
        end = leaf.end + (text[leaf.end : leaf.end + 1] in ("'", '"') and text[leaf.start - 1] == text[leaf.end])
        yield Splice((leaf.path,), ((*whole_option(text, start, end), ""),))
        return
    line = text.rfind("\n", 0, leaf.start) + 1
    key = _KEY.search(text, line, leaf.start)
    if key is None:
        return
    stop = text.find("\n", leaf.end)
    end = len(text) if stop < 0 else stop + 1
    if not text[line : key.start()].strip() and re.match(r"[ \t]*,?[ \t]*(?:#.*|//.*)?\r?\n?\Z", text[leaf.end : end]):
        yield Splice((leaf.path,), ((line, end, ""),))
    after = re.compile(r"[ \t]*,[ \t]*").match(text, leaf.end)
    if after:
        yield Splice((leaf.path,), ((key.start(), after.end(), ""),))
    before = re.search(r",\s*\Z", text[: key.start()])
    if before:
        yield Splice((leaf.path,), ((before.start(), leaf.end, ""),))

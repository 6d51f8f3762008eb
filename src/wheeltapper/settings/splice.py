"""New texts for a value that stands in a file: which stretch is replaced, and by what.

Where a knob is not simply the number in the file (a momentum that is one minus the decay, a length in thousands),
candidates are offered in the order of likelihood; edit.py keeps the first that reads as asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wheeltapper.settings.dialects.generic import precision_name
from wheeltapper.settings.dialects.schema import as_bool, as_number, unresolved
from wheeltapper.settings.knobs import KNOBS, KnobValue, cast_value
from wheeltapper.settings.parse_python import A_NAME
from wheeltapper.settings.spell import spell
from wheeltapper.settings.tree import ConfigTree, Leaf, Path

Piece = tuple[int, int, str]  # start, end, the text that takes their place


@dataclass(frozen=True, slots=True)
class Splice:
    """Stretches of one text to replace, and the settings that this is meant to change."""

    paths: tuple[Path, ...]
    pieces: tuple[Piece, ...]

    def apply(self, text: str) -> str:
        for start, end, new in sorted(self.pieces, reverse=True):
            text = text[:start] + new + text[end:]
        return text


def not_a_literal(leaf: Leaf) -> str | None:
    """Why the text of this leaf must not be replaced, if it must not."""
    note = leaf.note or ""
    if leaf.start is None or leaf.end is None:
        return "not written in a file that can be edited"
    if unresolved(leaf) or note.startswith(A_NAME):
        return f"computed: {leaf.raw[:60]}"
    for told in ("set under a condition", "may be changed on line", "appended to", "a loop variable"):
        if told in note:
            return f"not certain to be what the program uses ({note})"
    if note.startswith("comes from &") and "by <<" not in note:
        return f"part of a block that several settings share ({note})"
    if "is not constructed" in note:
        return f"built by a tag ({note})"
    return None


def replacements(
    tree: ConfigTree,
    leaf: Leaf,
    knob: str,
    mine: KnobValue | None,
    new: Any,
    options: Mapping[str, str] | None = None,
) -> Iterator[Splice]:
    """Ways to write the new value in the place of this leaf (and of its list, or of its partner)."""
    leaf = _source_of(tree, leaf)
    if isinstance(new, (list, tuple)):
        yield from _list(tree, leaf, new)
        return
    if _is_flag(tree, leaf):
        yield from _flag(tree, leaf, knob, new, options or {})
        return
    whole = _whole(leaf, knob)
    for value in _candidates(leaf, knob, mine, new):
        yield Splice((leaf.path,), (_piece(tree, leaf, value, whole=whole and not isinstance(value, bool)),))
    if knob == "precision":
        yield from _precision_switches(tree, leaf, new)


def _source_of(tree: ConfigTree, leaf: Leaf) -> Leaf:
    """`lr=base_lr` is changed where base_lr is set, as long as that is one literal."""
    match = re.match(r"the value of (\w+), line \d+\Z", leaf.note or "")
    if match and tree.format == "python":
        home = tree.leaf(match.group(1))
        if home is not None and not_a_literal(home) is None:
            return home
    return leaf


def _piece(tree: ConfigTree, leaf: Leaf, value: Any, *, whole: bool = False) -> Piece:
    start, end = _span(leaf)
    text = spell(value, leaf.raw or None, tree.format, whole=whole, like=tree.text or "")
    if not leaf.raw and tree.text is not None and tree.text[start - 1 : start] in (":", "="):
        text = f" {text}" if tree.format in ("yaml", "keyvalue") else text  # `key:` with nothing behind it
    return start, end, text


def _span(first: Leaf, last: Leaf | None = None) -> tuple[int, int]:
    """Where a leaf stands, or a list from its first item to its last; not_a_literal() has seen that it does."""
    start, end = first.start, (last or first).end
    assert start is not None
    assert end is not None
    return start, end


def _whole(leaf: Leaf, knob: str) -> bool:
    known = KNOBS.get(knob)
    if known is not None:
        return known.kind == "count"
    return isinstance(leaf.value, int) and not isinstance(leaf.value, bool)


def _candidates(leaf: Leaf, knob: str, mine: KnobValue | None, new: Any) -> list[Any]:
    """Values to try in the place of leaf.value, so that the knob becomes `new`."""
    if mine is None or knob not in KNOBS:
        return [new]
    if knob == "precision":
        return [text] if (text := _precision_word(leaf.value, new)) is not None else []
    kind, known = KNOBS[knob].kind, mine.value
    if kind == "bool" and not isinstance(leaf.value, bool) and as_bool(leaf.value) is None:
        return []
    if kind == "bool" and as_bool(leaf.value) is not known:
        return [not new]
    direct = cast_value(kind, leaf.value)
    if direct == known or kind in ("name", "any", "bool"):
        return [new]
    written = as_number(leaf.value)
    if written is None or not isinstance(known, (int, float)) or not isinstance(new, (int, float)):
        return [new]
    out: list[Any] = [new]
    if abs(written + known - 1) < 1e-12:
        out.insert(0, float(f"{1 - new:.12g}"))
    if known:
        scaled = new * written / known
        out.append(int(scaled) if isinstance(written, int) and float(scaled).is_integer() else scaled)
    return out


# -- lists ---------------------------------------------------------------------------------------------


def _list(tree: ConfigTree, leaf: Leaf, new: list[Any] | tuple[Any, ...]) -> Iterator[Splice]:
    prefix = leaf.path[:-1]
    items = [one for one in tree if one.path[:-1] == prefix and isinstance(one.path[-1], int)]
    if not isinstance(leaf.path[-1], int):
        if leaf.value == [] or isinstance(leaf.value, str):
            yield Splice((leaf.path,), (_piece(tree, leaf, list(new)),))
        partner = _partner(tree, leaf)
        if partner is not None and len(new) == 2:
            pairs = [(leaf, new[0]), (partner, new[1])]
            moved = [(one, value) for one, value in pairs if as_number(one.value) != value]
            yield Splice(tuple(one.path for one, _ in moved), tuple(_piece(tree, one, value) for one, value in moved))
        return
    whole = all(isinstance(item.value, int) for item in items) and all(float(v).is_integer() for v in new if _num(v))
    if len(new) == len(items):
        moved = [(one, value) for one, value in zip(items, new, strict=True) if as_number(one.value) != value]
        pieces = tuple(_piece(tree, one, value, whole=whole) for one, value in moved)
        yield Splice(tuple(one.path for one, _ in moved), pieces)
        return
    first, text = items[0], tree.text or ""
    start, end = _span(first, items[-1])
    between = text[start:end]
    texts = [spell(v, first.raw, tree.format, whole=whole, like=text) for v in new]
    if "#" in between or "//" in between:  # a comment says something of an item that may not be there any more
        return
    gap = text[first.end : items[1].start] if len(items) > 1 else " " if tree.format in ("shell", "argv") else ", "
    yield Splice((prefix,), ((start, end, gap.join(texts)),))


def _num(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _partner(tree: ConfigTree, leaf: Leaf) -> Leaf | None:
    """`beta2` beside `beta1`: two keys that are one knob."""
    name = str(leaf.path[-1])
    if "1" not in name:
        return None
    path = (*leaf.path[:-1], name.replace("1", "2"))
    return next((one for one in tree if one.path == path), None)


# -- switches ------------------------------------------------------------------------------------------


def _is_flag(tree: ConfigTree, leaf: Leaf) -> bool:
    """`--amp` alone on a command line: the text of the leaf is the option itself."""
    return tree.format in ("shell", "argv") and leaf.raw.startswith("-") and leaf.value is True


def _flag(tree: ConfigTree, leaf: Leaf, knob: str, new: Any, options: Mapping[str, str]) -> Iterator[Splice]:
    start, end = _span(leaf)
    if knob == "precision":
        name = leaf.raw.lstrip("-").lower()
        if name in ("fp16", "bf16") and new in ("fp16", "bf16"):
            made = leaf.raw.lower().replace(name, new)
            yield Splice((leaf.path, (*leaf.path[:-1], new)), ((start, end, made),))
        return
    name = str(leaf.path[-1])
    plain = name.removeprefix("no_")
    on, _, off = options.get(plain, "").partition("/")
    if off and isinstance(new, bool):  # a switch with two names: leaving it out would give its default
        other = off if leaf.raw == on else on
        path = (*leaf.path[:-1], other.lstrip("-").replace("-", "_"))
        yield Splice((leaf.path, path), ((start, end, other),))
    elif new is False or (new is True and name != plain):
        yield Splice((leaf.path,), ((*whole_option(tree.text or "", start, end), ""),))


def whole_option(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch of an option with the blanks before it; its whole line where it stands alone on one."""
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = len(text) if stop < 0 else stop
    rest = text[end:stop]
    if not text[line:start].strip():
        if rest.strip() == "\\":
            return line, stop + 1
        if not rest.strip():  # the last line of the command: the backslash before it goes, too
            before = re.search(r"[ \t]*\\\r?\n\Z", text[:line])
            if before:
                return before.start(), end
    while start > line and text[start - 1] in " \t":
        start -= 1
    return start, end


def _precision_word(old: Any, new: str) -> str | None:
    """`16-mixed` becomes `bf16-mixed`, `float16` `bfloat16`: the file's own way of naming it."""
    if not isinstance(old, (str, int)) or isinstance(old, bool):
        return None
    was = precision_name(old)
    text = str(old)
    if was is None:
        return None
    stems = {"fp16": ("float16", "fp16", "16", "half"), "bf16": ("bfloat16", "bf16"), "fp32": ("float32", "fp32", "32")}
    to = {"fp16": ("float16", "fp16", "16"), "bf16": ("bfloat16", "bf16", "bf16"), "fp32": ("float32", "fp32", "32")}
    for index, stem in enumerate(stems.get(was, ())):
        if stem in text and new in to:
            return text.replace(stem, to[new][min(index, 2)])
    return None


def _precision_switches(tree: ConfigTree, leaf: Leaf, new: str) -> Iterator[Splice]:
    """`fp16: true` and `bf16: false` side by side, or `use_amp` with `amp_bf16`: flip what stands there."""
    name, here = str(leaf.path[-1]), leaf.path[:-1]
    beside = {str(one.path[-1]): one for one in tree if one.path[:-1] == here}
    other = beside.get(name.replace("fp16", new).replace("bf16", new)) if new in ("fp16", "bf16") else None
    if other is not None and other is not leaf and isinstance(other.value, bool) and isinstance(leaf.value, bool):
        pieces = (_piece(tree, leaf, not leaf.value), _piece(tree, other, not other.value))
        yield Splice((leaf.path, other.path), pieces)
    for switch in beside.values():
        if isinstance(switch.value, bool) and "bf16" in str(switch.path[-1]):
            yield Splice((switch.path,), (_piece(tree, switch, new == "bf16"),))
    if isinstance(leaf.value, bool) and new == "fp32":
        yield Splice((leaf.path,), (_piece(tree, leaf, False),))
    if leaf.value is True and name in ("fp16", "bf16") and new in ("fp16", "bf16") and new not in beside:
        text, (start, _) = tree.text or "", _span(leaf)
        at = text.rfind(name, text.rfind("\n", 0, start) + 1, start)
        if at >= 0:  # `fp16: true` alone: the switch of the other name takes its place
            yield Splice((leaf.path, (*here, new)), ((at, at + len(name), new),))

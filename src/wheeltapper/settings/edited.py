"""What an edit gives: the file's text before and after, and each setting that changes."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from wheeltapper.settings.tree import ConfigTree, Leaf, Path

CLOSE = 1e-9  # two spellings of one number differ by less
Moved = dict[Path, tuple[Leaf | None, Leaf | None]]


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that an edit changes. `old` None: it was not there; `new` None: it is taken out."""

    knob: str  # as the edit named it
    key: str  # dotted
    old: str | None  # the text of the value
    new: str | None
    line: int  # in the new text; in the old one for what is taken out
    also: tuple[str, ...] = ()  # keys that share the text (an anchor, a shell variable) and change with it


@dataclass(frozen=True, slots=True)
class Edited:
    """One file with its edits made, not yet written anywhere."""

    file: str
    before: str
    after: str
    changes: tuple[Change, ...]

    def diff(self) -> str:
        """A unified diff of the two texts, for reading: a line of context, every line end as a new line."""
        name = PurePath(self.file).name
        return _unified(_lines(self.before), _lines(self.after), name, 1)

    def patch(self, name: str) -> str:
        """A unified diff that `git apply` and `patch -p1` take; `name` is the file as seen from where they are called."""
        return _unified(_as_it_is(self.before), _as_it_is(self.after), name, 3)


def _unified(before: list[str], after: list[str], name: str, context: int) -> str:
    lines = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=context)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").splitlines(keepends=True)


def _as_it_is(text: str) -> list[str]:
    """Lines by their new lines alone, as git has them: a form feed or a lone carriage return ends none."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.split("\n")[-1]) else [])


def same(a: Any, b: Any) -> bool:
    """Equal as settings: 1 and 1.0 are, True and 1 are not, lists item by item."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=CLOSE) or (a != a and b != b)
    return bool(a == b)


def differing(before: ConfigTree, after: ConfigTree) -> Moved:
    """Every setting that is not the same in two trees: added, taken out, or of another value."""
    one, two = ({leaf.path: leaf for leaf in tree} for tree in (before, after))
    out: Moved = {}
    for path in [*one, *(path for path in two if path not in one)]:
        old, new = one.get(path), two.get(path)
        if old is None or new is None or not (same(old.value, new.value) and type(old.value) is type(new.value)):
            out[path] = (old, new)
    return out


def without_copies(trees: Sequence[ConfigTree]) -> list[ConfigTree]:
    """One of several files with the same text: frameworks copy the config into the folder of the run. The one that
    a command names is kept, else the oldest.
    """
    named = " ".join(str(leaf.value) for tree in trees if tree.kind == "command" for leaf in tree)
    best: dict[tuple[str, str], ConfigTree] = {}
    for tree in trees:
        if tree.text is not None and tree.kind != "command":
            slot = (tree.format, tree.text)
            held = best.setdefault(slot, tree)
            if held is not tree and _preference(tree, named) < _preference(held, named):
                best[slot] = tree
    kept = {id(tree) for tree in best.values()}
    return [tree for tree in trees if tree.text is None or tree.kind == "command" or id(tree) in kept]


def _preference(tree: ConfigTree, named: str) -> tuple[bool, float]:
    path = PurePath(tree.file)
    try:
        made = os.stat(tree.file).st_mtime
    except OSError:
        made = 0.0
    return "/".join(path.parts[-2:]) not in named, made


def list_items(tree: ConfigTree, leaf: Leaf) -> list[Leaf]:
    """The items of the list that this leaf stands in."""
    if not leaf.path or not isinstance(leaf.path[-1], int):
        return []
    return [one for one in tree if one.path[:-1] == leaf.path[:-1] and isinstance(one.path[-1], int)]


def text_under(tree: ConfigTree, path: Path) -> str | None:
    """The text at a path; of a list, from its first item to its last."""
    leaves = [leaf for leaf in tree if leaf.path[: len(path)] == path]
    if not leaves:
        return None
    return leaves[0].raw if len(leaves) == 1 else ", ".join(leaf.raw for leaf in leaves)


def goes_along(
    path: Path,
    moved: Moved,
    paths: Sequence[Path],
    tree: ConfigTree,
) -> bool:
    """A setting that only repeats the edited text: an alias, a merged block, a variable's use."""
    old, new = moved[path]
    if old is not None and new is None and not old.value:  # a section that was empty and is not any more
        return any(one[: len(path)] == path for one in paths)
    if old is None or new is None:
        return False
    for leaf in _leaves_at(tree, paths):
        if path[:1] == ("var",) and leaf.start is not None and (old.start or 0) <= leaf.start < (old.end or 0):
            return True  # a variable that holds the whole option
        name = str(leaf.path[-1]) if leaf.path else ""
        if tree.format in ("python", "shell", "argv") and re.search(rf"\b{re.escape(name)}\b", old.raw):
            return True  # computed from it: `T_max = max_epochs - 5`
        shares = old.start == leaf.start or leaf.start == new.start
        repeats = old.note is not None and old.note.startswith(("alias of", "the value of", "comes from"))
        if (shares or repeats) and same(old.value, leaf.value):
            return True
    return False


def _leaves_at(tree: ConfigTree, paths: Sequence[Path]) -> Iterator[Leaf]:
    for leaf in tree:
        if any(leaf.path[: len(path)] == path for path in paths):
            yield leaf

"""What a dialect is made of: its table of keys, the problems it can name, and a merged view of the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from wheeltapper.errors import ContractError
from wheeltapper.finding import Place
from wheeltapper.settings.position import EXPRESSION
from wheeltapper.settings.tree import ConfigTree, Leaf

UNSET: Final = object()  # a key without a default
# What the framework does with a key it does not know.
Policy = Literal["refuse", "ignore", "warn", "unknown"]
# Branches of a tree that are not settings of the training program itself.
ASIDE = frozenset({"var", "env", "launcher", "command", "_wandb", "wandb_version", "hydra"})


@dataclass(frozen=True, slots=True)
class Key:
    """One setting a framework knows. `type`: int float bool str list map any, joined by |, `?` for null."""

    path: str  # dotted; `*` stands for any one part
    type: str = "any"
    default: Any = UNSET
    knob: str | None = None
    unit: str | None = None
    since: str | None = None  # first version or date that has it
    until: str | None = None  # last one that had it
    fork: bool = False  # only in a known fork

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.split("."))

    @property
    def nullable(self) -> bool:
        return "?" in self.type or self.type == "any"

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(self.type.rstrip("?").split("|"))

    @property
    def is_open(self) -> bool:
        """Whatever stands below is handed on as it is."""
        return bool(self.kinds & {"map", "any", "list"})


def table(text: str, prefix: str = "") -> dict[str, Key]:
    """Keys from lines of `path type default knob unit since`, `-` for none; later columns may be left out.

    >>> table("lr float 1e-3 optimizer.lr")["lr"].default
    0.001
    """
    out = {}
    for line in text.strip().splitlines():
        columns = line.split()
        if not columns or columns[0] == "#":
            continue
        columns += ["-"] * (6 - len(columns))
        name, type_, default, knob, unit, since = columns[:6]
        try:
            value = UNSET if default == "-" else ast.literal_eval(default)
        except (ValueError, SyntaxError):
            raise ContractError(f"dialect table: the default {default!r} of {name} is not a literal") from None
        fork = since.startswith("fork:")
        first, _, last = since.removeprefix("fork:").partition("..")
        path = prefix + name
        out[path] = Key(
            path,
            type_,
            value,
            None if knob == "-" else knob,
            None if unit == "-" else unit,
            None if first in ("-", "") else first,
            last or None,
            fork,
        )
    return out


def names(type_: str, text: str, prefix: str = "") -> dict[str, Key]:
    """Keys that are known and mean nothing to us."""
    return {prefix + name: Key(prefix + name, type_) for name in text.split()}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a configuration. `is`: certain from the framework's own code; else suspected."""

    id: str  # unknown-key | wrong-place | wrong-type | string-number | missing | duplicate | syntax | ...
    text: str
    place: Place
    grade: Literal["is", "suspected"]
    suggestion: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a framework leaves what; globs relative to the run folder."""

    config: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    checkpoints: tuple[str, ...] = ()
    note: str = ""


def place_of(leaf: Leaf) -> Place:
    return Place(file=leaf.file, line=leaf.line, column=leaf.column)


def rank(tree: ConfigTree) -> int:
    """What overrides what: a file, then the command line, then what the run itself printed."""
    if tree.kind and "echo" in tree.kind:
        return 2
    return 1 if tree.format in ("argv", "shell") or tree.kind == "command" else 0


@dataclass(slots=True)
class View:
    """All sources of one run as one configuration, the stronger over the weaker, key by key."""

    trees: Sequence[ConfigTree]
    index: dict[tuple[str, ...], Leaf] = field(default_factory=dict)
    _lists: dict[tuple[str, ...], list[tuple[int, Leaf]]] = field(default_factory=dict)
    _heads: set[tuple[str, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        for tree in sorted(self.trees, key=rank):
            incoming = {tuple(str(part) for part in leaf.path): leaf for leaf in tree}
            longer = {path[:-1] for path in incoming if path and path[-1].isdecimal()}
            for path in [p for p in self.index if p[:-1] in longer and p[-1].isdecimal()]:
                del self.index[path]  # a list is replaced as a whole
            self.index.update(incoming)
        for path, leaf in self.index.items():
            self._heads.update(path[:depth] for depth in range(1, len(path) + 1))
            if path and path[-1].isdecimal() and len(path[-1]) < 10:
                self._lists.setdefault(path[:-1], []).append((int(path[-1]), leaf))

    def leaf(self, dotted: str) -> Leaf | None:
        return self.index.get(tuple(dotted.split(".")))

    def has(self, dotted: str) -> bool:
        return tuple(dotted.split(".")) in self._heads

    def value(self, dotted: str, default: Any = None) -> Any:
        """The value at a path; a list is put together from its items. An unresolved expression is no value."""
        leaf = self.leaf(dotted)
        if leaf is not None:
            return default if unresolved(leaf) else leaf.value
        items = self.items(dotted)
        return [leaf.value for leaf in items] if items else default

    def items(self, dotted: str) -> list[Leaf]:
        found = self._lists.get(tuple(dotted.split(".")), [])
        return [leaf for _, leaf in sorted(found, key=lambda pair: pair[0])]

    def first(self, *paths: str) -> Leaf | None:
        """The first of several spellings that is present and not null."""
        for dotted in paths:
            leaf = self.leaf(dotted)
            if leaf is not None and leaf.value is not None and not unresolved(leaf):
                return leaf
        return None

    def number(self, *paths: str) -> float | None:
        leaf = self.first(*paths)
        return None if leaf is None else as_number(leaf.value)

    def top(self) -> set[str]:
        return {path[0] for path in self.index if path}

    def plain(self) -> Iterator[tuple[tuple[str, ...], Leaf]]:
        """Settings of the program, without shell variables, environment and launcher options."""
        for path, leaf in self.index.items():
            if path and path[0] not in ASIDE:
                yield path, leaf


def unresolved(leaf: Leaf) -> bool:
    return leaf.note is not None and leaf.note.startswith(EXPRESSION)


def as_number(value: Any) -> float | None:
    """A number from a number or from its spelling; a truth value is not one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str) and len(value) < 64:
        try:
            number = float(value.replace("_", ""))
        except ValueError:
            return None
        return int(number) if number.is_integer() and "e" not in value.lower() and "." not in value else number
    return None


def as_bool(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(value.lower())
    return None


def share(tree: ConfigTree, telling: Iterable[str], needed: int) -> float:
    """How sure `telling` keys make us: all of `needed` present gives 1. Keys are dotted, or bare for any depth."""
    known = _keys(tree.leaves)
    hits = sum(key in known for key in telling)
    return min(1.0, hits / needed)


# The keys of the configuration that was asked about last: every dialect asks about the same one.
_last: list[tuple[tuple[Leaf, ...], frozenset[str]]] = [((), frozenset())]


def _keys(leaves: tuple[Leaf, ...]) -> frozenset[str]:
    """Every dotted key with every key above it."""
    known, keys = _last[0]
    if known is leaves:
        return keys
    found: set[str] = set()
    for leaf in leaves:
        above = ""
        for part in leaf.path:
            for word in str(part).split(".") if not isinstance(part, int) else ():
                above = f"{above}.{word}" if above else word
                found.add(above)
    _last[0] = leaves, frozenset(found)
    return _last[0][1]

"""A configuration as its author wrote it: every leaf knows its file, line, column and raw text.

Values are what the *framework's* parser would make of them, so the YAML 1.1 trap stays visible:
`1e-6` under PyYAML is the string "1e-6", and `Leaf.value` is that string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]
MOST_BITS = 1000  # of a whole number; a float holds 1024


@dataclass(frozen=True, slots=True)
class Leaf:
    """One scalar (or empty container) of a configuration."""

    path: Path
    value: Any
    raw: str  # the text of the value exactly as written
    file: str
    line: int  # 1-based; of the value
    column: int = 1  # 1-based
    start: int | None = None  # offset of `raw` in the decoded text, for splicing
    end: int | None = None
    note: str | None = None  # a trap kept visible, e.g. "YAML 1.1 reads this as a string"

    def __post_init__(self) -> None:
        # A whole number that no float can hold is no setting of a training; as text it breaks no arithmetic.
        if type(self.value) is int and self.value.bit_length() > MOST_BITS:
            object.__setattr__(self, "value", self.raw)

    @property
    def dotted(self) -> str:
        return ".".join(str(part) for part in self.path)


@dataclass(frozen=True, slots=True)
class ConfigTree:
    """All leaves of one configuration source, in the order they were written."""

    file: str
    format: str  # yaml | json | toml | python | namespace | argv | shell | keyvalue | state
    leaves: tuple[Leaf, ...]
    text: str | None = None  # the decoded source, kept when it is a file that can be edited
    problems: tuple[str, ...] = ()  # what could not be parsed, with positions
    kind: str | None = None  # e.g. "command", "hparams", "echoed in log"
    _index: Mapping[Path, Leaf] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", {leaf.path: leaf for leaf in self.leaves})

    def __iter__(self) -> Iterator[Leaf]:
        return iter(self.leaves)

    def __len__(self) -> int:
        return len(self.leaves)

    def leaf(self, dotted: str) -> Leaf | None:
        """The leaf at a dotted path such as `train.optim_g.lr` or `datasets.0.name`."""
        want = dotted.split(".")
        for leaf in self.leaves:
            if len(leaf.path) == len(want) and all(str(p) == w for p, w in zip(leaf.path, want, strict=True)):
                return leaf
        return None

    def get(self, dotted: str, default: Any = None) -> Any:
        leaf = self.leaf(dotted)
        return default if leaf is None else leaf.value

    def nested(self) -> Any:
        """The plain nested value (dicts and lists), for handing to code that wants one."""
        root: Any = None
        for leaf in self.leaves:
            root = _place(root, leaf.path, leaf.value)
        return {} if root is None else root


MOST_ITEMS = 1_000_000  # of a list; a parser gives no more leaves than that


def _place(root: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(head, int):
        items = root if isinstance(root, list) else []
        if not 0 <= head < MOST_ITEMS:  # `a.999999999=1`: a key that looks like a place in a list
            return items
        while len(items) <= head:
            items.append(None)
        items[head] = _place(items[head], rest, value)
        return items
    table = root if isinstance(root, dict) else {}
    table[head] = _place(table.get(head), rest, value)
    return table

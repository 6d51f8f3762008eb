"""Looking up a path in a dialect's table of keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType

from wheeltapper.settings.dialects.schema import Key


@dataclass(frozen=True, slots=True)
class _Table:
    """A dialect's keys arranged for looking up paths. A part `*` stands for any one name."""

    node: dict[str, _Table]
    key: Key | None

    def step(self, part: str) -> _Table | None:
        return self.node.get(part) or self.node.get("*")


@cache
def _table(module: ModuleType) -> _Table:
    def build(keys: list[Key], depth: int) -> _Table:
        branches: dict[str, list[Key]] = {}
        own = None
        for key in keys:
            if len(key.parts) == depth:
                own = key
            else:
                branches.setdefault(key.parts[depth], []).append(key)
        return _Table({part: build(below, depth + 1) for part, below in branches.items()}, own)

    return build(list(module.KEYS.values()), 0)


def known_key(module: ModuleType, path: tuple[str, ...]) -> Key | None:
    """The table's entry for a path, `*` matching any one part; also an open entry above it."""
    at: _Table | None = _table(module)
    for part in path:
        at = at.step(part) if at is not None else None
        if at is None:
            return None
        if at.key is not None and at.key.is_open:
            return at.key
    return at.key if at is not None else None


def first_unknown(module: ModuleType, path: tuple[str, ...]) -> int:
    """Index of the first part that leads nowhere in the table; its length when all parts are known."""
    at: _Table | None = _table(module)
    for depth, part in enumerate(path):
        at = at.step(part) if at is not None else None
        if at is None:
            return depth
    return len(path)

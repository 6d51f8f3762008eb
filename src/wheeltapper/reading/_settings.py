"""Settings that a store keeps as values (a database cell, a protobuf field), not as a text with lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from wheeltapper.settings.tree import ConfigTree, Leaf, Path

DEPTH_LIMIT = 100
LEAF_LIMIT = 50_000


def settings_tree(values: Mapping[str, Any], file: str, line: int, kind: str) -> ConfigTree | None:
    """A ConfigTree of nested values that all stand in one record of a file; None if there are none."""
    leaves: list[Leaf] = []
    problems: list[str] = []
    for path, value in _walk(values, ()):
        if len(leaves) >= LEAF_LIMIT:
            problems.append(f"{file}:{line}: more than {LEAF_LIMIT:,} settings; the rest is left out")
            break
        raw = value if isinstance(value, str) else json.dumps(value, default=str)
        leaves.append(Leaf(path, value, raw, file, line))
    return ConfigTree(file, "state", tuple(leaves), None, tuple(problems), kind) if leaves else None


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value and len(path) < DEPTH_LIMIT:
        for key, inner in value.items():
            yield from _walk(inner, (*path, str(key)))
    elif isinstance(value, list) and value and len(path) < DEPTH_LIMIT:
        for i, inner in enumerate(value):
            yield from _walk(inner, (*path, i))
    elif path:
        yield path, value

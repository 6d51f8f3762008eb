"""Several configurations given at once: whose values are told, and which files set others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wheeltapper.settings.knobs import Knobs
from wheeltapper.settings.tree import ConfigTree

FILES = ("yaml", "json", "toml")  # a command line is meant to override a file
MOST_NAMED = 3


def others_differ(knobs: Knobs, trees: Sequence[ConfigTree]) -> str | None:
    """One sentence where other files set the same keys to other values; None where all agree."""
    files = [tree for tree in trees if tree.format in FILES]
    told = {tree.file for tree in files}
    differing: dict[str, list[str]] = {}
    for knob in knobs.declared():
        leaf = knob.leaf
        if leaf is None or leaf.file not in told:
            continue
        for tree in files:
            other = tree.leaf(leaf.dotted) if tree.file != leaf.file else None
            if other is not None and other.value != leaf.value:
                differing.setdefault(tree.file, []).append(f"{leaf.dotted} {other.raw.strip()[:40]}")
    if not differing:
        return None
    mine = sorted({Path(k.leaf.file).name for k in knobs.declared() if k.leaf is not None and k.leaf.file in told})
    parts = [f"{Path(file).name} has {_listed(values)}" for file, values in list(differing.items())[:MOST_NAMED]]
    more = f", and {len(differing) - MOST_NAMED} more files differ" if len(differing) > MOST_NAMED else ""
    return (
        f"{len(files)} configurations lie here and set other values; told is what holds if all are read together "
        f"({_listed(mine)} last): {'; '.join(parts)}{more}. Give one file for what it alone says."
    )


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
    return ", ".join(words[:MOST_NAMED]) + more

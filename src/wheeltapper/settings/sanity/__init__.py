"""Settings that cannot be meant: impossible values, values beyond all sense, and settings that contradict each other.

A check is a function of the sheet of all settings that yields doubts; `checks` lists the modules that hold them. Each doubt is one
sentence with its numbers, the cause that it would be, and the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from wheeltapper.settings.sanity import (
    audio,
    bounds,
    counts,
    data,
    flags,
    lengths,
    names,
    networks,
    observed,
    optimizing,
    pairs,
    reinforcement,
    selection,
    terms,
    trees,
)  # fmt: skip
from wheeltapper.settings.sanity.sheet import Doubt, Sheet
from wheeltapper.settings.tree import ConfigTree

__all__ = ["CHECKS", "Doubt", "Sheet", "doubts_of"]

Check = Callable[[Sheet], Iterator[Doubt]]
MODULES = (bounds, optimizing, lengths, selection, flags, data, names, networks, counts, pairs, terms, reinforcement, audio, trees, observed)
CHECKS: tuple[Check, ...] = tuple(check for module in MODULES for check in module.CHECKS)
MOST = 40  # doubts of one project


FAILS: tuple[type[Exception], ...] = (Exception,)  # what one check must not take the others with it by


def _asked(check: Check, sheet: Sheet) -> list[Doubt]:
    try:
        return list(islice(check(sheet), MOST))
    except FAILS:
        return []


def doubts_of(trees_: Sequence[ConfigTree], texts: Iterable[str] = ()) -> list[Doubt]:
    """Everything that is doubtful in these sources, one for each place, the surest first."""
    sheet = Sheet(trees_, texts)
    found = [doubt for check in CHECKS for doubt in _asked(check, sheet)]
    order = {"hint": 0, "range": 1, "edge": 2}
    out: dict[tuple[str, int, str], Doubt] = {}
    for doubt in sorted(found, key=lambda d: order[d.grade]):
        first = doubt.settings[0]
        out.setdefault((first.leaf.file, first.line, first.name), doubt)
    return list(out.values())[:MOST]

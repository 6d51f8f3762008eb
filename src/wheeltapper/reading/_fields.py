"""Small tools for a reader's `explain`: fields from matches, pairs, and a counter for `sniff`."""

from __future__ import annotations

import re
from itertools import islice

from wheeltapper.reading._rows import Field, Role
from wheeltapper.reading._text import number
from wheeltapper.reading.record import Window


def field_of(
    found: re.Match[str],
    group: str | int,
    name: str | None = None,
    role: Role = "value",
    *,
    unit: str | None = None,
    split: str | None = None,
    about: str | None = None,
    window: Window | None = None,
    scale: float = 1.0,
) -> Field:
    """A Field at a group of a match."""
    start, end = found.span(group)
    return Field(name or str(group), start, end, role, unit, split, about, window, scale)


def pairs_of(
    pattern: re.Pattern[str],
    body: str,
    start: int,
    end: int | None = None,
    *,
    split: str | None = None,
    about: str | None = None,
    window: Window | None = None,
) -> list[Field]:
    """Fields for every `name`/`value` (and `unit`) match of a pattern in a part of the line."""
    out = []
    for found in pattern.finditer(body, start, len(body) if end is None else end):
        unit = found.groupdict().get("unit") or None
        if number(found["value"]) is not None:
            name = found["name"].strip()
            out.append(field_of(found, "value", name, unit=unit, split=split, about=about, window=window))
    return out


def has_rows(text: str, pattern: re.Pattern[str], least: int = 1) -> bool:
    """Whether a head of a file holds at least so many lines of a pattern (for `sniff`)."""
    return sum(1 for _ in islice(pattern.finditer(text), least)) >= least

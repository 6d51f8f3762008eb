"""Runs as points: one column against another, for the view of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wheeltapper.errors import InputError
from wheeltapper.fleet.scan import Member
from wheeltapper.fleet.sweep import common_score
from wheeltapper.fleet.table import Column, column_named
from wheeltapper.report.text import clean

MOST_NAMES = 40  # values of a name on an axis


def scatter(members: Sequence[Member], x: str, y: str) -> dict[str, Any]:
    """Where each run stands on two columns. A column of names has a place for each on its axis."""
    try:
        across, up = column_named(x, members), column_named(y, members)
    except InputError as error:
        return {"error": str(error)}
    name = common_score(members)
    if "score" in (x, y):  # scores of several kinds have no common scale
        members = [member for member in members if member.row.score_name == name]
    names_x, names_y = _names(across, members), _names(up, members)
    points = []
    for member in members:
        at, value = _at(across, member, names_x), _at(up, member, names_y)
        if at is not None and value is not None:
            points.append({"id": member.id, "label": member.label, "verdict": member.row.verdict, "x": at, "y": value})
    return {"x": _title(across, members), "y": _title(up, members), "names_x": names_x, "names_y": names_y, "points": points}


def _title(column: Column, members: Sequence[Member]) -> str:
    return f"best {common_score(members)}" if column.id == "score" else column.title


def _names(column: Column, members: Sequence[Member]) -> list[str]:
    if column.numeric:
        return []
    found = sorted({clean(value, 40) for member in members if (value := column.of(member)) not in (None, "")})
    return found[:MOST_NAMES]


def _at(column: Column, member: Member, names: list[str]) -> float | None:
    value = column.of(member)
    if value in (None, ""):
        return None
    if column.numeric:
        return float(value) if value is not None else None
    shown = clean(value, 40)
    return float(names.index(shown)) if shown in names else None

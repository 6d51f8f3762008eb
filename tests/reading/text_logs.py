"""Shorthands for the tests of text readers."""

from __future__ import annotations

from pathlib import Path

from wheeltapper.reading import readings_of
from wheeltapper.reading.record import Points, Reading

RECORDS = Path(__file__).resolve().parents[1] / "records"


def reading(name: str) -> Reading:
    """The one reading of an own record, chosen by sniffing."""
    found = readings_of(RECORDS / name)
    assert len(found) == 1
    return found[0]


def series(read: Reading, name: str, **wanted: object) -> Points:
    """The one series of that name (and split, about, window, rank, clock)."""
    found = [p for p in read.points if p.name == name and all(getattr(p, k) == v for k, v in wanted.items())]
    assert len(found) == 1, (name, wanted, [(p.name, p.split, p.about, p.window, p.clock) for p in read.points])
    return found[0]


def at(points: Points, position: float) -> float:
    """The value at a position (the last, if it was reached twice)."""
    hits = (points.at == position).nonzero()[0]
    assert len(hits), (points.name, position, points.at[:5], points.at[-5:])
    return float(points.values[hits[-1]])


def facts(read: Reading) -> dict[str, object]:
    return {fact.name: fact.value for fact in read.facts}

"""What an audit says: what the run will really do, and what was declared and is not so."""

from __future__ import annotations

from dataclasses import dataclass

from wheeltapper.audit.linking import Link
from wheeltapper.finding import Finding, Place
from wheeltapper.simulate.plan import Plan


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what it is, its value, how it is known."""

    label: str
    value: str
    how: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class AuditReport:
    subject: str
    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()  # certain ones first
    notes: tuple[str, ...] = ()
    plan: Plan | None = None  # the planned learning rate, where the settings determine it
    dialect: str | None = None
    files: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()  # scripts and configs among them that could not be read: nothing is known about those
    links: tuple[Link, ...] = ()  # the programs beside a run, and whether each made it

"""What Wheeltapper's own guard left: `guard.jsonl`, its journal, and `incident-1200/incident.json`, the steps before an incident.

The journal gives events: what was caught, what was done about it, the launches. An incident's page gives the last steps as
series; run/folders.py uses them only where the run has no log of its own, for a log tells the same steps from the start.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from wheeltapper.reading import Head
from wheeltapper.reading.record import Event, EventKind, Fact, Note, Reading, Rows

FORMAT = "Wheeltapper guard"
STEPS = "Wheeltapper guard, steps of an incident"

MOST_BYTES = 64 << 20  # a journal has some hundred bytes for each incident, a page of 64 steps some ten thousand
MOST_EVENTS = 2000
TEXT = 400  # characters kept of a sentence
SEVERITIES = ("note", "early", "warning", "error")
# How an incident is told as an event; the sign guard-told reads it back.
TOLD = re.compile(r"^guard, (?P<severity>note|early|warning|error), (?P<kind>[\w:.-]+): (?P<text>.*)$", re.DOTALL)
_JOURNAL = re.compile(r"^guard(\.rank\d+)?\.jsonl$")
_SERIES = {"loss": "loss", "grad_norm": "grad_norm", "scale": "loss_scale", "update_ratio": "update_ratio"}
_KINDS: dict[str, EventKind] = {"start": "start", "resume": "resume"}


def sniff(head: Head) -> float:
    if _JOURNAL.match(head.path.name) and b'"event"' in head.data:
        return 0.99
    page = head.path.name == "incident.json" and b'"wheeltapper"' in head.data and b'"incident"' in head.data
    return 0.99 if page else 0.0


def read(path: Path) -> list[Reading]:
    file = str(path)
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MOST_BYTES else b""
    except OSError as error:
        return [Reading(file, FORMAT, notes=(Note(f"cannot be read: {error.strerror}", file, level="lost"),))]
    if size > MOST_BYTES:
        return [Reading(file, FORMAT, notes=(Note("it is larger than any guard writes, and was not read", file, level="lost"),))]
    return [_page(data, file) if path.name == "incident.json" else _journal(data, file)]


def _journal(data: bytes, file: str) -> Reading:
    events: list[Event] = []
    facts: list[Fact] = []
    lost = 0
    for number, raw in enumerate(data.splitlines(), 1):
        line = _object(raw)
        if line is None:
            lost += bool(raw.strip())
            continue
        event = _event(line, file, number)
        if event is not None and len(events) < MOST_EVENTS:
            events.append(event)
        if line.get("event") == "start" and isinstance(line.get("world"), int):
            facts.append(Fact("world_size", line["world"], f"{file}:{number}"))
    notes = (Note(f"{lost} lines are cut short or damaged", file, level="lost"),) if lost else ()
    return Reading(file, FORMAT, facts=tuple(facts[-1:]), events=tuple(events), notes=notes)


def _event(line: dict[str, Any], file: str, number: int) -> Event | None:
    what, step = line.get("event"), line.get("step")
    at = float(step) if isinstance(step, int | float) and math.isfinite(step) else None
    if what == "incident":
        severity, kind = str(line.get("severity")), re.sub(r"[^\w:.-]", "-", str(line.get("kind"))[:60])
        if severity not in SEVERITIES:
            return None
        onset = line.get("onset")
        at = float(onset) if isinstance(onset, int | float) and math.isfinite(onset) else at
        did = f" (the guard: {line['action']})" if isinstance(line.get("action"), str) else ""
        text = f"guard, {severity}, {kind}: {str(line.get('text'))[:TEXT]}{did}"
        return Event("message", text, file, number, at, "step" if at is not None else None)
    if what in _KINDS and (what != "start" or at):  # a launch from step 0 is told by the log itself
        return Event(_KINDS[str(what)], f"guard: {what} at step {step}", file, number, at, "step" if at is not None else None)
    if what == "recovery":
        return Event("message", f"guard: {str(line)[:TEXT]}", file, number, at, "step" if at is not None else None)
    return None


def _page(data: bytes, file: str) -> Reading:
    page = _object(data)
    steps = page.get("steps") if page is not None else None
    if not isinstance(steps, list):
        return Reading(file, STEPS, notes=(Note("the page of this incident is damaged", file, level="lost"),))
    rows = Rows(file, "step")
    for number, step in enumerate(steps, 1):
        if not isinstance(step, dict) or not isinstance(step.get("step"), int):
            continue
        if step.get("skipped") or step.get("action"):  # the training did not take this step, or took it back
            continue
        values = {name: _number(step.get(key)) for key, name in _SERIES.items()}
        rates = step.get("lr")
        if isinstance(rates, list) and rates:
            values["lr"] = _number(rates[0])
        kept = {k: v for k, v in values.items() if not math.isnan(v) or (k == "loss" and step.get("loss_given"))}
        rows.add(number, float(step["step"]), kept, split="train", window="batch")
    return Reading(file, STEPS, points=rows.points())


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _number(value: Any) -> float:
    """A number; "NaN" and "Infinity" as the recorder writes them."""
    try:
        return float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except ValueError:
        return math.nan

"""The guard inside the training caught something.

## What it sees
Incidents in the journal of Wheeltapper's guard (`guard.jsonl` in the run's folder), warnings and errors, by kind.

## Why it matters
The guard sees every step and every tensor, a log only some: a gradient that is not finite, a parameter that no optimizer
moves, a batch that is not like the others leave no trace in a curve.

## How it decides
By what the journal says; each kind is told once, with its first step and how often. Always a watch: whether it harmed the
training, the curves tell. Early warnings are a note. What the guard took from these same signs (`sign:...`) is left out.

## When it is wrong
A journal that another run left in the same folder.

## References
- docs/incidents.md, docs/guard.md: what the guard looks for and how often it is wrong.
"""

from __future__ import annotations

import re

from wheeltapper.finding import Answer, Clear, Finding, Place, Unknown
from wheeltapper.reading.guard_journal import TOLD
from wheeltapper.run.model import Event, Run

ID = "guard-told"
LIVE = False  # the guard itself asks the live ones
MOST = 6


def look(run: Run) -> Answer | list[Finding]:
    said = [(event, told) for event in run.events if (told := TOLD.match(event.text)) is not None]
    if not said:
        return Unknown("no guard has told anything", ("a guard in the training loop",))
    found: dict[str, list[tuple[Event, re.Match[str]]]] = {}
    for event, told in said:
        if told["severity"] != "note" and not told["kind"].startswith("sign:"):
            found.setdefault(told["kind"], []).append((event, told))
    if not found:
        return Clear(f"the guard told {len(said)} notes, and no warning")
    return [_finding(kind, said) for kind, said in list(found.items())[:MOST]]


def _finding(kind: str, said: list[tuple[Event, re.Match[str]]]) -> Finding:
    event, told = said[0]
    where = f" at step {event.at:,.10g}" if event.at is not None else ""
    again = f"; {len(said)} times in all" if len(said) > 1 else ""
    return Finding(
        id=ID,
        summary=f"the guard caught {kind}{where}: {told['text'].rstrip('.')}{again}",
        severity="note" if told["severity"] == "early" else "watch",
        grade="is",
        clock=event.clock,
        onset=event.at,
        numbers={"times": float(len(said))},
        places=tuple(Place(e.file, e.line) for e, _ in said[:3]),
    )


CASES = {
    "finding": {
        "train/loss": [1.0, 0.9, 0.8],
        "events": [("message", "guard, warning, not-optimized: 3 of 8 tensors get no step from the optimizer.", 2)],
        "expect": "watch",
    },
    "early": {
        "train/loss": [1.0, 0.9, 0.8],
        "events": [("message", "guard, early, early: the norm scatters 3 times as much as before", 2)],
        "expect": "note",
    },
    "clear": {
        "train/loss": [1.0, 0.9, 0.8],
        "events": [("message", "guard, note, norm-outlier: The gradient norm is 9 times its median.", 2)],
    },
    "unknown": {"train/loss": [1.0, 0.9, 0.8]},
}

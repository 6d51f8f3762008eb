"""A scheduler is stepped once before training starts.

What it sees
------------
`scheduler.step()` called right after the scheduler is made, outside every loop and before the first backward
pass.

Why it matters
--------------
The first learning rate is skipped and the whole schedule runs one step early. torch then warns that the
scheduler was stepped before the optimizer. With OneCycleLR the last step of the run raises (onecycle-overrun).

How it decides
--------------
A step without arguments, under no loop, on the same object, before any backward pass in the order the program
runs. Steps under a condition that speaks of resuming or of a start epoch are left alone: they catch up.

When it is wrong
----------------
If the offset is meant, or the schedule was lengthened by one to make up for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import reachable
from wheeltapper.program.loop import Event
from wheeltapper.program.objects import Part
from wheeltapper.program.reading import Code

ID = "scheduler-stepped-in-init"
CAUSE = "schedule-too-short"
DECIDES = False
CATCHES_UP = re.compile(r"resume|start|last_epoch|checkpoint|ckpt|restore", re.I)


def check(code: Code) -> Iterator[Finding]:
    seen = set()
    for part, event in early_steps(code):
        if event.node not in seen:
            seen.add(event.node)
            yield code.finding(
                ID,
                f"{event.name} ({part.made_by}) is stepped before training: its first learning rate is skipped and the "
                "schedule runs one step early.",
                event.node,
                part.call,
                severity="watch",
            )


def early_steps(code: Code) -> list[tuple[Part, Event]]:
    """Steps of a scheduler made before the first backward pass, outside every loop."""
    first = min((e.order for e in code.loop.of("backward")), default=None)
    if first is None:
        return []
    out = []
    for event in code.loop.of("schedule"):
        if event.loops or event.node.args or event.node.keywords or event.order > first:
            continue
        if any(CATCHES_UP.search(ast.unparse(g.node.test)) for g in event.guards) or not reachable(code, event):
            continue
        makers = [e for e in code.loop.of("make") if e.order < event.order and together_made(code, e, event)]
        part = next(
            (p for e in reversed(makers) for p in code.parts if p.call is e.node and p.kind == "scheduler"), None
        )
        if part is not None:
            out.append((part, event))
    return out


def together_made(code: Code, made: Event, event: Event) -> bool:
    part = next((p for p in code.parts if p.call is made.node), None)
    taken = {g.node: g.taken for g in made.guards}
    return (
        part is not None
        and part.kind == "scheduler"
        and event.name in part.names
        and all(taken.get(g.node, g.taken) == g.taken for g in event.guards)
    )

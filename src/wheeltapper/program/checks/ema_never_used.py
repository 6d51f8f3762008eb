"""A weight average is kept and never used.

What it sees
------------
An EMA object that is updated, and neither evaluated, saved, copied nor handed to anything.

Why it matters
--------------
It costs memory and time, and whoever asked for an averaged model gets the raw one.

How it decides
--------------
The object is followed as a scheduler is in scheduler-never-stepped; updating it, moving it to a device and
switching its mode do not count as use.

When it is wrong
----------------
If something outside the program reaches into the object that holds the average.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import part_reachable
from wheeltapper.program.reading import Code

ID = "ema-never-used"
CAUSE = None
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework:
        return
    for part in code.made("ema"):
        if part.trace.acts or not part.names or not part_reachable(code, part.call):
            continue
        if any("state_dict" in code.program.calls for _ in part.trace.shows):
            saved = [n for n in part.trace.shows if "state_dict" in str(getattr(getattr(n, "func", None), "attr", ""))]
            if saved:
                continue
        name = min(part.names, key=len)
        yield code.finding(
            ID, f"{name} ({part.made_by}) is updated, and never evaluated or saved.", part.call, severity="watch"
        )

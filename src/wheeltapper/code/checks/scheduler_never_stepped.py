"""A learning-rate scheduler is built and never stepped.

What it sees
------------
A scheduler that is made, and on which `step()` is never called anywhere in the program.

Why it matters
--------------
The learning rate stays at its first value for the whole run: no decay, no warm-up.

How it decides
--------------
The scheduler object is followed through variables, fields, containers, calls and returns. If any path steps
it, hands it to code outside the program (another scheduler, `accelerator.prepare`, a trainer) or returns it
to a framework, nothing is said; reading its learning rate or saving its state does not count as stepping.

When it is wrong
----------------
If something outside the program reaches into the object that holds the scheduler and steps it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.code.conditions import part_reachable
from wheeltapper.code.reading import Code
from wheeltapper.finding import Finding

ID = "scheduler-never-stepped"


def check(code: Code) -> Iterator[Finding]:
    for part in code.made("scheduler"):
        if part.trace.acts or not part_reachable(code, part.call):
            continue
        name = min(part.names, key=len) if part.names else part.made_by
        yield code.finding(
            ID, f"{name} ({part.made_by}) is built and never stepped: the learning rate does not change.", part.call
        )

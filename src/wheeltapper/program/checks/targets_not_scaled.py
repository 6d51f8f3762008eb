"""Inputs are scaled and targets are not.

What it sees
------------
A regression whose inputs are normalised while its targets go into the loss as they are.

Why it matters
--------------
Targets of thousands make losses of millions: the step size is wrong for them, and the first epochs only learn their
mean.

How it decides
--------------
The way of the input holds a scaling by its own statistics, the way of the target none, and both come from the same
table.

When it is wrong
----------------
If the targets are of size one anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.evaluated_otherwise import scaled_by
from wheeltapper.program.play.lineage import lineage, pairs_of
from wheeltapper.program.play.story import NUMBER_LOSSES
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "targets-not-scaled"
CAUSE: str | None = "targets-not-normalised"
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    for loss, given, target in pairs_of(code.story):
        if loss.name not in NUMBER_LOSSES:
            continue
        step = scaled_by(given)
        if step is None or scaled_by(target) is not None or not _one_table(given, target):
            continue
        yield code.seen(
            ID, "The inputs are scaled and the targets are not.", lineage(target)[1], loss, step, grade="suspected"
        )
        return


def _one_table(a: Val, b: Val) -> bool:
    mine, theirs = lineage(a), lineage(b)
    return (
        mine[-1] is theirs[-1]
        and mine[-1].op in ("call", "lib")
        and not any(v.op == "call" and v.name in ("log", "log1p", "sqrt") for v in theirs)
    )

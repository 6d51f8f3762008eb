"""The nearest of the same kind is the anchor itself.

What it sees
------------
A triplet loss whose positive distance is the smallest among all of the same identity.

Why it matters
--------------
The smallest is the distance of the anchor to itself, zero: nothing pulls an identity together.

How it decides
--------------
The margin loss subtracts one minimum of a matrix of distances between the same points from another.

When it is wrong
----------------
If the diagonal was taken out before.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "anchor-is-its-own-positive"
CAUSE: str | None = None
DECIDES = True


TAKES_OUT = {"fill_diagonal_", "eye", "diagonal", "masked_fill_"}


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.losses:
        for value in made_of(loss):
            if value.op != "bin" or value.name != "Sub":
                continue
            least = [_least(a) for a in value.args]
            if least[0] is None or least[1] is None:
                continue
            parts = list(made_of(least[0]))
            own = [
                v for v in parts if v.op == "call" and v.name == "cdist" and len(v.args) > 1 and v.args[0] is v.args[1]
            ]
            if own and not any(v.op == "call" and v.name in TAKES_OUT for v in parts):
                text = "The positive is the nearest of the same identity, which is the anchor itself, at a distance of zero."
                yield code.seen(ID, text, least[0], value)
                return


def _least(value: Val) -> Val | None:
    while value.op in ("attr", "item") and value.args and (value.name == "values" or value.data == 0):
        value = value.args[0]
    return value if value.op == "call" and value.name in ("min", "amin") and value.args else None

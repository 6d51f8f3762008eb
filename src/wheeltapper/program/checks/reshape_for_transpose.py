"""Axes are swapped with a change of shape.

What it sees
------------
`x.reshape(x.size(1), x.size(0), -1)`, or heads of attention merged with `view(B, T, C)` without the transpose back.

Why it matters
--------------
view and reshape keep the order of the numbers: the shape is as wanted and every number is in the place of another.

How it decides
--------------
The new shape names the sizes of the same tensor in another order; or a tensor whose axes are known to be (a, h, t,
d) is viewed as (a, t, ...).

When it is wrong
----------------
If the axes were swapped before, out of sight.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.shapes import axes
from wheeltapper.program.play.value import Val, number, plain
from wheeltapper.program.reading import Code

ID = "reshape-for-transpose"
CAUSE: str | None = "target-misaligned"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("view", "reshape"):
        wanted = _wanted(call)
        if len(wanted) < 2:
            continue
        if _swapped(call, wanted):
            yield code.seen(ID, f"{call.name} swaps two sizes without moving the numbers; transpose does.", call)
            return
        before = axes(call.args[0])
        after = axes(call)
        if before is None or after is None or len(before) <= len(after) or len(after) < 3 or len(before) != 4:
            continue
        named = (
            isinstance(after[1], tuple) and after[0] == before[0] and after[1] == before[2] and after[1] != before[1]
        )
        if named:
            text = f"{call.name} merges axes that are not side by side: the transpose back is missing."
            yield code.seen(ID, text, call)
            return


def _wanted(call: Val) -> list[Val]:
    given = list(call.args[1:])
    return given[0].items or [] if len(given) == 1 and given[0].items else given


def _swapped(call: Val, wanted: list[Val]) -> bool:
    sizes = [_size_of(w, call.args[0]) for w in wanted[:2]]
    return sizes == [1, 0]


def _size_of(value: Val, base: Val) -> int | None:
    """Which axis of the tensor this is the size of."""
    if (
        value.op == "call" and value.name == "size" and len(value.args) > 1 and plain(value.args[0]) is plain(base)
    ) or (
        value.op == "item"
        and value.args[0].op == "attr"
        and value.args[0].name == "shape"
        and plain(value.args[0].args[0]) is plain(base)
    ):
        place = number(value.args[1])
    else:
        return None
    return int(place) if place is not None else None

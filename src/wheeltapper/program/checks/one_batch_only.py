"""Only one batch is ever trained on.

What it sees
------------
A training loop that uses a batch taken once before it (or always the first one of a loader).

Why it matters
--------------
The model learns that batch by heart and nothing else.

How it decides
--------------
`next(iter(loader))` outside of the loop that trains on it, with no other data in the loss; or inside it, on a loader
that does not shuffle.

When it is wrong
----------------
A deliberate test of overfitting.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import lineage
from wheeltapper.program.play.story import RANDOM
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

ID = "one-batch-only"
CAUSE: str | None = "same-batch-repeated"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call, loss in story.backwards:
        batches = [v for v in made_of(loss) if v.op == "batch"]
        taken = [
            c
            for c in story.calls
            if c.name == "iter" and c.args and c.args[0].op == "call" and c.args[0].name == "DataLoader"
        ]
        loops = {id(v) for t in call.loops if t.over is not None for v in made_of(t.over, stop=_is_length)}
        for one in taken:
            mine = [b for b in batches if b.data is one.args[0]]
            if not mine or len(mine) != len(batches) or id(one.args[0]) in loops or not call.loops:
                continue
            if len(one.loops) < len(call.loops) and _fetched_outside(call, one):
                size = number(one.args[0].arg("batch_size", 1))
                if size is not None and size > 1024:
                    continue  # all there is, in one
                yield code.seen(
                    ID,
                    "The loop trains on one batch that was taken before it.",
                    one,
                    call,
                    grade="is" if size is not None else "suspected",
                )
                return
    yield from _same_rows(code)
    yield from _drawn_before(code)


def _is_length(value: Val) -> bool:
    """A loop over `range(len(loader))` takes nothing from the loader."""
    return value.op == "call" and value.name == "len"


def _same_rows(code: Code) -> Iterator[Finding]:
    """`x[torch.arange(n)[:size]]`, `x[:size]` inside the loop: rows that no turn of it changes."""
    for call, loss in code.story.backwards:
        inside = {n for t in call.loops if isinstance(t.node, ast.For | ast.While) for n in ast.walk(t.node)}
        for net in (v for v in made_of(loss, deep=False) if v.op == "net" and len(v.args) > 1):
            picked = [v for v in lineage(net.args[1]) if v.op == "item" and v.node in inside and len(v.args) > 1]
            if picked and all(_is_fixed(v.args[1]) for v in picked) and any(_cuts(v.args[1]) for v in picked):
                yield code.seen(
                    ID, "Every step takes the same rows: nothing in the loop changes which.", picked[0], call
                )
                return


def _drawn_before(code: Code) -> Iterator[Finding]:
    """`x, y = get_batch()` before the loop, and none inside it."""
    story = code.story
    for call, loss in story.backwards:
        for net in (v for v in made_of(loss, deep=False) if v.op == "net" and len(v.args) > 1 and story.in_training(v)):
            parts = list(made_of(*net.args[1:], deep=False))
            drawn = [
                v for v in parts if v.op == "call" and v.name in RANDOM and any("batch" in name for name in v.inside)
            ]
            moving = [v for v in parts if v.op == "call" and v.order >= 0 and story.in_training(v)]
            again = {v.node for v in drawn} & {
                c.node for c in story.calls if not c.no_grad and any(t in call.loops for t in c.loops)
            }
            if (
                drawn
                and not again
                and not moving
                and all(len(d.loops) < len(call.loops) for d in drawn)
                and not any(v.op in ("phi", "batch") for v in parts)
            ):
                yield code.seen(ID, "The loop trains on one batch that was drawn before it.", drawn[0], call)
                return


def _is_fixed(index: Val) -> bool:
    moving = {"index", "elem", "batch", "free", "param", "net"}
    return not any(
        v.op in moving or (v.op == "call" and v.name in RANDOM | {"next", "randperm"}) for v in _bounds(index)
    )


def _bounds(index: Val) -> list[Val]:
    """What an index is made of; of lengths it does not matter how they came about."""
    return list(made_of(index, stop=lambda v: v.op == "call" and v.name in ("len", "size")))


def _cuts(index: Val) -> bool:
    """A piece from the first axis with a known end, counted from the start."""
    index = plain(index)
    if index.op == "item" and len(index.args) > 1:
        return plain(index.args[0]).name == "arange" and _cuts(index.args[1])
    return index.op == "slice" and (number(index.args[1]) or 0) > 0 and not number(index.args[0])


def _fetched_outside(call: Val, taken: Val) -> bool:
    """No `next()` on it inside the loop."""
    inside = [
        n
        for t in call.loops
        if isinstance(t.node, ast.For | ast.While) and t not in taken.loops
        for n in ast.walk(t.node)
        if isinstance(n, ast.Call)
    ]
    return not any(isinstance(n.func, ast.Name) and n.func.id == "next" for n in inside)

"""Both factors of an adapter start at zero.

What it sees
------------
Two parameters that are only used multiplied with each other, both filled with zeros.

Why it matters
--------------
The gradient of each is the other: both stay at zero for ever.

How it decides
--------------
Both are parameters of one module made of zeros (or set to zeros afterwards), and the module's forward multiplies one
after the other.

When it is wrong
----------------
Never, where both are really multiplied.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "zero-product"
CAUSE: str | None = "dead-network"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    zeroed = [p for c in story.calls if c.name == "Parameter" and c.args and _zeros(c.args[0]) for p in [c]]
    zeroed += [
        c.args[0] for c in story.named("zeros_") if c.args and c.args[0].op == "call" and c.args[0].name == "Parameter"
    ]
    zeroed += [
        c.args[0].args[0]
        for c in story.named("zero_")
        if c.args[0].op == "attr" and c.args[0].args[0].name == "Parameter"
    ]
    refilled = {
        id(v)
        for c in story.calls
        if c.name.endswith("_") and c.name not in ("zeros_", "zero_", "requires_grad_")
        for a in c.args[:1]
        for v in made_of(a)
    }
    dead = [p for p in zeroed if id(p) not in refilled and not (p.args and id(p.args[0]) in refilled)]
    for i, a in enumerate(dead):
        for b in dead[i + 1 :]:
            if (
                a.node is not b.node
                and _multiplied(code, a, b)
                and a.inside == b.inside
                and a.inside[-1:] == ("__init__",)
            ):
                set_by = next(
                    (c for c in story.named("zeros_", "zero_") if any(v is a or v is b for v in made_of(c.args[0]))), a
                )
                yield code.seen(
                    ID,
                    "Two parameters that are multiplied with each other both start at zero: neither can move.",
                    set_by,
                    a,
                    b,
                )
                return


def _zeros(value: Val) -> bool:
    return value.op == "call" and value.name in ("zeros", "zeros_like")


def _multiplied(code: Code, a: Val, b: Val) -> bool:
    """Whether one expression of their class multiplies the two."""
    held = {c.args[1].data: c.args[0] for c in code.story.named("setattr") if c.args[2] is a or c.args[2] is b}
    owner = code.program.classes.get(next(iter(held.values())).name) if len(held) == 2 else None
    for node in ast.walk(owner.node) if owner is not None else ():
        if isinstance(node, ast.Call) and callee(node) == "linear" and len(node.args) > 1:
            inner = [{n.attr for n in ast.walk(a) if isinstance(n, ast.Attribute)} & set(held) for a in node.args[:2]]
            if inner[0] and inner[1] and len(inner[0] | inner[1]) == 2:
                return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Mult):
            sides = [
                {n.attr for n in ast.walk(side) if isinstance(n, ast.Attribute)} & set(held)
                for side in (node.left, node.right)
            ]
            if sides[0] and sides[1] and len(sides[0] | sides[1]) == 2:
                return True
    return False

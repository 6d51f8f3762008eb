"""Layers are inverted in the order in which they were applied.

What it sees
------------
A flow that samples by calling the inverse of its layers from the first to the last.

Why it matters
--------------
What was done last must be undone first: the samples do not follow the density that was learned.

How it decides
--------------
Two loops go over the same list of layers, one calls them, the other one calls `inverse` (or the like) of them, and
none of the two goes backwards.

When it is wrong
----------------
If the layers commute, so that their order does not matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

UNDOES = {"inverse", "reverse", "backward_flow", "inv", "invert", "decode_step", "_inverse", "sample_step"}

ID = "inverse-in-forward-order"
CAUSE: str | None = "wrong-order"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for cls in code.program.classes.values():
        loops = [n for n in ast.walk(cls.node) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)]
        ahead = {ast.unparse(n.iter) for n in loops if _calls(n, set())}
        for loop in loops:
            undone = _calls(loop, UNDOES)
            if undone and isinstance(loop.iter, ast.Attribute) and ast.unparse(loop.iter) in ahead:
                yield code.finding(ID, "The layers are inverted in the order in which they were applied, not backwards.", loop)
                return


def _calls(loop: ast.For, names: set[str]) -> bool:
    """Whether the loop calls its layers: one of these methods, or (with no names) the layer itself."""
    assert isinstance(loop.target, ast.Name)
    for node in ast.walk(loop):
        if not isinstance(node, ast.Call):
            continue
        func = node.func
        if not names and isinstance(func, ast.Name) and func.id == loop.target.id and not node.keywords:
            return True
        if names and isinstance(func, ast.Attribute) and callee(node) in names and isinstance(func.value, ast.Name) and func.value.id == loop.target.id:
            return True
    return False

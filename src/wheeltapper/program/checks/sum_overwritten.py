"""A sum over layers keeps only its last term.

What it sees
------------
A tensor that starts at zero before a loop over layers and is set anew, not added to, at every turn.

Why it matters
--------------
The log-determinant of a flow, or the loss of several layers, is then that of the last layer alone: the number
reported is no density.

How it decides
--------------
The name is set to zeros before the loop, every turn sets it to something without itself, and it is read after the
loop.

When it is wrong
----------------
If the zeros are only a value for an empty loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "sum-overwritten"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    entered = code.story.player.entered
    for func in (f for funcs in code.program.functions.values() for f in funcs if f.scope in entered):
        body = getattr(func.node, "body", [])
        for place, loop in enumerate(body if isinstance(body, list) else []):
            if not isinstance(loop, ast.For):
                continue
            starts = {n.targets[0].id for n in body[:place] if _is_zero(n)}
            for one in loop.body:
                name = _target(one)
                if (
                    name not in starts
                    or name in _read(one)
                    or not any(name in _read(after) for after in body[place + 1 :])
                ):
                    continue
                if any(name in _read(other) for other in loop.body):
                    continue
                text = f"`{name}` starts at zero and is set anew at every turn: only the last term of the sum is left."
                yield code.finding(ID, text, one, loop)
                return


def _is_zero(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and (
            (isinstance(node.value, ast.Call) and callee(node.value) in ("zeros", "zeros_like", "new_zeros"))
            or (isinstance(node.value, ast.Constant) and node.value.value in (0, 0.0) and node.value.value is not False)
        )
    )


def _target(node: ast.stmt) -> str:
    simple = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    return node.targets[0].id if simple else ""  # type: ignore[attr-defined]


def _read(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}

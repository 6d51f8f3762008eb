"""An array is read and never filled.

What it sees
------------
An array of noughts that a loop reads step by step and that nothing writes to, beside others that are filled.

Why it matters
--------------
What is computed from it is computed from noughts: no rewards, no ends of episodes.

How it decides
--------------
A name is set to `zeros(...)`; somewhere it is read at a place that is a variable; nothing assigns to a place of it,
changes it in place, or is given it; another array that was made in the same way is filled.

When it is wrong
----------------
If noughts are what is meant, as for a first hidden state.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

MAKES = {"zeros", "empty", "zeros_like", "empty_like"}

ID = "never-filled"
CAUSE: str | None = None
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for scope in _scopes(code):
        made = {n: node for node in ast.walk(scope) if isinstance(node, ast.Assign) for n in _zeros(node)}
        filled = {n.value.id for n in ast.walk(scope) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name)}
        if len(filled & set(made)) < 2:
            continue
        for name in sorted(set(made) - filled):
            reads = _only_read(code, scope, name)
            if reads:
                yield code.finding(ID, f"`{name}` is made of noughts, read, and never filled.", made[name], reads[0], *_beside(scope, filled))
                return


def _scopes(code: Code) -> Iterator[ast.AST]:
    yield code.program.entry.tree
    for funcs in code.program.functions.values():
        for func in funcs:
            if func.scope in code.story.player.entered and not isinstance(func.node, ast.Lambda):
                yield func.node


def _zeros(node: ast.Assign) -> list[str]:
    if not any(isinstance(n, ast.Call) and callee(n) in MAKES for n in ast.walk(node.value)):
        return []
    target = node.targets[0]  # a field of something (`data.x = zeros(...)`) says nothing about the whole
    return [n.id for n in (target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(n, ast.Name)]


def _only_read(code: Code, scope: ast.AST, name: str) -> list[ast.AST]:
    """Where it is read at a variable place; empty where it is also written, grown, or handed on."""
    reads: list[ast.AST] = []
    sets = 0
    for node in ast.walk(scope):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        if not isinstance(node.ctx, ast.Load):
            sets += 1
            continue
        up = code.program.parent(node)
        if isinstance(up, ast.Subscript) and isinstance(up.slice, ast.Name | ast.BinOp) and isinstance(up.ctx, ast.Load):
            reads.append(up)
        elif (isinstance(up, ast.Attribute) and not up.attr.endswith("_") and up.attr not in ("append", "add", "data")) or (isinstance(up, ast.Call) and callee(up) in (*MAKES, "ones_like", "len", "print")):
            continue
        elif not isinstance(up, ast.BinOp | ast.Subscript):
            return []
    return reads if sets == 1 else []


def _beside(scope: ast.AST, filled: set[str]) -> list[ast.Subscript]:
    stores = [n for n in ast.walk(scope) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name)]
    return [n for n in stores if n.value.id in filled][:4]  # type: ignore[attr-defined]

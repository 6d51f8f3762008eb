"""The reward grows with the distance from the goal.

What it sees
------------
A reward that adds the distance (or error) after the step, or its increase.

Why it matters
--------------
The agent is paid for moving away.

How it decides
--------------
The reward of step() is written as a sum with signs. A distance measured after the move must not stand in it with a
plus: `distance() - before`. A distance is known by its name.

When it is wrong
----------------
If what is named distance is to be large, such as the way travelled.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "distance-rewarded"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True

FAR = re.compile(r"(^|_)(dist|distance|error|err|gap|cost|deviation)(_|$|to)", re.I)
WAY = re.compile(r"travel|total|cover|walked|moved|forward|progress|run", re.I)


def check(code: Code) -> Iterator[Finding]:
    for cls in code.program.classes.values():
        step = cls.methods.get("step")
        if step is None or "reset" not in cls.methods:
            continue
        for node in ast.walk(step.node):
            if isinstance(node, ast.Assign | ast.AugAssign) and _is_reward(node):
                found = [(n, s) for n, s in _terms(node.value, -1 if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub) else 1) if _is_far(n)]
                names = {ast.unparse(n) for n, _ in found}
                if len(names) == 1 and [s for _, s in found] == [1] and isinstance(found[0][0], ast.Call):
                    yield code.finding(ID, f"The reward grows with {names.pop()}: moving away is paid for.", node)
                    return


def _is_reward(node: ast.Assign | ast.AugAssign) -> bool:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return isinstance(target, ast.Name) and target.id.lower() in ("reward", "rew", "r", "rewards")


def _terms(node: ast.expr, sign: int) -> Iterator[tuple[ast.expr, int]]:
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            yield from _terms(left, sign)
            yield from _terms(right, sign if isinstance(op, ast.Add) else -sign)
        case ast.BinOp(left=ast.Constant(value=int() | float() as value), op=ast.Mult(), right=inner):
            yield from _terms(inner, sign if value >= 0 else -sign)
        case ast.BinOp(left=inner, op=ast.Mult() | ast.Div()):
            yield from _terms(inner, sign)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            yield from _terms(inner, -sign)
        case _:
            yield node, sign


def _is_far(node: ast.expr) -> bool:
    name = node.func if isinstance(node, ast.Call) else node
    word = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
    return bool(FAR.search(word)) and not WAY.search(word)

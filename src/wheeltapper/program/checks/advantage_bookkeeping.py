"""Advantages, returns and ends of episodes do not fit each other.

What it sees
------------
A generalised advantage estimate: the value target is made with something else than the values that were subtracted,
or the end of the episode is read at the wrong step.

Why it matters
--------------
The critic is fitted to a quantity that is no return, or values leak from one episode into another.

How it decides
--------------
In the loop that goes back through a rollout, `delta = reward + discount * next value * alive - value`. The return is
the advantage plus that same value. What says that an episode is over is read one step on if it was stored before the
environment's step, together with the state, and at the same step if it was stored after.

When it is wrong
----------------
If two arrays of ends are kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "advantage-bookkeeping"
CAUSE: str | None = "target-misaligned"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for node in code.program.live_by_type.get(ast.For, []):
        assert isinstance(node, ast.For)
        index = node.target.id if isinstance(node.target, ast.Name) else None
        if index is None or not _goes_back(node.iter):
            continue
        for delta in (n for n in ast.walk(node) if isinstance(n, ast.Assign)):
            parts = _delta(delta.value)
            if parts is None:
                continue
            rewards, values = parts
            yield from _target(code, node, rewards, values)
            yield from _end(code, node, index)
            return


def _goes_back(over: ast.expr) -> bool:
    if not isinstance(over, ast.Call):
        return False
    if callee(over) == "reversed":
        return True
    return callee(over) == "range" and len(over.args) == 3 and ast.unparse(over.args[2]) == "-1"


def _delta(value: ast.expr) -> tuple[str, str] | None:
    """The arrays of rewards and of values in `rewards[t] + ... - values[t]`."""
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub) and isinstance(value.left, ast.BinOp)):
        return None
    reward, base = _array(value.left.left), _array(value.right)
    if not isinstance(value.left.op, ast.Add) or reward is None or base is None or reward == base:
        return None
    return reward, base


def _array(node: ast.expr) -> str | None:
    return node.value.id if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) else None


def _target(code: Code, loop: ast.For, rewards: str, values: str) -> Iterator[Finding]:
    filled = {n.value.id for n in ast.walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name)}
    for node in code.program.live_by_type.get(ast.BinOp, []):
        assert isinstance(node, ast.BinOp)
        if not isinstance(node.op, ast.Add) or code.program.func_of.get(node) is not code.program.func_of.get(loop):
            continue
        sides = [s.id for s in (node.left, node.right) if isinstance(s, ast.Name)]
        if len(sides) == 2 and set(sides) & filled and rewards in sides and values not in sides:
            text = f"The return is the advantage plus `{values}`, which was subtracted from it; here `{rewards}` is added."
            yield code.finding(ID, text, node)
            return


def _end(code: Code, loop: ast.For, index: str) -> Iterator[Finding]:
    func = code.program.func_of.get(loop)
    body: ast.AST = func.node if func is not None else code.program.entry.tree
    for node in ast.walk(loop):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant) and node.left.value == 1):
            continue
        ends = _array(node.right)
        early = _stored_before_step(body, ends) if ends is not None else None
        place = ast.unparse(node.right.slice) if isinstance(node.right, ast.Subscript) else ""
        if early is True and place == index:
            text = f"`{ends}` was stored before each step, so that of step {index} says whether its state is a fresh one; the end is read one step too early."
            yield code.finding(ID, text, node)
            return
        if early is False and place.replace(" ", "") == f"{index}+1":
            yield code.finding(ID, f"`{ends}` was stored after each step; the end is read one step too late.", node)
            return


def _stored_before_step(body: ast.AST, ends: str) -> bool | None:
    for loop in ast.walk(body):
        if not isinstance(loop, ast.For | ast.While):
            continue
        steps = [n for n in ast.walk(loop) if isinstance(n, ast.Call) and callee(n) == "step" and n.args]
        stores = [n for n in ast.walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and _array(n) == ends]
        inner = [n for n in ast.walk(loop) if isinstance(n, ast.For | ast.While) and n is not loop]
        if steps and stores and not any(m is steps[0] for n in inner for m in ast.walk(n)):
            return stores[0].lineno < steps[0].lineno
    return None

"""The agent keeps acting on the first observation.

What it sees
------------
A loop of environment steps in which the observation given to the policy is never set to the new one.

Why it matters
--------------
Every action is chosen for the state that the episode began in, and every stored transition starts there.

How it decides
--------------
The result of `env.step(...)` is unpacked into a name that is not the one the policy is given, and nothing in the
loop sets that one.

When it is wrong
----------------
If the policy reads the state elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "observation-not-advanced"
CAUSE: str | None = "target-misaligned"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    program = code.program
    if "reset" not in program.calls:
        return
    for call in program.calls.get("step", []):
        up = program.parent(call)
        if (
            not isinstance(up, ast.Assign)
            or not isinstance(up.targets[0], ast.Tuple)
            or len(up.targets[0].elts) not in (3, 4, 5)
        ):
            continue
        loop = _loop(code, call)
        if loop is None or not call.args:
            continue
        inside = [n for n in ast.walk(loop) if isinstance(n, ast.Name)]
        begun = {n for r in program.calls.get("reset", []) for n in _bound(code, r) if r not in set(ast.walk(loop))}
        stored = {n.id for n in inside if isinstance(n.ctx, ast.Store) and _advances(code, n)}
        used = {
            n.id
            for c in ast.walk(loop)
            if isinstance(c, ast.Call)
            for a in c.args
            for n in ast.walk(a)
            if isinstance(n, ast.Name)
        }
        for name in sorted((begun & used) - stored):
            if _same_function(code, call, loop):
                text = (
                    f"`{name}` is set before the episode and never in it: every action is chosen for the first state."
                )
                again = [r for r in program.calls["reset"] if any(n is r for n in ast.walk(loop))]
                given = [
                    c
                    for c in ast.walk(loop)
                    if isinstance(c, ast.Call) and any(isinstance(a, ast.Name) and a.id == name for a in c.args)
                ]
                yield code.finding(ID, text, call, loop, *again[:1], *given[-1:])
                return


def _advances(code: Code, name: ast.Name) -> bool:
    """Whether this sets a name to something new: not to itself, and not to the first state of the next episode."""
    up = code.program.parent(name)
    place = up.elts.index(name) if isinstance(up, ast.Tuple) else None
    up = code.program.parent(up) if isinstance(up, ast.Tuple) else up
    if not isinstance(up, ast.Assign):
        return True
    value = up.value
    if place is not None and isinstance(value, ast.Tuple) and len(value.elts) > place:
        value = value.elts[place]
    resets = [n for n in ast.walk(value) if isinstance(n, ast.Call) and getattr(n.func, "attr", "") == "reset"]
    if isinstance(value, ast.IfExp) and resets:
        value = value.orelse if any(n is resets[0] for n in ast.walk(value.body)) else value.body
        return not (isinstance(value, ast.Name) and value.id == name.id)
    return not resets and not (isinstance(value, ast.Name) and value.id == name.id)


def _loop(code: Code, call: ast.Call) -> ast.AST | None:
    up: ast.AST | None = call
    while up is not None and not isinstance(up, ast.While | ast.For):
        if isinstance(up, ast.FunctionDef | ast.Lambda):
            return None
        up = code.program.parent(up)
    return up


def _bound(code: Code, call: ast.Call) -> list[str]:
    """The first name that a reset gives its observation to."""
    up, value = code.program.parent(call), call
    if isinstance(up, ast.Subscript):
        up, value = code.program.parent(up), up  # type: ignore[assignment]
    if isinstance(up, ast.Tuple) and up.elts[:1] == [value] and isinstance(code.program.parent(up), ast.Assign):
        up, value = code.program.parent(up), up  # type: ignore[assignment]
    if not isinstance(up, ast.Assign) or up.value is not value:
        return []
    target = up.targets[0]
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    return [first.id] if isinstance(first, ast.Name) else []


def _same_function(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    return code.program.func_of.get(call) is code.program.func_of.get(loop)

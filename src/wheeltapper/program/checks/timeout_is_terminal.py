"""Running out of time is reported as an end of the task.

What it sees
------------
A step() of an environment whose `terminated` is true when a counter of steps reaches its limit.

Why it matters
--------------
The value of the last state is taken for zero, although the task would go on: values are wrong near every limit, and
the time is not observed.

How it decides
--------------
`terminated`, the third of five results, holds a comparison of a field that the step counts up by one. `truncated` is
the place for it.

When it is wrong
----------------
If the limit is part of the task and the time is observed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import Class, Func
from wheeltapper.program.reading import Code

ID = "timeout-is-terminal"
CAUSE: str | None = "eval-broken"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for cls in code.program.classes.values():
        step = cls.methods.get("step")
        if step is None or "reset" not in cls.methods:
            continue
        counted = [n for n in ast.walk(step.node) if isinstance(n, ast.AugAssign) and isinstance(n.value, ast.Constant) and n.value.value == 1]
        counters = {name for n in counted if (name := _field(n.target)) is not None}
        for returned in ast.walk(step.node):
            if isinstance(returned, ast.Return) and isinstance(returned.value, ast.Tuple) and len(returned.value.elts) == 5:
                found = _compares(step, returned.value.elts[2], counters)
                if found is not None and not _is_observed(cls, counters):
                    yield code.finding(ID, "terminated is true when the time is up: the value of the last state is taken for zero.", found, returned)
                    return


def _compares(step: Func, node: ast.expr, counters: set[str], depth: int = 0) -> ast.AST | None:
    """A comparison of a counter in an expression, or in what its names were set to."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Compare) and _field(inner.left) in counters and isinstance(inner.ops[0], ast.Gt | ast.GtE | ast.Eq):
            return inner
        if isinstance(inner, ast.Name) and depth < 3:
            for one in ast.walk(step.node):
                if isinstance(one, ast.Assign) and any(isinstance(t, ast.Name) and t.id == inner.id for t in one.targets):
                    found = _compares(step, one.value, counters, depth + 1)
                    if found is not None:
                        return found
    return None


def _is_observed(cls: Class, counters: set[str]) -> bool:
    return any(
        _field(n) in counters for m in cls.methods.values() if "obs" in m.name or "state" in m.name for n in ast.walk(m.node) if isinstance(n, ast.Attribute)
    )


def _field(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" else None

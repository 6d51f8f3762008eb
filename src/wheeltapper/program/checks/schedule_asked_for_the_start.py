"""A schedule is asked for the same step in every turn.

What it sees
------------
`group["lr"] = lr_at(0)` inside of the training loop.

Why it matters
--------------
The rate (or whatever is scheduled) stays what it is at that step, often next to nothing.

How it decides
--------------
Inside of a loop a function of the program that depends on its parameter is called with a constant, and the result is
set as a learning rate, or as a weight of the averages.

When it is wrong
----------------
If the rate is to be set back to its start.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "schedule-asked-for-the-start"
CAUSE: str | None = "schedule-never-advances"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for node in code.program.live_by_type.get(ast.Assign, []):
        assert isinstance(node, ast.Assign)
        target, value = node.targets[0], node.value
        rate = isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value == "lr"
        if not rate or not isinstance(value, ast.Call) or not value.args or not all(isinstance(a, ast.Constant) for a in value.args):
            continue
        funcs, _ = code.program.targets(value)
        if len(funcs) == 1 and _depends(funcs[0].node, funcs[0].params[:1]) and _in_a_loop(code, node):
            yield code.finding(ID, "The schedule is asked for the same step in every turn: the rate never changes.", node)
            return


def _depends(func: ast.AST, params: list[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in params and isinstance(n.ctx, ast.Load) for n in ast.walk(func))


def _in_a_loop(code: Code, node: ast.AST) -> bool:
    """Inside of a loop of steps, not only of one over the groups."""
    loops = 0
    up = code.program.parent(node)
    while up is not None and not isinstance(up, ast.FunctionDef | ast.Lambda):
        groups = isinstance(up, ast.For) and "param_groups" in ast.unparse(up.iter)
        loops += isinstance(up, ast.For | ast.While) and not groups
        up = code.program.parent(up)
    return loops > 0

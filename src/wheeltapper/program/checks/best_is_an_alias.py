"""The best weights are kept by reference.

What it sees
------------
`best = model.state_dict()` when the score is the best so far, and `model.load_state_dict(best)` at the end, with no copy
in between.

Why it matters
--------------
`state_dict()` hands out the live tensors: by the end of training the "best" weights are the last ones.

How it decides
--------------
The state is given a name under a condition inside the training loop, without deepcopy or clone, and that name is
loaded or saved outside of the condition.

When it is wrong
----------------
If training stops at that very step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.program import callee, dotted_name
from wheeltapper.program.reading import Code

ID = "best-is-an-alias"
CAUSE: str | None = "stale-shared-state"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for node in nodes_of(code.program, ast.Assign):
        assert isinstance(node, ast.Assign)
        if not _is_state(node.value):
            continue
        guard, loop = _around(code, node)
        name = dotted_name(node.targets[0])
        if guard is None or loop is None or not name:
            continue
        for call in (*code.program.calls.get("load_state_dict", []), *code.program.calls.get("save", [])):
            within = any(n is call for n in ast.walk(guard))
            if not within and call.args and dotted_name(call.args[0]) == name and _same_scope(code, call, node):
                text = f"`{name}` is the live state of the network, not a copy: it goes on changing until it is used."
                yield code.finding(ID, text, node, call)
                return


def _is_state(value: ast.expr) -> bool:
    """`model.state_dict()` itself, or a dictionary of its very tensors."""
    if isinstance(value, ast.DictComp):
        kept = isinstance(value.value, ast.Name) or (
            isinstance(value.value, ast.Call) and callee(value.value) in ("detach", "cpu") and not value.value.args
        )
        alias = isinstance(value.value, ast.Name) or (isinstance(value.value, ast.Call) and callee(value.value) == "detach")
        return kept and alias and "state_dict" in ast.unparse(value.generators[0].iter)
    return isinstance(value, ast.Call) and callee(value) == "state_dict" and not value.args


def _around(code: Code, node: ast.AST) -> tuple[ast.If | None, ast.AST | None]:
    guard: ast.If | None = None
    up = code.program.parent(node)
    while up is not None and not isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(up, ast.If) and guard is None:
            guard = up
        if isinstance(up, ast.For | ast.While):
            return guard, up
        up = code.program.parent(up)
    return guard, None


def _same_scope(code: Code, a: ast.AST, b: ast.AST) -> bool:
    one, other = code.program.func_of.get(a), code.program.func_of.get(b)
    return one is other or (one is not None and other is not None and one.owner is not None and one.owner == other.owner)

"""The weights that are kept are the ones that go on changing.

What it sees
------------
`raw = {k: p.detach() for ...}` or `best = model.state_dict()` without a copy, put back later.

Why it matters
--------------
Training and loading write into the tensors in place: what is put back is what is there already, the last weights and
not the best or the raw ones.

How it decides
--------------
A name is set to the weights of a network (its state_dict, a comprehension over its parameters, a property that gives
its arrays) without clone, copy or deepcopy, and is given back to the same network later, after its weights were
written to.

When it is wrong
----------------
If what is kept is moved to another device, which copies; `.cpu()` counts as a copy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import Func, callee, dotted_name
from wheeltapper.program.reading import Code

COPIES = {"clone", "deepcopy", "copy", "cpu", "numpy", "save", "tolist", "array", "to", "tensor", "asarray", "tree_map"}
GIVES = {"state_dict", "parameters", "named_parameters"}

ID = "kept-by-reference"
CAUSE: str | None = None
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for node in code.program.live_by_type.get(ast.Assign, []):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if not isinstance(target, ast.Name) or any(isinstance(n, ast.Call) and callee(n) in COPIES for n in ast.walk(node.value)):
            continue
        owner = _owner(code, node.value)
        back = _given_back(code, node, target.id, owner) if owner else None
        if owner and back is not None and _changes_between(code, node, back, owner):
            text = f"`{target.id}` holds the weights of {owner} themselves, not a copy: they change with it."
            yield code.finding(ID, text, node, back)
            return


def _owner(code: Code, value: ast.expr) -> str | None:
    """Whose weights an expression gives: `model.state_dict()`, `{k: p for k, p in model.named_parameters()}`, `net.params`."""
    if isinstance(value, ast.Attribute):
        arrays = [m for c in code.program.classes.values() for m in c.methods.values() if m.name == value.attr and _gives_arrays(m)]
        return dotted_name(value.value) if arrays else None
    calls = [n for n in ast.walk(value) if isinstance(n, ast.Call) and callee(n) in GIVES]
    plain = isinstance(value, ast.Call | ast.DictComp | ast.ListComp)
    if len(calls) != 1 or not plain or not isinstance(calls[0].func, ast.Attribute):
        return None
    if isinstance(value, ast.Call) and value is not calls[0]:
        return None
    return dotted_name(calls[0].func.value) or None


def _gives_arrays(method: Func) -> bool:
    """A property that returns a list of the object's own arrays."""
    if not any(getattr(d, "id", "") == "property" for d in getattr(method.node, "decorator_list", [])):
        return False
    lists = [n.value for n in ast.walk(method.node) if isinstance(n, ast.Return) and isinstance(n.value, ast.List)]
    return bool(lists) and all(isinstance(e, ast.Attribute) for e in lists[0].elts)


def _given_back(code: Code, node: ast.Assign, name: str, owner: str) -> ast.AST | None:
    func = code.program.func_of.get(node)
    for call in code.program.calls.get("load_state_dict", []):
        own = isinstance(call.func, ast.Attribute) and dotted_name(call.func.value) == owner
        given = any(isinstance(a, ast.Name) and a.id == name for a in call.args)
        if own and given and code.program.func_of.get(call) is func and call.lineno > node.lineno:
            return call
    for loop in code.program.live_by_type.get(ast.For, []):
        assert isinstance(loop, ast.For)
        read = {ast.unparse(n) for n in ast.walk(loop.iter)}
        writes = any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for s in loop.body for n in ast.walk(s))
        if code.program.func_of.get(loop) is func and name in read and ast.unparse(node.value) in read and writes and loop.lineno > node.lineno:
            return loop
    return None


def _changes_between(code: Code, node: ast.Assign, back: ast.AST, owner: str) -> bool:
    """Kept inside a loop that trains, or other weights are loaded before these are put back."""
    up = code.program.parent(node)
    guarded = False
    while up is not None and not isinstance(up, ast.FunctionDef):
        guarded = guarded or isinstance(up, ast.If)
        if isinstance(up, ast.For | ast.While) and guarded and not any(n is back for n in ast.walk(up)):
            return True
        up = code.program.parent(up)
    loads = [c for c in code.program.calls.get("load_state_dict", []) if c is not back and isinstance(c.func, ast.Attribute)]
    return any(dotted_name(c.func.value) == owner and node.lineno < c.lineno < back.lineno for c in loads)  # type: ignore[attr-defined]

"""Values that are computed and that nothing reads afterwards, with the places where what was made beside them is read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from wheeltapper.program.program import Func, callee
from wheeltapper.program.reading import Code

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
LOOKS_UP_NAMES = {"locals", "vars", "globals", "exec", "eval"}
DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
# Calls that are made for what they do, not for what they return.
ACTS = {
    "backward", "step", "append", "extend", "print", "save", "write", "add", "update", "fit", "train", "run", "log", "seed", "manual_seed",
    "zero_grad", "load_state_dict", "copy_", "add_", "mul_", "lerp_", "requires_grad_", "eval", "put", "push", "store", "next", "pop",
    "read", "readline", "get", "input", "open", "popleft", "setattr", "register", "watch", "init", "reset", "train_on_batch",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Dead:
    """One name that is set and not read again."""

    name: str
    node: ast.Assign
    value: ast.expr  # what it is set to; of `a, b = f()` the whole of f()
    whole: bool  # the value is its own, not one of several that a call returned
    marked: bool  # others of the same assignment are marked as unused with an underscore
    beside: tuple[ast.Name, ...]  # where the names that were set together with it are read
    scope: Scope


def dead_values(code: Code) -> Iterator[Dead]:
    """Of the functions that were played, and of the entry itself."""
    for scope in _scopes(code):
        nodes = list(ast.walk(scope))
        read = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store)}
        shared = {name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
        if any(_looks_up(n) for n in nodes):
            continue
        for node in _own(scope):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            for name, value, whole in _set_by(node.targets[0], node.value):
                if name.startswith("_") or name in shared or (name in read and not _is_last(scope, name, node)):
                    continue
                yield Dead(name, node, value, whole, _marks(node), _beside(nodes, node, name), scope)


def _looks_up(node: ast.AST) -> bool:
    """`locals()`, `exec(text)`: names may be read without being written out."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in LOOKS_UP_NAMES:
        return False
    return node.func.id in ("exec", "eval") or not node.args


def _scopes(code: Code) -> Iterator[Scope]:
    if len(code.program.scripts) == 1:
        yield code.program.entry.tree
    for funcs in code.program.functions.values():
        for func in funcs:
            if func.scope in code.story.player.entered and not isinstance(func.node, ast.Lambda):
                yield func.node


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of the functions in it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, DEFINES):
            yield child
            yield from _own(child)


def _set_by(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr, bool]]:
    if isinstance(target, ast.Name):
        yield target.id, value, True
    elif isinstance(target, ast.Tuple):
        several = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        for place, part in enumerate(target.elts):
            for name, one, whole in _set_by(part, several[place] if several else value):
                yield name, one, whole and several is not None


def _is_last(scope: Scope, name: str, node: ast.Assign) -> bool:
    """Whether a name that is read earlier is not read after this: it is set anew in straight code, and then forgotten."""
    end = (node.end_lineno or 0, node.end_col_offset or 0)
    inner = {id(n) for n in ast.walk(node)}
    within = [n for n in _own(scope) if isinstance(n, ast.For | ast.While) and any(m is node for m in ast.walk(n))]
    for one in ast.walk(scope):
        if not isinstance(one, ast.Name) or one.id != name or id(one) in inner:
            continue
        later = (one.lineno, one.col_offset) > end
        again = any(any(m is one for m in ast.walk(loop)) for loop in within)
        if (later or again) and not isinstance(one.ctx, ast.Store):
            return False
        if isinstance(one.ctx, ast.Store) and later:
            return False  # set again: another branch, or a loop
    return not isinstance(scope, ast.Module) and not _in_closure(scope, name)


def _in_closure(scope: Scope, name: str) -> bool:
    inner = [n for n in ast.walk(scope) if isinstance(n, DEFINES) and n is not scope]
    return any(isinstance(m, ast.Name) and m.id == name for n in inner for m in ast.walk(n))


def _marks(node: ast.Assign) -> bool:
    return any(isinstance(n, ast.Name) and n.id.startswith("_") for n in ast.walk(node.targets[0]))


def _beside(nodes: list[ast.AST], node: ast.Assign, name: str) -> tuple[ast.Name, ...]:
    others = {n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)} - {name}
    if not others:  # what was set just before and after it
        near = [n for n in nodes if isinstance(n, ast.Assign) and n is not node and abs(n.lineno - node.lineno) == 1]
        others = {t.id for n in near for t in n.targets if isinstance(t, ast.Name)} - {name}
    after = node.end_lineno or 0
    return tuple(
        n for n in nodes if isinstance(n, ast.Name) and n.id in others and n.lineno > after and isinstance(n.ctx, ast.Load)
    )


def computes(code: Code, value: ast.expr) -> bool:
    """Whether an expression computes something, and does nothing else: arithmetic, a library's function, an own function without effects."""
    calls = [n for n in ast.walk(value) if isinstance(n, ast.Call)]
    if not calls and not any(isinstance(n, ast.BinOp | ast.Compare | ast.UnaryOp) for n in ast.walk(value)):
        return isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice | ast.Tuple)
    if not any(isinstance(n, ast.Name) for n in ast.walk(value)):
        return False
    return all(_is_pure(code, call) for call in calls)


def _is_pure(code: Code, call: ast.Call) -> bool:
    name = callee(call)
    if name in ACTS or not name:
        return False
    funcs, outside = code.program.targets(call)
    if funcs:
        return all(_has_no_effect(f) for f in funcs)
    if name[:1].isupper():
        return False  # something is made: a thread, a bar, a wrapper may be wanted for its own sake
    return outside


def _has_no_effect(func: Func) -> bool:
    if isinstance(func.node, ast.Lambda):
        return True
    for node in ast.walk(func.node):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            root = node
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value  # type: ignore[assignment]
            if isinstance(node, ast.Attribute) or (isinstance(root, ast.Name) and root.id in func.params):
                return False
        if isinstance(node, ast.Call) and callee(node) in ACTS:
            return False
    return True

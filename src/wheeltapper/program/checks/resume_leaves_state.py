"""A resume reads part of its checkpoint and leaves the rest.

What it sees
------------
A checkpoint saved with the state of optimizer or scheduler, the epoch reached and the best score so far, and a resume
that never reads one of them.

Why it matters
--------------
The resumed run starts its schedule, its count of epochs or its moments anew, or takes the first score for the best.

How it decides
--------------
The keys of the saved dictionary are compared with those that are read from what `torch.load` returns. It is a resume if
a state of training or a counter is among those read. Only states (`x.state_dict()`), the variables of loops and the
values that a score is compared with count; a loss kept for the record does not.

When it is wrong
----------------
If that part is made anew on purpose. It matters only to a run that is resumed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.program import callee, constant_text, dotted_name
from wheeltapper.program.reading import Code

ID = "resume-leaves-state"
CAUSE: str | None = "resume-lost-optimizer"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework:
        return
    saved = _saved(code)
    for load, reads in _loads(code):
        if not any(saved.get(key, (None, ""))[1] for key in reads):
            continue  # weights for a test, not a resume
        missing = [(key, node, what) for key, (node, what) in saved.items() if what and key not in reads]
        for key, node, what in missing:
            text = f'The checkpoint holds {what} under "{key}" and the resume never reads it.'
            yield code.finding(ID, text, *list(reads.values())[-1:], load, node, severity="watch", grade="suspected")
            return


def _loads(code: Code) -> Iterator[tuple[ast.Call, dict[str, ast.AST]]]:
    """Every `x = torch.load(...)` that is read by key only, with the keys."""
    for call in code.program.calls.get("load", []):
        up = code.program.parent(call)
        if code.program.origin(call.func) != "torch.load" or not isinstance(up, ast.Assign):
            continue
        target = up.targets[0]
        if not isinstance(target, ast.Name):
            continue
        reads: dict[str, ast.AST] = {}
        whole = False
        func = code.program.func_of.get(call)
        for node in ast.walk(func.node if func is not None else code.program.script_of[call].tree):
            if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load):
                key = _key_read(code, node)
                whole = whole or key is None
                if key is not None:
                    reads[key] = node
        if reads and not whole:
            yield call, reads


def _key_read(code: Code, node: ast.Name) -> str | None:
    up = code.program.parent(node)
    if isinstance(up, ast.Subscript):
        return constant_text(up.slice)
    if isinstance(up, ast.Compare) and isinstance(up.left, ast.Constant):
        return str(up.left.value)  # "scaler" in state
    if isinstance(up, ast.Attribute) and up.attr in ("get", "pop"):
        call = code.program.parent(up)
        return constant_text(call.args[0]) if isinstance(call, ast.Call) and call.args else None
    return None


def _saved(code: Code) -> dict[str, tuple[ast.AST, str]]:
    """The keys of saved dictionaries: key -> (place, what it holds, "" where that need not be restored)."""
    out: dict[str, tuple[ast.AST, str]] = {}
    for node in nodes_of(code.program, ast.Dict):
        assert isinstance(node, ast.Dict)
        pairs = [(text, v) for k, v in zip(node.keys, node.values, strict=True) if k is not None and (text := constant_text(k))]
        if not any(_is_state(v) for _, v in pairs):
            continue
        for key, value in pairs:
            out.setdefault(key, (value, _what(code, value)))
    return out


def _is_state(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and callee(value) == "state_dict"


def _what(code: Code, value: ast.expr) -> str:
    if _is_state(value):
        owner = dotted_name(value.func.value).split(".")[-1] if isinstance(value.func, ast.Attribute) else ""  # type: ignore[attr-defined]
        kinds = {p.kind for p in code.parts if owner in p.names} & {"optimizer", "scheduler", "scaler"}
        return f"the state of the {kinds.pop()}" if len(kinds) == 1 else ""
    names = [n.id for n in ast.walk(value) if isinstance(n, ast.Name)]
    if len(names) != 1 or not isinstance(value, ast.Name | ast.BinOp):
        return ""
    func = code.program.func_of.get(value)
    body = func.node if func is not None else code.program.script_of[value].tree
    for node in ast.walk(body):
        counted = isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == names[0]
        if counted and any(n is value for n in ast.walk(node)):
            return "where the run has come to"
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and _sets(node, names[0]):
            return "the best score so far"
    return ""


def _sets(branch: ast.If, name: str) -> bool:
    """`if score > best: best = score`."""
    compared = any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(branch.test.comparators[-1]))  # type: ignore[attr-defined]
    return compared and any(
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id == name for s in branch.body for n in ast.walk(s)
    )

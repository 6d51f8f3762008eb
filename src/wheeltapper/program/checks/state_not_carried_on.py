"""New state is computed and thrown away.

What it sees
------------
In jax: the new state of an optimizer or of batch norm that is not kept; a random key that is used in a loop and never
replaced.

Why it matters
--------------
The count of steps stays at zero and the moments are always the first; running statistics stay at their start; every
step draws the same numbers.

How it decides
--------------
Everything is a value in jax, so what is not bound is lost: the second result of `update()` under a name that nobody
reads, the auxiliary result of a loss that was applied with `mutable`, a key that a loop splits or draws from without
binding its name again.

When it is wrong
----------------
If the state is read from elsewhere, such as a train state that updates itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import callee, dotted_name
from wheeltapper.program.reading import Code

ID = "state-not-carried-on"
CAUSE: str | None = "option-not-wired"
DECIDES = True

DRAWS = {"split", "normal", "uniform", "bernoulli", "categorical", "permutation", "randint", "choice", "gumbel", "truncated_normal"}


def check(code: Code) -> Iterator[Finding]:
    heads = {origin.split(".")[0] for table in code.program.imported.values() for origin in table.values()}
    if not heads & {"jax", "optax", "flax"}:
        return
    yield from [*_optimizer(code), *_statistics(code), *_keys(code)][:1]


def _optimizer(code: Code) -> Iterator[Finding]:
    """`updates, _ = opt.update(grads, state, params)`"""
    for call in code.program.calls.get("update", []):
        names = _bound(code, call)
        if len(call.args) >= 2 and names is not None and len(names) == 2 and _is_lost(code, call, names[1]):
            yield code.finding(ID, "The new state of the optimizer is thrown away: every step is its first.", call)


def _statistics(code: Code) -> Iterator[Finding]:
    """`(loss, _), grads = value_and_grad(f, has_aux=True)(...)` of an f that is applied with `mutable`."""
    mutable = [c for c in code.program.calls.get("apply", []) if any(k.arg == "mutable" for k in c.keywords)]
    for maker in code.program.calls.get("value_and_grad", []):
        up = code.program.parent(maker)
        aux = any(k.arg == "has_aux" for k in maker.keywords)
        if not mutable or not aux or not isinstance(up, ast.Call) or up.func is not maker:
            continue
        target = _target(code, up)
        if isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Tuple) and len(target.elts[0].elts) == 2:
            kept = target.elts[0].elts[1]
            if isinstance(kept, ast.Name) and _is_lost(code, up, kept.id):
                yield code.finding(ID, "The new running statistics are thrown away: evaluation uses those of the start.", up, mutable[0])


def _keys(code: Code) -> Iterator[Finding]:
    """A key made before a loop, used in it, and not bound again in it."""
    for name in DRAWS:
        for call in code.program.calls.get(name, []):
            if ".random." not in code.program.origin(call.func) + "." or not code.program.origin(call.func).startswith("jax") or not call.args:
                continue
            key = call.args[0]
            loop = _loop(code, call)
            if not isinstance(key, ast.Name) or loop is None or any(key.id in _stored(n) for n in ast.walk(loop)):
                continue
            if any(isinstance(n, ast.Call) and callee(n) == "fold_in" for n in ast.walk(loop)) or _over_a_few(loop):
                continue
            yield code.finding(ID, f"The key {key.id} is used in every turn of the loop and never replaced: every turn draws the same numbers.", call)


def _over_a_few(loop: ast.For | ast.While) -> bool:
    """A loop over what is written out: the parts of one record, not the steps of a training."""
    return isinstance(loop, ast.For) and isinstance(loop.iter, ast.Tuple | ast.List)


def _stored(node: ast.AST) -> set[str]:
    return {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()


def _loop(code: Code, node: ast.AST) -> ast.For | ast.While | None:
    """The loop around a call, in the same function."""
    up = code.program.parent(node)
    while up is not None and not isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        if isinstance(up, ast.For | ast.While):
            return up
        up = code.program.parent(up)
    return None


def _target(code: Code, call: ast.Call) -> ast.expr | None:
    up = code.program.parent(call)
    return up.targets[0] if isinstance(up, ast.Assign) and up.value is call else None


def _bound(code: Code, call: ast.Call) -> list[str] | None:
    target = _target(code, call)
    return [dotted_name(e) for e in target.elts] if isinstance(target, ast.Tuple) else None


def _is_lost(code: Code, call: ast.Call, name: str) -> bool:
    """Whether nothing in the function reads this name after the call."""
    func = code.program.func_of[call]
    where = func.node if func is not None else code.program.script_of[call].tree
    reads = [n for n in ast.walk(where) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id == name]
    return name == "_" or (not reads and "." not in name)

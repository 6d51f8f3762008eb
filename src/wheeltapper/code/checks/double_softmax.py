"""Softmax is applied before a loss that applies it again.

What it sees
------------
The output of a softmax given to `cross_entropy` (or of a sigmoid to `binary_cross_entropy_with_logits`).

Why it matters
--------------
The loss cannot fall below ln(1 + (C − 1)/e): 1.461 for 10 classes, 5.91 for 1000 (of ln C = 6.91). Training looks
stuck at that number while accuracy still creeps up.

How it decides
--------------
The loss's first argument is the softmax call itself or a variable whose only source in the function is one. A network
of the program whose `forward` returns a softmax and whose output goes straight into the loss counts too. A
log-softmax is harmless (applying it twice changes nothing) and is not reported.

When it is wrong
----------------
Never in the direct case; through a network, if `forward` returns the softmax only outside training.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.code.program import argument, callee, dotted_name
from wheeltapper.code.reading import Code
from wheeltapper.finding import Finding

ID = "double-softmax"
LOSSES = {"cross_entropy": ("softmax", "Softmax"), "binary_cross_entropy_with_logits": ("sigmoid", "Sigmoid")}
MODULES = {"CrossEntropyLoss": "cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits"}


def check(code: Code) -> Iterator[Finding]:
    for call, loss in _losses(code):
        given = argument(call, "input", 0)
        if given is None:
            continue
        source = _source(code, given, LOSSES[loss])
        if source is not None:
            yield code.finding(ID, f"{LOSSES[loss][0]} is applied before {loss}, which applies it again.", source, call)


def _losses(code: Code) -> Iterator[tuple[ast.Call, str]]:
    for loss in LOSSES:
        for call in code.program.calls.get(loss, []):
            yield call, loss
    for module, loss in MODULES.items():
        for made in code.program.calls.get(module, []):
            up = code.program.parent(made)
            if isinstance(up, ast.Call) and up.func is made:
                yield up, loss
            elif isinstance(up, ast.Assign) and len(up.targets) == 1:
                name = dotted_name(up.targets[0]).split(".")[-1]
                for call in code.program.calls.get(name, []):
                    rest = code.program.rest_of(call.func)
                    if rest is not None and all(v is made for v in code.program.writes.get(rest, [made])):
                        yield call, loss


def _source(code: Code, node: ast.expr, names: tuple[str, str], depth: int = 0) -> ast.AST | None:
    if isinstance(node, ast.Call):
        if callee(node) == names[0]:
            return node
        return _network_output(code, node, names)
    if isinstance(node, ast.Name) and depth < 3:
        rest = code.program.rest_of(node)
        values = code.program.writes.get(rest, []) if rest is not None and rest not in code.program.opaque else []
        if len(values) == 1:
            return _source(code, values[0], names, depth + 1)
    return None


def _network_output(code: Code, call: ast.Call, names: tuple[str, str]) -> ast.AST | None:
    """`model(x)` where the class of `model` returns a softmax from its only return."""
    owner = code.program.class_of(call.func)
    forward = code.program.method(owner, "forward") if owner else None
    if forward is None:
        return None
    returns = [n for n in ast.walk(forward.node) if isinstance(n, ast.Return)]
    if len(returns) != 1 or returns[0].value is None:
        return None
    value = returns[0].value
    if (
        isinstance(value, ast.Call)
        and callee(value) == names[0]
        and code.program.origin(value.func).startswith(("torch", "F.", "nn."))
    ):
        return value
    return None

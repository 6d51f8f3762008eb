"""The loss compares a preconditioned output with a target of the raw network.

What it sees
------------
A network wrapper whose `forward` returns the denoised image (x − σF, or c_skip·x + c_out·F), and a loss whose target is
(clean − c_skip·noisy) / c_out, which is what the raw network F should give.

Why it matters
--------------
The output is not the regressed quantity: the network has to learn a target that grows as 1/σ, and samples drawn from it
are wrong even where the loss is low.

How it decides
--------------
Both forms are found in one program by their shape: a division by `c_out` in the target of a mean-square loss, and a
forward that returns a combination with the network's output. Suspected: which wrapper is built may be decided at run
time.

When it is wrong
----------------
If the loss calls the raw network inside the wrapper.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.code.conditions import nodes_of
from wheeltapper.code.program import argument, callee
from wheeltapper.code.reading import Code
from wheeltapper.finding import Finding

ID = "objective-preconditioner-mismatch"
PRECONDITIONER = re.compile(r"precond|edm_wrapper|EDMWrapper|VPPrecond|VEPrecond|EDMPrecond", re.I)


def check(code: Code) -> Iterator[Finding]:
    targets = [n for n in nodes_of(code.program, ast.BinOp) if _raw_target(n)]
    wrappers = [c for name, calls in code.program.calls.items() if PRECONDITIONER.search(name) for c in calls] + [
        m.node for cls in code.program.classes.values() if (m := cls.methods.get("forward")) and _denoises(m.node)
    ]
    losses = [c for name in ("mse_loss", "MSELoss") for c in code.program.calls.get(name, [])]
    if targets and wrappers and losses and not _calls_raw(code):
        yield code.finding(
            ID,
            "The loss target is (clean − c_skip·noisy) / c_out, which the raw network should give, and the model called is a "
            "preconditioned wrapper that already returns the denoised image.",
            targets[0],
            wrappers[0],
            grade="suspected",
        )


def _raw_target(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and "c_out" in ast.unparse(node.right)
        and isinstance(node.left, ast.BinOp)
        and isinstance(node.left.op, ast.Sub)
        and "c_skip" in ast.unparse(node.left)
    )


def _denoises(node: ast.AST) -> bool:
    """`return c_skip * x + c_out * F(...)`, or `x - sigma * F`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):
            text = ast.unparse(inner)
            if "c_skip" in text and "c_out" in text:
                return True
    return False


def _calls_raw(code: Code) -> bool:
    """`wrapper.model(c_in * x, c_noise)`: the raw network is called by the loss itself."""
    for call in code.program.all_calls():
        first = argument(call, "x", 0)
        if first is not None and "c_in" in ast.unparse(first) and callee(call) not in ("wrapper",):
            func = code.program.func_of[call]
            if func is None or not _denoises(func.node):
                return True
    return False

"""Gradients are summed over micro-batches, not averaged.

What it sees
------------
An optimizer step every n-th micro-batch, and a loss that is never divided by n.

Why it matters
--------------
The gradient is n times that of the mean over the whole batch. SGD takes steps n times too long and a clip
threshold bites n times earlier. Adam hardly notices (its step does not depend on the gradient's scale).

How it decides
--------------
The step lies under `% n` where n is an accumulation count, the backward pass does not, and nothing in the
program divides by n or multiplies by its inverse.

When it is wrong
----------------
If the loss is already a sum that is normalised elsewhere, or the learning rate was chosen for the sum: hence
only suspected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import accumulating, every, nodes_of
from wheeltapper.program.reading import Code

ID = "loss-not-divided"
CAUSE = "accumulation-not-divided"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework or code.made("engine") or "deepspeed" in str(code.program.imported):
        return
    for loop, count, step in accumulating(code):
        backward = next(e for e in code.loop.backwards if e.loops[-1] is loop)
        if every(backward, loop) is not None:
            continue
        if not _divides(code, count) and not _scales_gradients(code):
            yield code.finding(
                ID,
                f"The optimizer steps every {ast.unparse(count)} micro-batches and the loss is not divided by it: the gradient is "
                "a sum, not a mean.",
                backward.node,
                step.node,
                severity="watch",
                grade="suspected",
            )
            return


def _scales_gradients(code: Code) -> bool:
    """The sum is made a mean afterwards: by a function named for it, or on the gradients themselves."""
    if any("scale" in name and "grad" in name for name in code.program.calls):
        return True
    named = ("div_", "mul_", "_foreach_div_", "_foreach_mul_")
    if any("grad" in ast.unparse(c) for name in named for c in code.program.calls.get(name, [])):
        return True
    return any(isinstance(n, ast.AugAssign) and ast.unparse(n.target).endswith((".grad", ".grad.data")) for n in nodes_of(code.program, ast.AugAssign))


def _divides(code: Code, count: ast.expr) -> bool:
    wanted = set(code.values.factors(count)) | {ast.unparse(count)}
    for node in nodes_of(code.program, ast.BinOp, ast.AugAssign):
        assert isinstance(node, ast.BinOp | ast.AugAssign)
        right = node.right if isinstance(node, ast.BinOp) else node.value
        if isinstance(node.op, ast.Div) and (wanted & set(code.values.factors(right)) or ast.unparse(right) in wanted):
            return True
    return any(
        wanted & set(code.values.factors(a))
        for name in ("div", "div_", "true_divide")
        for c in code.program.calls.get(name, [])
        for a in c.args
    )

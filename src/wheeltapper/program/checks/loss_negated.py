"""The backward pass starts from minus the loss.

What it sees
------------
`(-loss).backward()`, or the same inside a division or a scaler, where the name says that it is a loss.

Why it matters
--------------
The optimizer then climbs: the loss grows from the first step on.

How it decides
--------------
The sign stands directly in front of something called a loss, in the call that runs the backward pass.

When it is wrong
----------------
Adversarial examples, gradient reversal and policy gradients maximise on purpose; so it is suspected, and the curve
decides.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import dotted_name
from wheeltapper.program.reading import Code

ID = "loss-negated"
CAUSE = "wrong-loss-sign"
DECIDES = False
LOSS = re.compile(r"loss|objective|criterion", re.IGNORECASE)


def check(code: Code) -> Iterator[Finding]:
    for event in code.loop.backwards:
        given = event.node.func.value if isinstance(event.node.func, ast.Attribute) else None
        inside = [given, *event.node.args]
        if isinstance(given, ast.Call):  # scaler.scale(-loss).backward()
            inside += given.args
        if any(_negated(node) for node in inside if node is not None):
            yield code.finding(
                ID, "The backward pass starts from minus the loss: the optimizer makes it grow.", event.node,
                grade="suspected", severity="watch",
            )  # fmt: skip
            return


def _negated(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult):
        return _negated(node.left)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return bool(LOSS.search(dotted_name(node.operand)))
    return False

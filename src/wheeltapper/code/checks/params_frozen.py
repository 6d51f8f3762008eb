"""Parameters are frozen by their name.

What it sees
------------
`requires_grad` set from a test of the parameter's name in the program that trains.

Why it matters
--------------
A freeze meant for fine-tuning and left on in training from scratch leaves most of the network at its random start.

How it decides
--------------
An assignment to `.requires_grad`, or `requires_grad_()`, whose value compares a name. Suspected only.

When it is wrong
----------------
Fine-tuning: then it is what was wanted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.code.conditions import nodes_of
from wheeltapper.code.reading import Code
from wheeltapper.finding import Finding

ID = "params-frozen"


def check(code: Code) -> Iterator[Finding]:
    for node in nodes_of(code.program, ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and _by_name(node.value):
            yield code.finding(
                ID, f"Only parameters with {ast.unparse(node.value)} are trained; all others are frozen.", node,
                grade="suspected", severity="watch",
            )  # fmt: skip
            return


def _by_name(value: ast.expr) -> bool:
    """`"last" in name` or `name.startswith("fc.")`."""
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    return any("name" in n.lower() or n in ("n", "k", "key") for n in names)

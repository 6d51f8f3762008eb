"""Parameters are frozen by their name.

What it sees
------------
`requires_grad` set from a test of the parameter's name in the program that trains.

Why it matters
--------------
A freeze meant for fine-tuning and left on in training from scratch leaves most of the network at its random start.

How it decides
--------------
An assignment to `.requires_grad` whose value tests a name, outside of functions that are there for freezing, in a program that
loads no pretrained network. Suspected only.

When it is wrong
----------------
Fine-tuning: then it is what was wanted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.params_not_in_optimizer import by_name, fine_tunes, from_scratch
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.reading import Code

ID = "params-frozen"
CAUSE = "frozen-parameters"
DECIDES = True
MEANT = re.compile(r"freez|lock|trainable|finetun|fine_tun|lora|adapter", re.I)


def check(code: Code) -> Iterator[Finding]:
    if fine_tunes(code):
        return
    for node in nodes_of(code.program, ast.Assign):
        assert isinstance(node, ast.Assign)
        target, func = node.targets[0], code.program.func_of[node]
        if func is not None and MEANT.search(func.name):
            continue
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and by_name(node.value):
            scratch = from_scratch(code)
            yield code.finding(
                ID, f"Only parameters with {ast.unparse(node.value)} are trained; all others are frozen.", node,
                grade="is" if scratch else "suspected", severity="ill" if scratch else "watch",
            )  # fmt: skip
            return

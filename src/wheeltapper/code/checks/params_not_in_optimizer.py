"""The optimizer is given a part of the network only.

What it sees
------------
An optimizer made from the parameters of submodules (`model.head.parameters()`), or from those whose name passes a test,
with nothing that hands over the rest.

Why it matters
--------------
The other parameters get gradients and never move. Training looks slow or stuck, and no error is raised.

How it decides
--------------
The first argument of the optimizer, followed to where it is written: every `.parameters()` in it is called on a member of
a network, or it is filtered by name. Suspected only.

When it is wrong
----------------
Fine-tuning of a head, adapters, a second optimizer for the rest: what is trained is then a matter of intent.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.code.objects import OPTIMIZERS, Part
from wheeltapper.code.program import callee, dotted_name
from wheeltapper.code.reading import Code
from wheeltapper.finding import Finding

ID = "params-not-in-optimizer"
PART = re.compile(
    r"(^|_)(head|fc|classifier|out\w*|last\w*|final\w*|proj\w*|norm|gate|decoder|linear)\d*$", re.IGNORECASE
)


def check(code: Code) -> Iterator[Finding]:
    made = [p for p in code.made("optimizer") if p.made_by in OPTIMIZERS and p.call.args]
    if len(made) != 1 or code.program.calls.get("add_param_group"):
        return
    given = _written(code, made[0])
    members = [dotted_name(c.func).split(".") for c in _calls(given) if callee(c) in ("parameters", "named_parameters")]
    parts = [names[-2] for names in members if len(names) >= 3 and PART.search(names[-2])]
    if members and len(parts) == len(members):
        which = ", ".join(dict.fromkeys(parts))
        yield code.finding(
            ID, f"The optimizer is given the parameters of {which} only: nothing else in the network is trained.",
            made[0].call, grade="suspected", severity="watch",
        )  # fmt: skip


def _written(code: Code, part: Part) -> ast.expr:
    """The expression that makes the argument: in the call, or in the assignment of the name that stands there."""
    given = part.call.args[0]
    if not isinstance(given, ast.Name):
        return given
    func = code.program.func_of[part.call]
    body = func.node if func is not None else code.program.entry.tree
    for node in ast.walk(body):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == given.id for t in node.targets):
            return node.value
    return given


def _calls(node: ast.expr) -> list[ast.Call]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Call)]

"""A network is given something it never looks at.

What it sees
------------
A parameter of `forward` (a time, a condition, a mask, lengths) or of a function of the loss that its body does not
read, while callers pass it.

Why it matters
--------------
The network is asked for something that depends on what it cannot see: the condition is averaged over; the mask
hides nothing.

How it decides
--------------
The name of the parameter is not read in the function, the function is short of no `locals()`, and the program
passes a value that is made of data.

When it is wrong
----------------
If the parameter is kept for the sake of an interface.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import Func
from wheeltapper.program.reading import Code

ID = "input-never-used"
CAUSE: str | None = "option-not-wired"
DECIDES = True


TELLING = re.compile(
    r"^(t|ts|time|timesteps?|sigmas?|mask|\w*_mask|lengths?|cond\w*|context|labels?|y|weights?|edge_index|edge_attr|adj|c|z)$"
)


def check(code: Code) -> Iterator[Finding]:
    entered = code.story.player.entered
    for funcs in code.program.functions.values():
        for func in funcs:
            if func.scope not in entered or not _is_played(func):
                continue
            for name in _unread(func):
                if _passed(code, func, name):
                    text = f"{func.name}() is given `{name}` and never looks at it."
                    yield code.finding(ID, text, func.node, grade="is" if func.name == "forward" else "suspected")
                    return


def _is_played(func: Func) -> bool:
    """A function with a body of its own, not an interface that others fill in."""
    if isinstance(func.node, ast.Lambda):
        return False
    spec = func.node.args
    simple = spec.vararg is None and spec.kwarg is None and not func.node.decorator_list
    return simple and len(func.node.body) > 1 - (func.name == "forward") and not func.name.startswith("__")


def _unread(func: Func) -> list[str]:
    read = {n.id for n in ast.walk(func.node) if isinstance(n, ast.Name)}
    if read & {"locals", "vars"}:
        return []
    names = [a.arg for a in (*func.node.args.posonlyargs, *func.node.args.args)]
    needed = len(names) - len(func.node.args.defaults)
    return [n for n in names[:needed] if n not in read and TELLING.match(n) and not n.startswith("_")]


def _passed(code: Code, func: Func, name: str) -> bool:
    """Whether what is computed in the loss goes through this function."""
    learns = func.name == "forward" and func.owner is not None
    made = [c for c in code.story.calls if func.name in c.inside and code.story.in_training(c)]
    return bool(made) and (learns or name.endswith("mask")) and not _always_none(code, func, name)


def _always_none(code: Code, func: Func, name: str) -> bool:
    """Whether every application leaves it out, or gives None."""
    place = func.params.index(name) + 1 if name in func.params else None
    given = [c.arg(name, place) for c in code.story.calls if c.op == "net" and c.name == func.owner]
    return bool(given) and all(g is None or (g.op == "const" and g.data is None) for g in given)

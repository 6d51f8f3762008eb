"""Layers are chosen by names that no layer has.

What it sees
------------
A set of names given to a function that wraps or freezes the layers whose name is in it, while no layer of the program
is called so.

Why it matters
--------------
Nothing is chosen: no adapter is put in, nothing is frozen, and only what else is trained learns.

How it decides
--------------
A function goes over `named_children`, `named_modules` or `named_parameters` and asks `name in names`; the names it is
given are written out, and none of them stands as a field in any class of the program whose networks are built here.

When it is wrong
----------------
If the network comes from a library; then nothing is said.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import Func
from wheeltapper.program.reading import Code

WALKS = {"named_children", "named_modules", "named_parameters"}

ID = "names-match-nothing"
CAUSE: str | None = "adapter-never-applied"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    fields = {n.attr for s in code.program.scripts for n in ast.walk(s.tree) if isinstance(n, ast.Attribute)}
    if code.calls_any("from_pretrained", "create_model", "get_model") or any("torchvision.models" in o for t in code.program.imported.values() for o in t.values()):
        return
    for funcs in code.program.functions.values():
        for func in funcs:
            for name in _asked(func):
                for call in code.program.calls.get(func.name, []):
                    given = _given(func, name, call)
                    names = [e.value for e in given.elts if isinstance(e, ast.Constant)] if isinstance(given, ast.Set | ast.List | ast.Tuple) else []
                    if names and all(isinstance(n, str) and n.split(".")[-1] not in fields for n in names):
                        text = f"No layer of the program is called {' or '.join(map(repr, names[:3]))}: nothing is chosen."
                        yield code.finding(ID, text, call)
                        return


def _asked(func: Func) -> list[str]:
    """Parameters of a function that names of modules are looked up in: `if name in names`."""
    if not any(isinstance(n, ast.Attribute) and n.attr in WALKS for n in ast.walk(func.node)):
        return []
    found = [n for n in ast.walk(func.node) if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.In) and isinstance(n.left, ast.Name)]
    return [n.comparators[0].id for n in found if isinstance(n.comparators[0], ast.Name) and n.comparators[0].id in func.params]


def _given(func: Func, name: str, call: ast.Call) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    place = func.params.index(name)
    return call.args[place] if place < len(call.args) else None

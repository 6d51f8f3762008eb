"""The program prints an effective batch that it does not train with.

What it sees
------------
A printed or logged product of the batch size and the accumulation count, in a program where accumulation is
not implemented.

Why it matters
--------------
The log then testifies to a batch that never existed, and every later reader believes it.

How it decides
--------------
accumulation-not-implemented holds, and a print or log call shows a product of the accumulation option.

When it is wrong
----------------
When accumulation-not-implemented is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.accumulation_not_implemented import dead_accumulation, step_every_time
from wheeltapper.program.reading import Code

ID = "prints-effective-batch-that-is-not"
CAUSE = None
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    dead = dead_accumulation(code)
    step = step_every_time(code)
    if not dead or step is None or code.values.option(dead[0].option.name) == 1:
        return
    names = {u.option.name for u in dead}
    prints = [
        node
        for u in dead
        for node in u.trace.shows
        if any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult) and _has(n, names) for n in ast.walk(node))
    ]
    if prints:
        yield code.finding(
            ID, "The effective batch that is logged counts an accumulation that is not done.", *prints, severity="watch"
        )


def _has(node: ast.AST, names: set[str]) -> bool:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and inner.attr in names:
            return True
        if isinstance(inner, ast.Constant) and inner.value in names:
            return True
        if isinstance(inner, ast.Name) and inner.id in names:
            return True
    return False

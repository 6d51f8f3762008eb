"""A setting is changed after it was read.

What it sees
------------
`args.lr /= 4` in the training loop, where everything that reads `args.lr` did so before the loop.

Why it matters
--------------
The optimizer has its own copy of the number: the learning rate stays as it was.

How it decides
--------------
The field of the options (or a plain name given to the optimizer) is set inside a loop that holds the backward pass,
and every place that reads it and does more than show it lies before that loop.

When it is wrong
----------------
If the value is read by code that is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.objects import OPTIMIZERS
from wheeltapper.program.program import callee, dotted_name
from wheeltapper.program.reading import Code

ID = "setting-changed-too-late"
CAUSE: str | None = "schedule-never-decays"
DECIDES = True

SHOWS = {"print", "info", "log", "format", "set_postfix", "add_scalar", "write", "append", "writerow", "round"}


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework:
        return
    for node in nodes_of(code.program, ast.AugAssign):
        assert isinstance(node, ast.AugAssign)
        name = dotted_name(node.target)
        if not name or not isinstance(node.op, ast.Mult | ast.Div) or not any(node in set(ast.walk(b.loops[0])) for b in code.loop.backwards):
            continue
        made = next((c for o in OPTIMIZERS for c in code.program.calls.get(o, []) if _reads(c, name)), None)
        nodes = [n for n in nodes_of(code.program, ast.Name, ast.Attribute) if isinstance(n, ast.Name | ast.Attribute)]
        reads = [n for n in nodes if isinstance(n.ctx, ast.Load) and dotted_name(n) == name]
        loop = code.loop.backwards[0].loops[0]
        inside = set(ast.walk(loop))
        late = [r for r in reads if r in inside and not _shown(code, r)]
        if made is not None and made not in inside and not late:
            yield code.finding(ID, f"`{name}` is changed here, and the optimizer read it once, before the loop.", node, made)
            return


def _reads(call: ast.Call, name: str) -> bool:
    return any(dotted_name(n) == name for k in call.keywords for n in ast.walk(k.value) if isinstance(n, ast.Name | ast.Attribute))


def _shown(code: Code, node: ast.AST) -> bool:
    up = code.program.parent(node)
    while up is not None and not isinstance(up, ast.stmt):
        if isinstance(up, ast.JoinedStr) or (isinstance(up, ast.Call) and callee(up) in SHOWS):
            return True
        up = code.program.parent(up)
    return False

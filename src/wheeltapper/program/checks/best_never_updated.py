"""The best score so far is compared with and never set.

What it sees
------------
A score that is compared with the best so far to keep a model, where the best keeps its first value.

Why it matters
--------------
Every later model that beats the first value is kept, the last one over the best.

How it decides
--------------
A name that starts as a number before the loop, is compared with a score under which a model is saved, and is not
written anywhere in the loop.

When it is wrong
----------------
A fixed threshold: names that do not speak of a best are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.program import callee, dotted_name
from wheeltapper.program.reading import Code

ID = "best-never-updated"
CAUSE: str | None = "early-stop-wrong-mode"
DECIDES = True

BEST = re.compile(r"(^|_)(best|lowest|highest|min|max|record)(_|$)|mejor|best", re.I)
KEEPS = {"save", "save_pretrained", "save_model", "save_checkpoint", "save_state", "deepcopy", "save_weights", "dump"}


def check(code: Code) -> Iterator[Finding]:
    for node in nodes_of(code.program, ast.If):
        assert isinstance(node, ast.If)
        test = node.test
        if not isinstance(test, ast.Compare) or len(test.comparators) != 1 or not isinstance(test.ops[0], ast.Lt | ast.Gt | ast.LtE | ast.GtE):
            continue
        names = [dotted_name(s) for s in (test.left, test.comparators[0]) if isinstance(s, ast.Name | ast.Attribute)]
        best = [n for n in names if BEST.search(n.split(".")[-1])]
        saves = any(isinstance(n, ast.Call) and callee(n) in KEEPS for s in node.body for n in ast.walk(s))
        loop = _loop(code, node)
        if len(best) == 1 and saves and loop is not None and not _is_written(code, loop, best[0]):
            yield code.finding(ID, f"{best[0]} is compared with and never set: every model that beats its first value is kept.", node, node.body[0])
            return


def _loop(code: Code, node: ast.AST) -> ast.AST | None:
    up = code.program.parent(node)
    while up is not None and not isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(up, ast.For | ast.While):
            return up
        up = code.program.parent(up)
    return None


def _is_written(code: Code, loop: ast.AST, name: str) -> bool:
    """Whether the name is stored somewhere but before the loop: in the loop, or (a field) in any method but the first."""
    where = loop if "." not in name else code.program.script_of[loop].tree
    stored = [n for n in ast.walk(where) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store) and dotted_name(n) == name]
    return len(stored) > (1 if "." in name else 0) or any(isinstance(n, ast.Global | ast.Nonlocal) for n in ast.walk(loop))

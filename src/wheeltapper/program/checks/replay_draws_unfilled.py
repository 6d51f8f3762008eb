"""The replay buffer draws from places that are not filled yet.

What it sees
------------
A buffer of fixed size, made of noughts, from which rows are drawn over its whole size.

Why it matters
--------------
Until the buffer is full most of what is learned from are rows of noughts.

How it decides
--------------
A class makes arrays of noughts with a size, keeps a position, and the upper bound of its random rows is that size
alone.

When it is wrong
----------------
If the buffer is filled before the first draw.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import Class, callee
from wheeltapper.program.reading import Code

DRAWS = {"randint", "integers", "choice", "sample", "randperm"}

ID = "replay-draws-unfilled"
CAUSE: str | None = None
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for cls in code.program.classes.values():
        sizes = _sizes(cls)
        if not sizes or not any(m.name in ("add", "push", "store", "append", "put", "insert", "remember", "add_batch") for m in cls.methods.values()):
            continue
        for node in ast.walk(cls.node):
            if isinstance(node, ast.Call) and callee(node) in DRAWS and _bounds(node) in sizes:
                yield code.finding(ID, "The rows are drawn over the whole size of the buffer, filled or not.", node)
                return


def _sizes(cls: Class) -> set[str]:
    """The fields that arrays of noughts are made with: `self.capacity`, where the constructor keeps its parameter under that name."""
    init = cls.methods.get("__init__")
    if init is None:
        return set()
    kept: dict[str, str] = {}
    for node in ast.walk(init.node):
        if isinstance(node, ast.Assign):
            for target, value in _pairs(node):
                if isinstance(target, ast.Attribute) and isinstance(value, ast.Name):
                    kept[value.id] = f"self.{target.attr}"
    out: set[str] = set()
    for node in ast.walk(init.node):
        if isinstance(node, ast.Call) and callee(node) in ("zeros", "empty") and node.args:
            first = node.args[0].elts[0] if isinstance(node.args[0], ast.Tuple) and node.args[0].elts else node.args[0]
            text = ast.unparse(first)
            out |= {kept[text]} if text in kept else {text} if text.startswith("self.") else set()
    return out


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _bounds(call: ast.Call) -> str:
    """The upper bound of random rows: the second of two numbers, else the first."""
    numbers = [a for a in call.args if not isinstance(a, ast.Tuple)]
    if callee(call) in ("randint", "integers") and len(numbers) > 1 and isinstance(numbers[0], ast.Constant):
        return ast.unparse(numbers[1])
    return ast.unparse(numbers[0]) if numbers else ""

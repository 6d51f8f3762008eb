"""A state that the code asks for is never set.

What it sees
------------
A field that the constructor sets to False, None or nought, that conditions or seeds depend on, and that nothing ever
sets to anything else.

Why it matters
--------------
The branch for the other state is dead: merged weights are merged again, each epoch draws the same numbers.

How it decides
--------------
The field is set once, in the constructor, to that constant, and not from a parameter; a method of the class tests it
with `if`, or computes a seed with it; no assignment to a field of that name stands anywhere in the program.

When it is wrong
----------------
If the field is a switch for people to edit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import Class, callee
from wheeltapper.program.reading import Code

SEEDS = {"manual_seed", "seed", "default_rng", "RandomState", "Random", "PRNGKey", "set_epoch"}

ID = "flag-never-set"
CAUSE: str | None = None
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    stores = _stores(code)
    entered = code.story.player.entered
    for cls in code.program.classes.values():
        init = cls.methods.get("__init__")
        if init is None or init.scope not in entered:
            continue
        for name, node, constant in _constants(init.node):
            if stores.get(name, 0) != 1 or name.startswith("_"):
                continue
            use = _seed_use(cls, name) if isinstance(constant, int) else None
            if constant is False and use is None:
                use = _state_use(cls, name)
            if use is not None:
                yield code.finding(ID, f"`self.{name}` starts as {constant} and nothing ever sets it: what depends on it never changes.", use, node)
                return


def _stores(code: Code) -> dict[str, int]:
    """How often a field of each name is set, in the whole program; by name with setattr counts for all."""
    out: dict[str, int] = {}
    for script in code.program.scripts:
        for node in ast.walk(script.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                out[node.attr] = out.get(node.attr, 0) + 1
            if isinstance(node, ast.Call) and callee(node) in ("setattr", "update"):
                for text in (n.value for a in node.args for n in ast.walk(a) if isinstance(n, ast.Constant)):
                    out[str(text)] = out.get(str(text), 0) + 1
            if isinstance(node, ast.keyword) and node.arg:
                out[node.arg] = out.get(node.arg, 0) + 1
    return out


def _constants(init: ast.AST) -> Iterator[tuple[str, ast.Assign, object]]:
    for node in ast.walk(init):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for one, what in pairs:
            if isinstance(one, ast.Attribute) and isinstance(what, ast.Constant) and (what.value is False or (type(what.value) is int and what.value == 0)):
                yield one.attr, node, what.value


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr == name and isinstance(n.ctx, ast.Load) for n in ast.walk(node))


def _seed_use(cls: Class, name: str) -> ast.AST | None:
    for method in cls.methods.values():
        for node in ast.walk(method.node):
            if isinstance(node, ast.Call) and callee(node) in SEEDS and any(_reads(a, name) for a in node.args):
                return node
    return None


def _state_use(cls: Class, name: str) -> ast.AST | None:
    """A method that asks `if not self.name:` before it does something that changes the object."""
    for method in cls.methods.values():
        for node in ast.walk(method.node):
            asks = isinstance(node, ast.If) and isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not) and _reads(node.test, name)
            if asks and any(isinstance(n, ast.AugAssign | ast.Assign) for s in node.body for n in ast.walk(s)):  # type: ignore[attr-defined]
                return node
    return None

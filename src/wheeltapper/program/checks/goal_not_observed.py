"""What the reward asks for is not in the observation.

What it sees
------------
A field of an environment that is drawn anew in every episode, decides the reward, and is not observed.

Why it matters
--------------
No policy can know what is wanted: it can learn an average at best.

How it decides
--------------
Fields that reset() draws at random and that step() (with the methods it calls) compares or computes with, against
those that the observation is made of. If some drawn fields are observed and a needed one is not, it is told. So is an
entry of the observation that is set to a constant at the end.

When it is wrong
----------------
A task of memory, where hiding is the point.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import Class, Func
from wheeltapper.program.reading import Code

ID = "goal-not-observed"
CAUSE: str | None = "dead-input-channels"
DECIDES = True

RANDOM = ("random", "rng", "sample", "choice", "uniform", "integers", "randint", "normal")


def check(code: Code) -> Iterator[Finding]:
    for cls in code.program.classes.values():
        if not {"reset", "step"} <= cls.methods.keys():
            continue
        watch = next((m for m in cls.methods.values() if "obs" in m.name.lower() and m.name not in ("observation_space",)), None)
        if watch is None:
            continue
        seen = _read(cls, watch)
        needed = _read(cls, cls.methods["step"], skip=watch.name)
        drawn = _drawn(cls)
        hidden = sorted((drawn & needed) - seen)
        if hidden and drawn & seen:
            yield code.finding(ID, f"{hidden[0]} is drawn anew in every episode, decides the reward, and is not observed.", watch.node, *watch.body[:3])
            return
        yield from _fixed(code, watch)


def _fixed(code: Code, watch: Func) -> Iterator[Finding]:
    """`obs[2] = 0.0` after the observation was filled."""
    filled = [n.targets[0].id for n in ast.walk(watch.node) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and isinstance(n.value, ast.Call) and _lists(n.value)]
    for node in ast.walk(watch.node):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript) and isinstance(node.value, ast.Constant):
            target = node.targets[0]
            if isinstance(target.value, ast.Name) and target.value.id in filled and isinstance(target.slice, ast.Constant):
                yield code.finding(ID, "An entry of the observation is overwritten with a constant.", node)
                return


def _lists(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.List | ast.Tuple) and len(call.args[0].elts) > 1


def _drawn(cls: Class) -> set[str]:
    """Fields that reset() sets from random numbers, directly or through a method that draws."""
    draws = {m.name for m in cls.methods.values() if any(word in ast.unparse(m.node) for word in RANDOM)}
    out = set()
    for node in ast.walk(cls.methods["reset"].node):
        if isinstance(node, ast.Assign):
            text = ast.unparse(node.value)
            if any(word in text for word in RANDOM) or any(f"self.{name}(" in text for name in draws - {"reset", "step"}):
                out |= {f for t in node.targets if (f := _field(t)) is not None}
    return out


def _read(cls: Class, method: Func, skip: str = "", depth: int = 0) -> set[str]:
    """The fields that a method reads, with those of the methods it calls."""
    out: set[str] = set()
    for node in ast.walk(method.node):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and (name := _field(node)) is not None:
            inner = cls.methods.get(name)
            if inner is None:
                out.add(name)
            elif name != skip and depth < 3 and inner is not method:
                out |= _read(cls, inner, skip, depth + 1)
    return out


def _field(node: ast.AST) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" else None

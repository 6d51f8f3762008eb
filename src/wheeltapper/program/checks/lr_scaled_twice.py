"""The learning rate is multiplied by the number of processes twice.

What it sees
------------
Two places that scale the learning rate by the world size, one fed by the other.

Why it matters
--------------
On 8 processes the rate is 64 times the base rate instead of 8 times. Such runs diverge at once or end their
warm-up in NaN.

How it decides
--------------
Both products have a factor named for the world size and another named for the learning rate, both write or read the
same name, and neither lies in a branch that excludes the other. Only the plain case is a fact: both in straight line.

When it is wrong
----------------
If one of the two factors is something else under that name: hence suspected where conditions stand between.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.program import Program, dotted_name
from wheeltapper.program.reading import Code

ID = "lr-scaled-twice"
CAUSE = "lr-scaled-by-world-size"
DECIDES = True
WORLD = re.compile(r"world_?size|n_?gpus?$|num_gpus|num_processes|device_count|hvd\.size|num_replicas|nproc", re.I)
WORLDS = re.compile(WORLD.pattern + r"|^world$", re.I)
RATE = re.compile(r"(^|_)(lr|learning_rate)$|^(base|max|scaled|init)_(lr|learning_rate)|^lr_", re.I)


def check(code: Code) -> Iterator[Finding]:
    sites = [site for node in nodes_of(code.program, ast.BinOp, ast.AugAssign) if (site := _site(code.program, node))]
    for node in nodes_of(code.program, ast.BinOp):
        assert isinstance(node, ast.BinOp)
        pair = (node.left, node.right.left) if isinstance(node.right, ast.BinOp) else (node.left, node.right)
        inner = [n for n in ast.walk(pair[0]) if isinstance(n, ast.Name) and WORLDS.search(n.id)]
        doubled = isinstance(node.op, ast.Mult) and isinstance(pair[1], ast.Name) and any(n.id == pair[1].id for n in inner)
        target = code.program.parent(node)
        while isinstance(target, ast.BinOp):
            target = code.program.parent(target)
        if doubled and isinstance(target, ast.Assign) and RATE.search(_name(target.targets[0])):
            yield code.finding(ID, "The learning rate is multiplied by the world size twice.", node)
            return
    for first, written, _ in sites:
        for second, _, read in sites:
            if first is second or written is None or written != read or _exclusive(code.program, first, second):
                continue
            straight = not _conditions(code.program, first) and not _conditions(code.program, second)
            yield code.finding(
                ID,
                f"{written} is multiplied by the world size, and then again.",
                second,
                first,
                grade="is" if straight else "suspected",
            )
            return


def _site(program: Program, node: ast.AST) -> tuple[ast.AST, str | None, str | None] | None:
    """(node, name the product is written to, name of the rate it reads)."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult):
        name = _name(node.target)
        return (node, name, name) if RATE.search(name) and WORLD.search(ast.unparse(node.value)) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for rate, world in ((node.left, node.right), (node.right, node.left)):
            name = _name(rate)
            if RATE.search(name) and WORLD.search(ast.unparse(world)) and not WORLD.search(name):
                up = program.parent(node)
                target = up.targets[0] if isinstance(up, ast.Assign) else None
                return node, _name(target) if target is not None else None, name
    return None


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return dotted_name(node).split(".")[-1] if isinstance(node, ast.Name | ast.Attribute) else ""


def _conditions(program: Program, node: ast.AST) -> dict[ast.AST, bool]:
    found: dict[ast.AST, bool] = {}
    up = program.parent(node)
    while up is not None:
        if isinstance(up, ast.If):
            found[up] = node in up.body
        node, up = up, program.parent(up)
    return found


def _exclusive(program: Program, a: ast.AST, b: ast.AST) -> bool:
    taken = _conditions(program, a)
    return any(taken.get(node, branch) != branch for node, branch in _conditions(program, b).items())

"""Returns are summed in the wrong direction.

What it sees
------------
`running = r + gamma * running` in a loop from the first reward to the last, or from the last to the first with the
results left in that order.

Why it matters
--------------
What an action earns is what comes after it. Summed from the front it is what came before: the first actions get the
least credit.

How it decides
--------------
A name is set to something plus a known factor times itself in a loop that does not run backwards, over rewards; or
in one that does, and the sums are appended and never turned round.

When it is wrong
----------------
If the list of rewards was turned round before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "discount-runs-forward"
CAUSE: str | None = None
DECIDES = True


DISCOUNT = re.compile(r"gamma|discount|lam(bda)?$|^g$", re.I)
REWARD = re.compile(r"reward|^rews?$|^deltas?$|^td_", re.I)
TURNS = re.compile(r"revers|flip|\[::-1\]|insert\(0|appendleft|- *1 *- *|, *-1 *, *-1")


def check(code: Code) -> Iterator[Finding]:
    for script in code.program.scripts:
        for loop in [n for n in script.parents if isinstance(n, ast.For)]:
            total = _running(loop)
            if any(_running(n) is total for n in ast.walk(loop) if isinstance(n, ast.For) and n is not loop):
                continue  # of a loop inside this one
            if total is None or not _over_rewards(loop):
                continue
            backwards = bool(TURNS.search(ast.unparse(loop.iter)))
            around = ast.unparse(_function(code, loop))
            if not backwards and not TURNS.search(around.replace("insert(0", "")):
                text = "The discounted sum runs from the first reward to the last: each step gets what came before it."
                yield code.finding(ID, text, loop, total)
                return
            if backwards and _appended(loop) is not None and not _turned_after(around, loop):
                text = "The returns are computed from the last step to the first and left in that order: they belong to other steps."
                yield code.finding(ID, text, _appended(loop) or loop, loop)
                return


def _running(loop: ast.For) -> ast.stmt | None:
    """`running = r + gamma * running`"""
    for node in ast.walk(loop):
        if (
            not isinstance(node, ast.Assign)
            or not isinstance(node.targets[0], ast.Name)
            or not isinstance(node.value, ast.BinOp)
        ):
            continue
        name = node.targets[0].id
        for part in ast.walk(node.value):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
                names = [
                    n.id if isinstance(n, ast.Name) else n.attr
                    for n in ast.walk(part)
                    if isinstance(n, ast.Name | ast.Attribute)
                ]
                if (
                    name in names
                    and any(DISCOUNT.search(n) for n in names if n != name)
                    and isinstance(node.value.op, ast.Add)
                ):
                    return node
    return None


def _over_rewards(loop: ast.For) -> bool:
    names = {
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(loop) if isinstance(n, ast.Name | ast.Attribute)
    }
    return any(REWARD.search(n) for n in names)


def _function(code: Code, node: ast.AST) -> ast.AST:
    func = code.program.func_of.get(node)
    return func.node if func is not None else code.program.script_of[node].tree


def _appended(loop: ast.For) -> ast.Call | None:
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            return node
    return None


def _turned_after(around: str, loop: ast.For) -> bool:
    """Whether anything else in the function turns a list round."""
    return len(TURNS.findall(around)) > len(TURNS.findall(ast.unparse(loop.iter)))

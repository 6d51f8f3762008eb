"""The best score so far is logged in place of the present one.

What it sees
------------
A running best (`best = max(best, score)`) that is printed or logged under the score's own name, while the score itself is
never shown.

Why it matters
--------------
The curve can only improve. Over-fitting, divergence and a broken end do not show in it.

How it decides
--------------
A name is set to the smaller or larger of itself and something new, in a loop that trains, and is given to a call that
logs; nothing that it is compared with is given to such a call, and no text around it says "best".

When it is wrong
----------------
If the score itself is logged where the walk does not come.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.program import callee, dotted_name
from wheeltapper.program.reading import Code

ID = "best-so-far-kept-in-log"
CAUSE: str | None = "best-so-far-logged"
DECIDES = True

LOGS = re.compile(
    r"^(print|info|debug|warning|write|writerow|add_scalars?|track|report|scalar)$|(^|_)log(_|$|ger|ged)|metrics?$|^log",
    re.I,
)
EXTREMES = {"min", "max", "minimum", "maximum", "fmin", "fmax", "nanmin", "nanmax"}
RATE = re.compile(r"param_group|(^|_|\W)lr\b|eps|tau", re.I)  # a bound on a setting, no score
SAYS = re.compile(r"best|max|min|peak|record", re.I)


def check(code: Code) -> Iterator[Finding]:
    for node in nodes_of(code.program, ast.Assign):
        assert isinstance(node, ast.Assign)
        name = dotted_name(node.targets[0]) if len(node.targets) == 1 else ""
        if (
            not name
            or RATE.search(ast.unparse(node.targets[0]))
            or not _keeps_the_best(node.value, name)
            or not _in_a_loop(code, node)
        ):
            continue
        new = {n for n in _names(node.value) if n.split(".")[0] != name.split(".")[0]} - EXTREMES
        home = code.program.func_of.get(node) if isinstance(code.program.func_of, dict) else None
        shown = [c for c in _logging(code) if code.program.func_of[c] is home or home is None]
        mine = [c for c in shown if name in _given(c)]
        if mine and not any(_given(c) & new for c in shown) and not any(_says_best(c) for c in mine):
            text = f"{name}, the best so far, is logged, and the present score never is: the curve can only improve."
            yield code.finding(ID, text, node, mine[0])
            return


def _keeps_the_best(value: ast.expr, name: str) -> bool:
    for call in ast.walk(value):
        if isinstance(call, ast.Call):
            functions = {
                dotted_name(n).split(".")[-1] for n in ast.walk(call.func) if isinstance(n, ast.Name | ast.Attribute)
            }
            if functions & EXTREMES and any(name in _names(a) for a in call.args) and len(call.args) > 1:
                return True
    return False


def _in_a_loop(code: Code, node: ast.AST) -> bool:
    up = code.program.parent(node)
    while up is not None and not isinstance(up, ast.FunctionDef | ast.Module):
        if isinstance(up, ast.For | ast.While):
            return True
        up = code.program.parent(up)
    return isinstance(up, ast.FunctionDef) and up.name.endswith(("epoch_end", "step"))


def _logging(code: Code) -> list[ast.Call]:
    return [c for name, calls in code.program.calls.items() if LOGS.search(name) for c in calls if callee(c) == name]


def _names(node: ast.AST) -> set[str]:
    return {dotted_name(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)} - {""}


def _given(call: ast.Call) -> set[str]:
    return {n for a in (*call.args, *(k.value for k in call.keywords)) for n in _names(a)}


def _says_best(call: ast.Call) -> bool:
    """Whether the words of the call say that it is the best: the keys, the text, the names of its arguments."""
    words = [n.value for n in ast.walk(call) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    words += [k.arg for k in call.keywords if k.arg]
    return any(SAYS.search(w) for w in words)

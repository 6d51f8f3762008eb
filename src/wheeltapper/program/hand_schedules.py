"""Learning rates computed by hand: a function of a step or an epoch, set into the optimizer or given to LambdaLR.

A function counts when it is named for the learning rate (or given to LambdaLR) and divides something that counts by a length:
the length of the warm-up, or that of the whole schedule.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from wheeltapper.program.program import Func, Program, argument, callee, dotted_name

NAMED = re.compile(r"(^|_)lr(s|_|$)|learning_?rate|lr_?sched|anneal_lr|^lf$", re.I)
OTHER = re.compile(
    r"beta|noise|sigma|temp|kl|wd|weight_decay|momentum|ema|teacher|loss|log|print|plot|find|scale_lr|group|layer", re.I
)
COUNTER = re.compile(
    r"^(cur(rent)?_?|global_?|train_?|num_?|n_?|self\.)?(it|iter|iters|iteration|step|steps|epoch|update|updates|i|e|t|x|n|s|k)(_?num|_?idx|_?i)?$", re.I
)  # fmt: skip
WARM = re.compile(r"warm|ramp_?up", re.I)


@dataclass(frozen=True, eq=False)
class Rule:
    """How a learning rate follows a counter. `warmup` and `horizon` are lengths as written; None where there is none."""

    func: Func
    counter: str  # a parameter, or a field of self
    kind: str
    horizon: ast.expr | None
    warmup: ast.expr | None


def rules_of(program: Program) -> list[Rule]:
    """Every function named for the learning rate that is a rule, reachable or not."""
    found = []
    for name, funcs in program.functions.items():
        if NAMED.search(name) and not OTHER.search(name):
            found += [rule for func in funcs if (rule := rule_of(func)) is not None]
    return found


def rule_of(func: Func) -> Rule | None:
    counter = _counter(func)
    if counter is None:
        return None
    warmup = horizon = None
    for node in ast.walk(func.node):
        if (
            not isinstance(node, ast.BinOp)
            or not isinstance(node.op, ast.Div)
            or not _mentions(func, node.left, counter)
        ):
            continue
        length = _length(node.right)
        if length is None:
            continue
        if WARM.search(ast.unparse(length)):
            warmup = warmup if warmup is not None else length
        else:
            horizon = horizon if horizon is not None else length
    if warmup is None and horizon is None:
        return None
    return Rule(func, counter, _kind(func, horizon is not None), horizon, warmup)


def function_of(program: Program, call: ast.Call) -> Func | None:
    """The function that a LambdaLR is given: a lambda, or a name of one."""
    given = argument(call, "lr_lambda", 1)
    if isinstance(given, ast.List) and len(given.elts) == 1:
        given = given.elts[0]
    rest = program.rest_of(given) if given is not None else None
    if isinstance(given, ast.Name) and rest is not None and len(program.writes.get(rest, [])) == 1:
        given = program.writes[rest][0]  # lf = lambda x: ...
    if isinstance(given, ast.Lambda):
        return next((f for f in program.scopes.values() if f.node is given), None)
    name = dotted_name(given).split(".")[-1] if isinstance(given, ast.Name | ast.Attribute) else ""
    funcs = program.functions.get(name, [])
    return funcs[0] if len(funcs) == 1 else None


def _counter(func: Func) -> str | None:
    """What the rate is a function of: a parameter that counts, else a field of self that does."""
    params = func.params
    named = [p for p in params if COUNTER.match(p)]
    if named:
        return named[0]
    if isinstance(func.node, ast.Lambda) or (len(params) == 1 and func.owner is None):
        return params[0] if len(params) == 1 else None
    fields = {n.attr for n in ast.walk(func.node) if isinstance(n, ast.Attribute) and dotted_name(n.value) == "self"}
    counts = sorted(f for f in fields if COUNTER.match(f) and len(f) > 1)
    return counts[0] if counts else None


def _mentions(func: Func, node: ast.expr, counter: str, depth: int = 0) -> bool:
    """Whether an expression holds the counter, directly or through a variable of the function."""
    for inner in ast.walk(node):
        name = inner.id if isinstance(inner, ast.Name) else inner.attr if isinstance(inner, ast.Attribute) else ""
        if name == counter:
            return True
        if isinstance(inner, ast.Name) and depth < 2:
            made = (n.value for n in ast.walk(func.node) if isinstance(n, ast.Assign) and _assigns(n, inner.id))
            if any(value is not node and _mentions(func, value, counter, depth + 1) for value in made):
                return True
    return False


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def _length(node: ast.expr) -> ast.expr | None:
    """The length that a counter is divided by: `max(1, total - warmup)` -> total."""
    while isinstance(node, ast.Call) and callee(node) in ("max", "float", "int"):
        named = [a for a in node.args if not isinstance(a, ast.Constant)]
        if len(named) != 1:
            return None
        node = named[0]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        if WARM.search(ast.unparse(node.right)) and not isinstance(node.left, ast.Constant):
            return node.left
        return _length(node.left) if not isinstance(node.left, ast.Constant) else None
    return node if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp) else None


def _kind(func: Func, decays: bool) -> str:
    text = ast.unparse(func.node)
    if re.search(r"\bcos\(", text):
        return "cosine"
    if re.search(r"sqrt\(|\*\* *-0\.5|\*\* *\(-0\.5\)", text):
        return "inverse square root"
    if not decays:
        return "warm-up, then constant"
    if re.search(r"\*\* *\(?[\w.\[\]'\"()]*\(?.*//", text):
        return "steps"
    return "polynomial" if "**" in text else "linear"

"""Averages of weights written out by hand: `ema.lerp_(p, 1 - d)`, `ema.mul_(d).add_(p, alpha=1 - d)` and their relatives.

Found by their shape: in a loop over parameters or a state, a tensor becomes d times itself and 1 - d times another. Both
shares must be there, and neither may be a gradient, so that the moments of an optimizer are none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wheeltapper.program.program import Func, Program, callee

Over = Literal["parameters", "state", "unknown"]
LOOPED = re.compile(r"param|state_dict|buffer|shadow|weight|\bsd\b|_dict\b|\.items\(\)|ema|averag", re.I)
GRADIENT = re.compile(r"\bgrad\b|\.grad\b|exp_avg|momentum_buffer|\bstate\[", re.I)


@dataclass(frozen=True, eq=False)
class HandAverage:
    """One update. `kept` is the average, `live` the weights; `decay` the share kept, or `rest` = 1 - decay, as written."""

    node: ast.AST
    kept: ast.expr
    live: ast.expr
    decay: ast.expr | None
    rest: ast.expr | None
    over: Over
    loop: ast.For
    func: Func | None

    @property
    def mark(self) -> ast.Call | None:
        """The call that stands for the update among the events of the loop."""
        calls = (n for part in (self.loop.iter, *self.loop.body) for n in ast.walk(part) if isinstance(n, ast.Call))
        return next(calls, None)

    @property
    def names(self) -> set[str]:
        """Every name that the loop over the weights and the update mention."""
        nodes = [n for part in (self.loop.iter, self.kept) for n in ast.walk(part)]
        return {n.id if isinstance(n, ast.Name) else n.attr for n in nodes if isinstance(n, ast.Name | ast.Attribute)}


def hand_averages(program: Program) -> list[HandAverage]:
    out = []
    for node, kept, live, decay, rest in _updates(program):
        loop = _loop_of(program, node)
        if loop is None or GRADIENT.search(ast.unparse(kept)) or GRADIENT.search(ast.unparse(live)):
            continue
        text = _looped(program, loop)
        if LOOPED.search(text):
            out.append(HandAverage(node, kept, live, decay, rest, _over(text), loop, program.func_of[node]))
    return out


Update = tuple[ast.AST, ast.expr, ast.expr, ast.expr | None, ast.expr | None]


def _updates(program: Program) -> Iterator[Update]:
    for name in ("lerp_", "lerp"):
        for call in program.calls.get(name, []):
            if isinstance(call.func, ast.Attribute) and len(call.args) == 2:
                yield from _lerp(program, call, call.func.value, name)
    for call in program.calls.get("add_", []):
        before = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(before, ast.Call) and callee(before) == "mul_" and before.args and call.args:
            assert isinstance(before.func, ast.Attribute)
            live = _share(call, before.args[0])
            if live is not None:
                yield call, before.func.value, live, before.args[0], None
    for call in program.calls.get("copy_", []):
        if isinstance(call.func, ast.Attribute) and call.args:
            yield from _sum(call, call.func.value, call.args[0])
    for call in program.calls.get("sub_", []):  # kept.sub_((1 - d) * (kept - live))
        if isinstance(call.func, ast.Attribute) and call.args and isinstance(call.args[0], ast.BinOp):
            yield from _step_towards(call, call.func.value, call.args[0])
    for node in program.live_by_type.get(ast.Assign, []):
        assert isinstance(node, ast.Assign)
        if isinstance(node.targets[0], ast.Attribute | ast.Subscript):
            yield from _sum(node, node.targets[0], node.value)
    for node in program.live_by_type.get(ast.AugAssign, []):
        assert isinstance(node, ast.AugAssign)
        if isinstance(node.op, ast.Add) and isinstance(node.value, ast.BinOp):  # v *= d; v += (1 - d) * live
            decay = _scaled_before(program, node)
            parts = _product(node.value, decay) if decay is not None else None
            if decay is not None and parts is not None:
                yield node, node.target, parts, decay, None


def _lerp(program: Program, call: ast.Call, first: ast.expr, name: str) -> Iterator[Update]:
    """`kept.lerp_(live, 1 - d)`; `kept.copy_(live.lerp(kept, d))` as in EDM."""
    if name == "lerp_":
        yield call, first, call.args[0], None, call.args[1]
        return
    up = program.parent(call)
    if isinstance(up, ast.Call) and callee(up) == "copy_" and isinstance(up.func, ast.Attribute):
        kept = up.func.value
        if ast.unparse(call.args[0]) == ast.unparse(kept):
            yield up, kept, first, call.args[1], None
        elif ast.unparse(first).removesuffix(".detach()") == ast.unparse(kept):
            yield up, kept, call.args[0], None, call.args[1]


def _sum(node: ast.AST, kept: ast.expr, value: ast.expr) -> Iterator[Update]:
    """kept = d * kept + (1 - d) * live, in any order."""
    while (
        isinstance(value, ast.Call)
        and callee(value) in ("clone", "detach", "to")
        and isinstance(value.func, ast.Attribute)
    ):
        value = value.func.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return
    target = _bare(kept)
    for one, other in ((value.left, value.right), (value.right, value.left)):
        if not isinstance(one, ast.BinOp) or not isinstance(one.op, ast.Mult):
            continue
        for thing, decay in ((one.left, one.right), (one.right, one.left)):
            live = _product(other, decay) if _bare(thing) == target else None
            if live is not None:
                yield node, kept, live, decay, None
                return


def _step_towards(call: ast.Call, kept: ast.expr, given: ast.BinOp) -> Iterator[Update]:
    if not isinstance(given.op, ast.Mult):
        return
    for rest, difference in ((given.left, given.right), (given.right, given.left)):
        if (
            isinstance(difference, ast.BinOp)
            and isinstance(difference.op, ast.Sub)
            and _bare(difference.left) == _bare(kept)
        ):
            yield call, kept, difference.right, None, rest
            return


def _share(call: ast.Call, decay: ast.expr) -> ast.expr | None:
    """The live weights of `.add_(live, alpha=1 - d)`, `.add_((1 - d) * live)` and the old `.add_(1 - d, live)`."""
    alpha = next((k.value for k in call.keywords if k.arg == "alpha"), None)
    if alpha is not None:
        return call.args[0] if _complement(alpha, decay) else None
    if len(call.args) == 2:
        return call.args[1] if _complement(call.args[0], decay) else None
    return _product(call.args[0], decay)


def _product(node: ast.expr, decay: ast.expr) -> ast.expr | None:
    """x of (1 - d) * x."""
    if (
        isinstance(node, ast.Call)
        and callee(node) in ("mul", "to")
        and isinstance(node.func, ast.Attribute)
        and node.args
    ):
        return node.func.value if _complement(node.args[0], decay) else None
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    if _complement(node.left, decay):
        return node.right
    return node.left if _complement(node.right, decay) else None


def _complement(node: ast.expr, decay: ast.expr) -> bool:
    """1 - d beside d; or both are numbers or names of their own."""
    match node:
        case ast.BinOp(left=ast.Constant(value=1 | 1.0), op=ast.Sub(), right=right):
            return ast.unparse(right) == ast.unparse(decay)
        case ast.Constant(value=float(a)):
            return (
                isinstance(decay, ast.Constant) and isinstance(decay.value, float) and abs(a + decay.value - 1) < 1e-9
            )
        case ast.Name(id=name):
            return bool(re.search(r"one_minus|1m|alpha|rest", name))
    match decay:
        case ast.BinOp(left=ast.Constant(value=1 | 1.0), op=ast.Sub(), right=right):
            return ast.unparse(right) == ast.unparse(node)
    return False


def _scaled_before(program: Program, node: ast.AugAssign) -> ast.expr | None:
    """d of `v *= d` right before `v += ...`."""
    up = program.parent(node)
    body = getattr(up, "body", [])
    if node not in body or body.index(node) == 0:
        return None
    before = body[body.index(node) - 1]
    if (
        isinstance(before, ast.AugAssign)
        and isinstance(before.op, ast.Mult)
        and _bare(before.target) == _bare(node.target)
    ):
        return before.value
    return None


def _bare(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    if isinstance(node, ast.Call) and callee(node) == "detach" and isinstance(node.func, ast.Attribute):
        return _bare(node.func.value)
    return ast.unparse(node)


def _loop_of(program: Program, node: ast.AST) -> ast.For | None:
    up = program.parent(node)
    while up is not None and not isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        if isinstance(up, ast.For):
            return up
        up = program.parent(up)
    return None


def _looped(program: Program, loop: ast.For) -> str:
    """What a loop runs over, with what its names were given."""
    text = ast.unparse(loop.iter)
    func = program.func_of[loop]
    for name in {n.id for n in ast.walk(loop.iter) if isinstance(n, ast.Name)}:
        written = program.writes.get(("v", func.scope if func is not None else "", name), [])
        text += "".join(" " + ast.unparse(value) for value in written)
    return text


def _over(text: str) -> Over:
    """What is averaged: the parameters of the model, or all of its state."""
    if "state_dict" in text or "buffer" in text:
        return "state"
    return "parameters" if re.search(r"\bparameters\(|named_parameters\(", text) else "unknown"

"""Weight averages (EMA) a program keeps: their decay, how often they are updated, how long they remember.

Only averages with a constant decay are measured. Several libraries ramp the decay up (diffusers, torch_ema,
ema-pytorch: KNOWLEDGE EMA-02), and then a long horizon is harmless early on.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from wheeltapper.code.conditions import every, reachable
from wheeltapper.code.horizons import batch_loop_of
from wheeltapper.code.loop import Event
from wheeltapper.code.objects import Part
from wheeltapper.code.program import argument, callee
from wheeltapper.code.reading import Code

CONSTANT = {"AveragedModel", "ModelEma", "ModelEmaV2", "ModelEMA", "WeightEMA"}
DECAY = re.compile(r"decay|beta|ema|momentum|alpha", re.I)


@dataclass(frozen=True)
class Average:
    """One averaged copy. `every` is in optimizer steps; None where it is not known."""

    decay: float
    every: float | None
    made: ast.AST
    updated: ast.AST
    part: Part | None = None

    @property
    def horizon(self) -> float | None:
        """Steps over which the average forgets by a factor e."""
        return None if self.every is None else self.every / (1 - self.decay)


def averages_of(code: Code) -> list[Average]:
    return [*_made(code), *_by_hand(code)]


def _made(code: Code) -> list[Average]:
    out = []
    for part in code.made("ema"):
        if part.made_by not in CONSTANT or (part.made_by in code.program.classes and not _plain_class(code, part)):
            continue
        decay = _decay(code, part)
        updates = [e for e in code.loop.of("ema") if e.name in part.names and e.loops and reachable(code, e)]
        if decay is None or not updates:
            continue
        out.append(Average(decay, _interval(code, updates[0]), part.call, updates[0].node, part))
    return out


def _plain_class(code: Code, part: Part) -> bool:
    """A class of the program that does not change its decay with the number of updates."""
    cls = code.program.classes[part.made_by]
    return not re.search(r"min\(|num_updates|updates|exp\(|warm", ast.unparse(cls.node))


def _decay(code: Code, part: Part) -> float | None:
    for name in ("avg_fn", "multi_avg_fn"):
        node = argument(part.call, name)
        if isinstance(node, ast.Lambda):
            numbers = [
                n.value for n in ast.walk(node.body) if isinstance(n, ast.Constant) and isinstance(n.value, float)
            ]
            near = [n for n in numbers if 0.5 < n < 1]
            return near[0] if len(near) == 1 else None
        if isinstance(node, ast.Call) and callee(node).startswith("get_ema"):
            value = code.values.number(node.args[0] if node.args else argument(node, "decay"))
            return value if value is not None else 0.999  # torch's default
    if part.made_by == "AveragedModel":
        return None  # without avg_fn it is an equal average, which forgets nothing by design
    node = argument(part.call, "decay", 1)
    value = code.values.number(node)
    return value if value is not None and 0.5 < value < 1 else None


def _by_hand(code: Code) -> list[Average]:
    """`ema_param.mul_(decay).add_(param, alpha=1 - decay)` in the batch loop."""
    out = []
    for call in code.program.calls.get("mul_", []):
        up = code.program.parent(call)
        if not (isinstance(up, ast.Attribute) and up.attr == "add_" and call.args):
            continue
        decay = code.values.number(call.args[0])
        loop = _enclosing_batch_loop(code, call)
        text = ast.unparse(call) + ast.unparse(call.args[0])
        if decay is None or not 0.5 < decay < 1 or loop is None or not DECAY.search(text):
            continue
        out.append(Average(decay, _hand_interval(code, call, loop), call, call))
    return out


def _enclosing_batch_loop(code: Code, node: ast.AST) -> ast.AST | None:
    up: ast.AST | None = node
    while up is not None:
        if up in code.loop.batch_loops:
            return up
        up = code.program.parent(up)
    return None


def _hand_interval(code: Code, node: ast.AST, loop: ast.AST) -> float | None:
    up: ast.AST | None = node
    while up is not None and up is not loop:
        up = code.program.parent(up)
        if isinstance(up, ast.If):
            for inner in ast.walk(up.test):
                if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mod):
                    return code.values.number(inner.right)
    return 1.0


def _interval(code: Code, event: Event) -> float | None:
    loop = batch_loop_of(code, event)
    if loop is None:
        return None
    count = every(event, loop)
    return 1.0 if count is None else code.values.number(count)

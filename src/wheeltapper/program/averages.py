"""Weight averages (EMA) a program keeps: their decay, how often they are updated, how long they remember.

Only averages with a constant decay are measured. Several libraries ramp the decay up (diffusers, torch_ema,
ema-pytorch: KNOWLEDGE EMA-02), and then a long horizon is harmless early on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from wheeltapper.program.conditions import every, reachable
from wheeltapper.program.hand_averages import HandAverage
from wheeltapper.program.horizons import batch_loop_of
from wheeltapper.program.loop import Event
from wheeltapper.program.objects import Part
from wheeltapper.program.program import argument, callee
from wheeltapper.program.reading import Code
from wheeltapper.program.scripts import children

CONSTANT = {"AveragedModel", "ModelEma", "ModelEmaV2", "ModelEMA", "WeightEMA"}
MOVES = re.compile(r"num_updates|updates$|^step$|_step$|^t$|^epoch$|^it$|warm|progress", re.I)


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
            parts = [n for n in ast.walk(node.body) if isinstance(n, ast.Constant | ast.Name | ast.Attribute)]
            near = {n for part in parts if (n := code.values.number(part)) is not None and 0.5 < n < 1}
            return near.pop() if len(near) == 1 else None
        if isinstance(node, ast.Call) and callee(node).startswith("get_ema"):
            value = code.values.number(node.args[0] if node.args else argument(node, "decay"))
            return value if value is not None else 0.999  # torch's default
    if part.made_by == "AveragedModel":
        return None  # without avg_fn it is an equal average, which forgets nothing by design
    node = argument(part.call, "decay", 1)
    value = code.values.number(node)
    return value if value is not None and 0.5 < value < 1 else None


def _by_hand(code: Code) -> list[Average]:
    """Averages written out in the program, of a constant decay that can be read."""
    out = []
    for hand in code.hand_averages:
        decay = hand_decay(code, hand)
        updates = updates_of(code, hand)
        if decay is None or not updates:
            continue
        intervals = {_interval(code, event) for event in updates}
        out.append(Average(decay, intervals.pop() if len(intervals) == 1 else None, hand.node, hand.node))
    return out


def updates_of(code: Code, hand: HandAverage) -> list[Event]:
    """Where the training loop comes to an update of the average."""
    return [e for e in code.loop.of("average") if e.node is hand.mark and e.loops and reachable(code, e)]


def is_ramped(code: Code) -> bool:
    """Whether the program keeps an average by hand and raises its decay as it goes."""
    for hand in code.hand_averages:
        node = hand.decay if hand.decay is not None else _of_rest(code, hand.rest)
        if node is not None and updates_of(code, hand) and _ramped(code, node, 0):
            return True
    return False


def hand_decay(code: Code, hand: HandAverage) -> float | None:
    """The decay, where it is one constant number: not ramped up, not read from two places that differ."""
    node = hand.decay if hand.decay is not None else _of_rest(code, hand.rest)
    if node is None or _ramped(code, node, 0):
        return None
    found = {n for n in _numbers(code, node, 0) if n is None or 0.5 < n < 1}
    return found.pop() if len(found) == 1 else None


def _of_rest(code: Code, node: ast.expr | None, depth: int = 0) -> ast.expr | None:
    """d of 1 - d, here or where the name was given its value."""
    if node is None or depth > 3:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return node.right if isinstance(node.left, ast.Constant) and node.left.value == 1 else None
    rest = code.program.rest_of(node)
    written = code.program.writes.get(rest, []) if rest is not None else []
    return _of_rest(code, written[0], depth + 1) if len(written) == 1 else None


def _ramped(code: Code, node: ast.expr, depth: int) -> bool:
    """Whether the decay is computed from anything that moves: a minimum, a power, a counter."""
    for inner in _operands(node):
        if isinstance(inner, ast.Call) and callee(inner) not in ("float", "get", "getattr"):
            return True
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow):
            return True
        if depth < 4 and isinstance(inner, ast.Name | ast.Attribute):
            rest = code.program.rest_of(inner)
            if rest is None:
                continue
            if rest in code.program.opaque or MOVES.search(rest[-1]):
                return True
            if any(
                v is not node and _ramped(code, v, depth + 1)
                for v in code.program.writes.get(rest, [])
                if rest[0] == "v"
            ):
                return True
            own = [v for v in code.program.writes.get(rest, []) if code.program.written_on.get(v) == "self"]
            if rest[0] == "f" and any(v is not node and _ramped(code, v, depth + 1) for v in own):
                return True
    return False


def _operands(node: ast.AST) -> Iterator[ast.AST]:
    """All parts of an expression that are values in it: of `args.decay` not `args`."""
    yield node
    if not isinstance(node, ast.Attribute | ast.Subscript):
        for child in children(node):
            if not (isinstance(node, ast.Call) and child is node.func):
                yield from _operands(child)


def _numbers(code: Code, node: ast.expr, depth: int) -> set[float | None]:
    """Every number the decay may be; None where one is not known. A parameter has its default too."""
    rest = code.program.rest_of(node)
    if depth < 5 and rest is not None and rest[0] == "v":
        written: list[ast.expr] = list(code.program.writes.get(rest, []))
        default = code.values.default(rest)
        if default is not None:
            written.append(default)
        if written:
            return {n for value in written for n in _numbers(code, value, depth + 1)}
    if depth < 5 and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        own = _set_in_class(code, node)
        if own:
            return {n for value in own for n in _numbers(code, value, depth + 1)}
    return {code.values.number(node)}


def _set_in_class(code: Code, node: ast.Attribute) -> list[ast.expr]:
    """What `self.name` is given in the methods of its own class."""
    owner = code.program.class_of(node.value)
    out = []
    for value in code.program.writes.get(("f", node.attr), []):
        func = code.program.func_of[value]
        if code.program.written_on.get(value) == "self" and func is not None and func.owner == owner:
            out.append(value)
    return out


def _interval(code: Code, event: Event) -> float | None:
    """Turns of the loop between two updates: of the batch loop, or of the one around it that holds the optimizer's step."""
    steps = code.loop.of("step", "scaler-step")
    around = (s.loops[-1] for s in steps if s.loops and s.loops[-1] in event.loops)
    loop = batch_loop_of(code, event) or next(around, None)
    if loop is None:
        return None
    count = every(event, loop)
    return 1.0 if count is None else code.values.number(count)
